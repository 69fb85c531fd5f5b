import type { CycleAttempt } from '../../db/repositories/payments/cycle-attempts.ts';
import type { RecordedEntry } from '../../db/repositories/subscriptions/row.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { formatAmount } from '../../domain/money.ts';
import { causeText } from '../../domain/subscription/charge-cause.ts';
import { decide } from '../../domain/subscription/decide.ts';
import { describe, describeWait } from '../../domain/subscription/describe.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { minuteText, printable, styled } from '../command-line/terminal.ts';

export interface Explained {
  readonly state: SubscriptionState;
  readonly productName: string | null;
  /** Since when the run does nothing, because the row is older than the run. */
  readonly heldAt: number | null;
  /** The subscription's own time, and real time. */
  readonly now: number;
  readonly realNow: number;
  readonly entries: readonly RecordedEntry[];
  readonly attempts: readonly CycleAttempt[];
  /** How the row and the attempts differ from what the ledger leads to; null for an earlier instant. */
  readonly problems: readonly string[] | null;
}

export function explanationLines(explained: Explained): string[] {
  const { state, attempts, problems } = explained;
  return [
    styled('bold', `${state.subscriptionId} of ${state.merchantId}`),
    ...stateLines(explained),
    `Next: ${nextStep(explained)}.`,
    '',
    styled('bold', 'Charges'),
    ...attempts.flatMap((attempt) => attemptLines(attempt)),
    '',
    styled('bold', 'Timeline'),
    ...timelineLines(explained),
    ...(problems === null ? [] : ['', ...verdictLines(problems)]),
  ];
}

/** The entries of the ledger and the refunds of the cycles, by their instants. */
function timelineLines({ state, entries, attempts }: Explained): string[] {
  const changes = entries.map((entry) => {
    const { what, why } = textOf(entry, state.terms);
    return {
      at: entry.at,
      text: `${entry.statusAfter.padEnd(8)}  ${what}: ${why} (${entry.actor})`,
    };
  });
  const refunds = attempts.flatMap(({ cycleNumber, refunds: made }) =>
    made.map(({ createdAt, amountMinor, currency, state: outcome }) => ({
      at: createdAt,
      text: `${' '.repeat(8)}  refund of ${formatAmount(amountMinor, currency)} for cycle ${cycleNumber}: ${outcome}`,
    })),
  );
  return [...changes, ...refunds]
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, text }) => printable(`  ${minuteText(at)}  ${text}`));
}

function verdictLines(problems: readonly string[]): string[] {
  return problems.length === 0
    ? ['By the rules, this ledger leads to this state and to these charges.']
    : [
        styled('bold', 'Wrong: by the rules, the ledger leads to something else'),
        ...problems.map((problem) => printable(`  ${problem}`)),
      ];
}

/** The current details of the Web UI as plain text, without the table of entries. */
function stateLines({ state, productName, heldAt, now }: Explained): string[] {
  const heldBecause =
    heldAt === null ? null : `the database is older than its run, since ${formatInstant(heldAt)}`;
  const text = describe(state, now, { productName, refused: null, heldBecause, entries: [] });
  const paragraphs = text.split('\n\n').filter((paragraph) => !paragraph.startsWith('|'));
  return paragraphs.map((paragraph) => printable(paragraph.replaceAll(/\*+|`/g, '')));
}

function nextStep({ state, heldAt, now, realNow }: Explained): string {
  if (heldAt !== null) return 'nothing until an operator releases it';
  const step = decide(state, now, realNow);
  if (step.do === 'finish') return 'nothing, it has ended';
  if (step.do !== 'wait') return 'a step is due now';
  return step.until === null
    ? 'nothing until a command'
    : describeWait({ ...step, until: step.until });
}

const OUTCOMES = {
  SENDING: 'being sent',
  UNSENT: 'not sent yet',
  UNKNOWN: 'outcome unknown',
  REVIEW: 'in manual review',
  SUCCEEDED: 'paid',
  DECLINED: 'declined',
} as const;

function attemptLines({ attempt, cycleNumber, refunds, disputes }: CycleAttempt): string[] {
  const { cause, trigger, errorCode, gatewayCode, settledAt, settledBy, currency } = attempt;
  const amount = formatAmount(attempt.amountMinor, currency);
  const code =
    errorCode === null ? '' : ` (${[errorCode, gatewayCode].filter(Boolean).join(', ')})`;
  const why = cause ? causeText(cause, trigger) : 'from the book of the gateway';
  const sent = attempt.sentAt.map(formatInstant).join(', ');
  const settled =
    settledAt === null ? '' : `, settled by ${settledBy ?? 'adoption'} ${formatInstant(settledAt)}`;
  const lookups =
    attempt.lookups === 0 ? '' : `, ${attempt.lookups} sends or look-ups without an outcome`;
  return [
    `  ${cycleNumber}.${attempt.attemptNumber}  ${minuteText(attempt.createdAt)}  ${amount}  ${OUTCOMES[attempt.state]}${code}: ${why}`,
    `       ${attempt.gateway} ${attempt.gatewayKey}, charge ${attempt.gatewayChargeId ?? 'none'}, sent ${sent}${lookups}${settled}`,
    ...refunds.map(
      ({ amountMinor, state, createdAt }) =>
        `       refund of ${formatAmount(amountMinor, currency)} on ${minuteText(createdAt)}: ${state}`,
    ),
    ...disputes.map(
      ({ amountMinor, currency: code, status, reason }) =>
        `       dispute of ${formatAmount(amountMinor, code)}: ${status}, ${reason}`,
    ),
  ].map(printable);
}

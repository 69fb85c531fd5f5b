import { formatInstant } from '../calendar.ts';
import { formatAmount } from '../money.ts';
import { awaitsPayer } from './authentication.ts';
import type { Command } from './commands.ts';
import type { Wait } from './decide.ts';
import { textOf } from './entries.ts';
import type { Entry } from './entries.ts';
import { nextChargeAt } from './charge-time.ts';
import { cancelAt, isDunned, nextAmountMinor, resumeAt } from './state.ts';
import type { SubscriptionState } from './state.ts';
import type { Terms } from './terms.ts';
import { validateCommand } from './validate-command.ts';
import type { SubscriptionStatus } from './status.ts';

/** A signal that was refused, because its argument is invalid or the status does not allow it. */
export interface RefusedSignal {
  readonly signal: string;
  readonly reason: string;
  readonly at: number;
  /** The subscription's version at that time. With its next change the refusal is past. */
  readonly version: number;
}

export interface Surroundings {
  readonly productName: string | null;
  readonly refused: RefusedSignal | null;
  /** The latest entries of the ledger, oldest first. */
  readonly entries: readonly Entry[];
  /** Why the workflow does nothing, and how an operator can help; null if the workflow runs normally. */
  readonly heldBecause: string | null;
}

/** Number of entries in the Web UI. */
export const ENTRIES_SHOWN = 16;

/** A product name in a summary is cut after this many characters: Temporal accepts 200 bytes. */
const NAME_MAX = 40;

/** Returns one line for a list of workflows: `Garden Letters, 19.99 USD every month`. */
export function summarize(terms: Terms, productName: string | null): string {
  return productName === null ? price(terms) : `${cut(productName)}, ${price(terms)}`;
}

/** Returns the line that names a timer: `charge cycle 4 (19.99 USD) on 2027-06-03 00:00 UTC`. */
export function describeWait({ reason, until }: Wait & { until: number }): string {
  return `${reason} on ${toMinute(until)}`;
}

/** Returns the state at `now` in Markdown, without personal data, for the Web UI. */
export function describe(
  state: SubscriptionState,
  now: number,
  { productName, refused, entries, heldBecause }: Surroundings,
): string {
  const { terms } = state;
  const paragraphs = [
    `**${state.status}**: ${sentence(state)}.`,
    `${summarize(terms, productName)}, ${state.cyclesCharged} of ${terms.cycleCount} cycles paid.`,
  ];
  const signals = acceptedSignals(state, now);
  if (signals.length > 0) {
    paragraphs.push(
      `**An operator can now** send these signals: ${signals.map(asCode).join(', ')}. ` +
        '`recheck` reads the row again, and asks the gateway about a payment without an outcome. ' +
        '*Request Cancellation* cancels the subscription at once, like `cancel`.',
    );
  }
  if (state.cooldownUntilAt !== null) {
    paragraphs.push(`Manual retry possible again from ${toMinute(state.cooldownUntilAt)}.`);
  }
  if (heldBecause !== null) {
    paragraphs.unshift(`**Held**: ${heldBecause}.`);
  }
  if (refused?.version === state.version) {
    const reason = refused.reason.replace(/\.$/, '');
    paragraphs.push(`Refused signal \`${refused.signal}\` on ${toMinute(refused.at)}: ${reason}.`);
  }
  if (state.testClockId !== null) paragraphs.push(`On test clock \`${state.testClockId}\`.`);
  const rows = entries.toReversed().map((entry) => {
    const { what, why } = textOf(entry, terms);
    return `| ${toMinute(entry.at)} | ${what} | ${why} |`;
  });
  return [...paragraphs, ['| when | what | why |', '|---|---|---|', ...rows].join('\n')].join(
    '\n\n',
  );
}

function acceptedSignals(state: SubscriptionState, now: number): string[] {
  const commandId = 'none';
  const laterAt = now + 86_400_000;
  const commands: Command[] = [
    { kind: 'edit', commandId, newAmountMinor: state.terms.amountMinor },
    { kind: 'pause', commandId },
    { kind: 'unpause', commandId, newNextPaymentAt: laterAt },
    { kind: 'resume', commandId },
    { kind: 'manualRetry', commandId },
    { kind: 'cancel', commandId, reason: 'cancelled' },
  ];
  return commands
    .filter((command) => validateCommand(state, command, now).ok)
    .map(({ kind }) => kind);
}

function asCode(text: string): string {
  return `\`${text}\``;
}

/** Returns, for example, `19.99 USD every 2 months`. */
function price({ amountMinor, currency, interval, intervalCount }: Terms): string {
  const every = intervalCount === 1 ? interval : `${intervalCount} ${interval}s`;
  return `${formatAmount(amountMinor, currency)} every ${every.toLowerCase()}`;
}

function cut(text: string): string {
  const characters = Array.from(text);
  return characters.length > NAME_MAX ? `${characters.slice(0, NAME_MAX).join('')}…` : text;
}

/** Returns, for example, `2027-06-03 00:00 UTC`. */
function toMinute(at: number): string {
  return `${formatInstant(at).slice(0, 16).replace('T', ' ')} UTC`;
}

function sentence(state: SubscriptionState): string {
  if (state.openAttempt?.reviewReason !== undefined) {
    return (
      `**a person has to settle a payment** (${state.openAttempt.reviewReason}): ` +
      '`npm run review -- list`; until then the gateway is asked once a day'
    );
  }
  if (state.openAttempt?.unsentReason !== undefined) {
    return (
      `a payment is due and could not be sent (${state.openAttempt.unsentReason}); ` +
      'it is sent every 5 minutes until the gateway takes it'
    );
  }
  if (awaitsPayer(state)) {
    return (
      'the payer was asked to confirm a payment with the bank; ' +
      'if nothing happens, the payment is withdrawn 22 minutes after it was sent'
    );
  }
  if (state.openAttempt && state.openAttempt.lookups > 0) {
    return 'a payment was sent and its outcome is not known yet; the gateway is asked until it is known';
  }
  const endAt = cancelAt(state);
  if (endAt !== null) return `cancelled; nothing is charged, and it ends on ${toMinute(endAt)}`;
  const pauseEndAt = resumeAt(state);
  const nextAt = nextChargeAt(state);
  const when = nextAt === null ? '' : toMinute(nextAt);
  const cycle = state.cyclesCharged + 1;
  const amount = formatAmount(nextAmountMinor(state), state.terms.currency);
  switch (statusOfSentence(state)) {
    case 'CREATED':
      return `waiting for the payer until ${toMinute(state.checkoutExpiresAt)}`;
    case 'TRIALING':
      return `in its trial; the first charge is ${amount} on ${when}`;
    case 'ACTIVE':
      return `the next charge is cycle ${cycle}, ${amount} on ${when}`;
    case 'UNPAID':
      return `cycle ${cycle}, ${amount}, was declined (${state.owed?.lastDeclineCode ?? 'unknown'}); ${
        nextAt === null ? 'no automatic retry is planned' : `the next retry is on ${when}`
      }`;
    case 'PAUSED':
      return pauseEndAt === null
        ? 'nothing is charged until it is unpaused'
        : `nothing is charged until it is unpaused, or until ${toMinute(pauseEndAt)}`;
    case 'ENDED':
      return `ended (${state.endReason ?? 'no reason recorded'})`;
  }
}

/** The sentence about a declined cycle is the same in TRIALING, ACTIVE and UNPAID. */
function statusOfSentence(state: SubscriptionState): SubscriptionStatus {
  if (!isDunned(state)) return state.status;
  // Without an attempt the cycle was not declined: it waits because of the limits of its card.
  return state.owed?.attempts === 0 ? 'ACTIVE' : 'UNPAID';
}

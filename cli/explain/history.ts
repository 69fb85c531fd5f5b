import { readFileSync } from 'node:fs';
import type { CycleAttempt } from '../../db/repositories/payments/cycle-attempts.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { formatAmount } from '../../domain/money.ts';
import { chargeKey } from '../../domain/payment-intent.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { minuteText, printable } from '../command-line/terminal.ts';
import type { Captured } from '../replay/capture.ts';
import { msOf, orderOf, textsOf, valuesOf } from '../replay/compare.ts';
import { historyProblems } from '../replay/problems.ts';
import { createReplay } from '../replay/replay.ts';
import type { Replayed } from '../replay/replay.ts';

/**
 * Explains a run from its history alone: each charge, change and wait with its event, and what does not fit together.
 * `recorded`: the attempts of the rows, to compare.
 */
export async function historyLines(
  file: string,
  recorded: readonly CycleAttempt[] | null,
): Promise<{ lines: string[]; problems: string[] }> {
  const replay = await createReplay();
  const lines: string[] = [];
  const problems: string[] = [];
  for await (const run of replay([[file, JSON.parse(readFileSync(file, 'utf8'))]])) {
    lines.push(...run.events.flatMap((event) => stepLines(event, run)));
    problems.push(...historyProblems(run));
    if (recorded) problems.push(...rowProblems(run, recorded));
  }
  return { lines: lines.map(printable), problems: problems.map(printable) };
}

type Ordered = Extract<Captured, { args: unknown[]; seq: number }>;

/** The charge that the workflow orders, if the activity is one. */
function chargeOf({ type, args }: Ordered) {
  if (type !== 'chargeAttempt') return null;
  const { owed, openAttempt, terms } = (args[0] as { state: SubscriptionState }).state;
  if (!owed || !openAttempt) return null;
  return { owed, openAttempt, terms, key: chargeKey(owed.intentId, openAttempt.attemptNumber) };
}

function rowProblems({ captured }: Replayed, recorded: readonly CycleAttempt[]): string[] {
  const rows = new Map(recorded.map(({ attempt }) => [attempt.gatewayKey, attempt]));
  return captured.flatMap((each) => {
    const charge = 'type' in each ? chargeOf(each) : null;
    if (!charge) return [];
    const { key, owed, openAttempt } = charge;
    const row = rows.get(key);
    if (!row) return [`${key} is in the history, and in no row`];
    const ordered = { amountMinor: owed.amountMinor, trigger: openAttempt.trigger };
    return textsOf(key, ordered, { amountMinor: row.amountMinor, trigger: row.trigger });
  });
}

type Event = Replayed['events'][number];

function stepLines(event: Event, { events, captured }: Replayed): string[] {
  const order = orderOf(event, captured);
  if (order === undefined || order.kind === 'answer' || order.kind === 'successor') return [];
  const startedAt = event.eventTime ? msOf(event.eventTime) : 0;
  const text =
    order.kind === 'timer'
      ? `waits until ${formatInstant(startedAt + order.durationMs)}`
      : orderText(order, resultOf(event, events));
  return [`  event ${String(event.eventId).padStart(3)}  ${minuteText(startedAt)}  ${text}`];
}

interface Result {
  kind?: string;
  outcome?: { kind: string };
}

/** The result of an activity: in its own event if it ran in the workflow task, else in a later one. */
function resultOf(event: Event, events: Replayed['events']): Result | undefined {
  const finished = events.find(
    ({ activityTaskCompletedEventAttributes: completed }) =>
      String(completed?.scheduledEventId) === String(event.eventId),
  );
  const [result] = valuesOf(
    event.markerRecordedEventAttributes?.details?.['result'] ??
      finished?.activityTaskCompletedEventAttributes?.result,
  );
  return result as Result | undefined;
}

function orderText(order: Ordered, result: Result | undefined): string {
  const charge = chargeOf(order);
  if (charge) {
    const { owed, openAttempt, terms, key } = charge;
    const amount = formatAmount(owed.amountMinor, terms.currency);
    const outcome = result?.outcome?.kind ?? result?.kind ?? 'no result';
    return `charges cycle ${owed.cycleNumber}, ${amount}, ${key} (${openAttempt.trigger}): ${outcome}`;
  }
  if (order.type !== 'record') return order.type;
  const { change } = order.args[0] as { change: Change };
  return textOf(change.state.latest, change.state.terms).what;
}

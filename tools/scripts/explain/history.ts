import { readFileSync } from 'node:fs';
import { formatInstant } from '../../../domain/calendar.ts';
import { formatAmount } from '../../../domain/money.ts';
import { chargeKey } from '../../../domain/payment-intent.ts';
import type { Change } from '../../../domain/subscription/change.ts';
import { textOf } from '../../../domain/subscription/entries.ts';
import type { Entry } from '../../../domain/subscription/entries.ts';
import { derive, stateDifferences, UnderivableError } from '../../../domain/subscription/ledger.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { SubscriptionInput } from '../../../workflows/subscription/messages.ts';
import { minuteText, printable } from '../client/terminal.ts';
import type { Captured } from '../replay/capture.ts';
import { msOf, textsOf, valuesOf } from '../replay/compare.ts';
import { createReplay } from '../replay/replay.ts';
import type { Replayed } from '../replay/replay.ts';
import type { CycleAttempt } from '../../../db/repositories/payments/cycle-attempts.ts';

/**
 * Explains a run from its history alone: what it began with, each charge, change and wait with its event, and what does
 * not fit together. `recorded`: the attempts of the rows, to compare.
 */
export async function historyLines(
  file: string,
  recorded: readonly CycleAttempt[] | null,
): Promise<{ lines: string[]; problems: string[] }> {
  const replay = await createReplay();
  const lines: string[] = [];
  const problems: string[] = [];
  for await (const run of replay([[file, JSON.parse(readFileSync(file, 'utf8'))]])) {
    lines.push(...stepLines(run));
    problems.push(...historyProblems(run), ...rowProblems(run, recorded ?? []));
  }
  return { lines: lines.map(printable), problems: problems.map(printable) };
}

/** Returns what in the history contradicts the rest of it, by the rules of this build. */
export function historyProblems(run: Replayed): string[] {
  const stop = run.error === null ? [] : [`the run cannot go on with this build: ${run.error}`];
  return [...stateProblems(run), ...run.differences, ...stop];
}

/** Each state in the history must follow from the entries beside it: all, or at least the latest. */
function stateProblems({ events }: Replayed): string[] {
  return events.flatMap((event) =>
    snapshotsIn(event).flatMap(({ state, entries }) => {
      const subject = `event ${String(event.eventId)}: its state`;
      if (entries[0]?.version !== 1)
        return textsOf(subject, entries.at(-1), state.latest, 'latest');
      try {
        const { state: derived } = derive(state, entries, attemptsIn(entries));
        return stateDifferences(withoutStarts(derived), withoutStarts(state)).flatMap((each) =>
          textsOf(subject, each.derived, each.recorded, each.what),
        );
      } catch (error) {
        if (error instanceof UnderivableError) return [`${subject}: ${error.message}`];
        throw error;
      }
    }),
  );
}

type Snapshot = Pick<SubscriptionInput, 'state' | 'entries'>;

/** A run begins with a snapshot, and reads others from the row. */
function snapshotsIn(event: Replayed['events'][number]): Snapshot[] {
  const started = event.workflowExecutionStartedEventAttributes;
  const result = event.markerRecordedEventAttributes?.details?.['result'];
  const finished = event.activityTaskCompletedEventAttributes;
  return [started?.input, result, finished?.result]
    .flatMap((payloads) => valuesOf(payloads))
    .filter((value): value is Snapshot => {
      const { state, entries } = (value ?? {}) as Partial<Snapshot>;
      return state !== undefined && entries !== undefined && entries.length > 0;
    });
}

/** When an attempt was opened is not in its outcome's entry. */
const withoutStarts = (state: SubscriptionState): SubscriptionState => ({
  ...state,
  owed: state.owed && { ...state.owed, automaticAttemptsAt: [] },
});

const attemptsIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => ('attemptNumber' in entry ? [{ ...entry, openedAt: null }] : []));

interface Charging {
  state: SubscriptionState;
}

function chargesIn(captured: readonly Captured[]) {
  return captured.flatMap((each) => {
    if (each.kind !== 'local activity' || each.type !== 'chargeAttempt') return [];
    const { owed, openAttempt, terms } = (each.args[0] as Charging).state;
    return owed && openAttempt ? [{ seq: each.seq, owed, openAttempt, terms }] : [];
  });
}

function rowProblems({ captured }: Replayed, recorded: readonly CycleAttempt[]): string[] {
  const keys = new Map(recorded.map(({ attempt }) => [attempt.gatewayKey, attempt]));
  return recorded.length === 0
    ? []
    : chargesIn(captured).flatMap(({ owed, openAttempt }) => {
        const key = chargeKey(owed.intentId, openAttempt.attemptNumber);
        const row = keys.get(key);
        if (!row) return [`${key} is in the history, and in no row`];
        const { trigger, cause } = openAttempt;
        const derived = { amountMinor: owed.amountMinor, trigger, cause };
        const { amountMinor, trigger: rowTrigger, cause: rowCause } = row;
        return textsOf(key, derived, { amountMinor, trigger: rowTrigger, cause: rowCause });
      });
}

function stepLines({ events, captured }: Replayed): string[] {
  const charges = new Map(chargesIn(captured).map((charge) => [charge.seq, charge]));
  const activities = new Map(
    captured.flatMap((each) => (each.kind === 'local activity' ? [[each.seq, each]] : [])),
  );
  return events.flatMap((event) => {
    const { eventId, eventTime } = event;
    const marker = event.markerRecordedEventAttributes;
    const timer = event.timerStartedEventAttributes;
    const startedAt = eventTime ? msOf(eventTime) : 0;
    const at = (text: string): string[] => [
      `  event ${String(eventId).padStart(3)}  ${minuteText(startedAt)}  ${text}`,
    ];
    if (timer) {
      const found = captured.find(
        (each) => each.kind === 'timer' && String(each.seq) === timer.timerId,
      );
      const ms = found?.kind === 'timer' ? found.durationMs : 0;
      return at(`waits until ${formatInstant(startedAt + ms)}`);
    }
    if (marker?.markerName !== 'core_local_activity') return [];
    const [data] = valuesOf(marker.details?.['data']) as { seq: number }[];
    const [result] = valuesOf(marker.details?.['result']) as {
      kind?: string;
      outcome?: { kind: string };
    }[];
    const charge = charges.get(data?.seq ?? 0);
    const activity = activities.get(data?.seq ?? 0);
    if (charge) {
      const { owed, openAttempt, terms } = charge;
      const amount = formatAmount(owed.amountMinor, terms.currency);
      const key = chargeKey(owed.intentId, openAttempt.attemptNumber);
      const outcome = result?.outcome?.kind ?? result?.kind ?? 'no result';
      return at(
        `charges cycle ${owed.cycleNumber}, ${amount}, ${key} (${openAttempt.trigger}): ${outcome}`,
      );
    }
    if (activity?.type === 'record') {
      const { change } = activity.args[0] as { change: Change };
      return at(textOf(change.state.latest).what);
    }
    return activity ? at(activity.type) : [];
  });
}

import { derive, stateDifferences, UnderivableError } from '../../../domain/subscription/ledger.ts';
import type { OpenedAttempt } from '../../../domain/subscription/ledger.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { SubscriptionInput } from '../../../workflows/subscription/messages.ts';
import { textsOf, valuesOf } from './compare.ts';
import type { Replayed } from './replay.ts';

/** Returns what in the history contradicts the rest of it, by the rules of this build. */
export function historyProblems(run: Replayed): string[] {
  const stop = run.error === null ? [] : [`the run cannot go on with this build: ${run.error}`];
  return [...stateProblems(run), ...run.differences, ...stop];
}

/** Each state in the history must follow from the entries beside it: all, or at least the latest. */
function stateProblems({ events }: Replayed): string[] {
  return events.flatMap((event) =>
    snapshotsIn(event).flatMap((snapshot) => {
      const { state, entries } = snapshot;
      const subject = `event ${String(event.eventId)}: its state`;
      if (entries[0]?.version !== 1)
        return textsOf(subject, entries.at(-1), state.latest, 'latest');
      try {
        const { state: derived } = derive(state, entries, attemptsIn(snapshot));
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

/** When an attempt was opened is not in its outcome's entry, and dates of retries follow from it. */
const withoutStarts = (state: SubscriptionState): SubscriptionState => ({
  ...state,
  owed: state.owed && { ...state.owed, automaticAttemptsAt: [], nextRetryAt: null },
});

/** The attempts with an outcome, and the open one. */
function attemptsIn({ state, entries }: Snapshot): OpenedAttempt[] {
  const settled = entries.flatMap((entry) =>
    'attemptNumber' in entry ? [{ ...entry, openedAt: null }] : [],
  );
  const { owed, openAttempt } = state;
  if (!owed || !openAttempt) return settled;
  const { attemptNumber, trigger, startedAt: openedAt } = openAttempt;
  return [...settled, { intentId: owed.intentId, attemptNumber, trigger, openedAt }];
}

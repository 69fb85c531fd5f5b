import {
  derive,
  differencesIn,
  stateDifferences,
  UnderivableError,
} from '../../../domain/subscription/ledger.ts';
import type { OpenedAttempt } from '../../../domain/subscription/ledger.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { SubscriptionInput } from '../../../workflows/subscription/messages.ts';
import { differences, differenceText, valuesOf } from './compare.ts';
import type { Replayed } from './replay.ts';

/** Returns what in the history contradicts the rest of it, by the rules of this build. */
export function historyProblems({ events, captured, error }: Replayed): string[] {
  const stop = error === null ? [] : [`the run cannot go on with this build: ${error}`];
  const states = events.flatMap((event) => {
    const subject = `event ${String(event.eventId)}: its state`;
    return snapshotsIn(event).flatMap((snapshot) => stateProblems(subject, snapshot));
  });
  return [...states, ...differences(events, captured), ...stop];
}

/** The state must follow from the entries beside it: from all, else its latest entry is theirs. */
function stateProblems(subject: string, snapshot: Snapshot): string[] {
  const { state, entries } = snapshot;
  try {
    const found =
      entries[0]?.version === 1
        ? stateDifferences(
            withoutStarts(derive(state, entries, attemptsIn(snapshot)).state),
            withoutStarts(state),
          )
        : differencesIn('latest', entries.at(-1), state.latest);
    return found.map((each) => differenceText(subject, each));
  } catch (error) {
    if (error instanceof UnderivableError) return [`${subject}: ${error.message}`];
    throw error;
  }
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

import type { Payload } from '@temporalio/common';
import proto from '@temporalio/proto';
import {
  derive,
  differencesIn,
  stateDifferences,
  UnderivableError,
} from '../../domain/subscription/ledger.ts';
import type { OpenedAttempt } from '../../domain/subscription/ledger.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { isAltered } from '../../runtime/payload-digest.ts';
import type { SubscriptionInput } from '../../workflows/subscription/messages.ts';
import { differences, differenceText, msOf, valuesOf } from './compare.ts';
import type { Replayed } from './replay.ts';

const { EventType } = proto.temporal.api.enums.v1;

/** Returns what in the history contradicts the rest of it, by the rules of this build. */
export function historyProblems({ events, captured, error }: Replayed): string[] {
  const stop = error === null ? [] : [`the run cannot go on with this build: ${error}`];
  const states = events.flatMap((event) => {
    const subject = `event ${String(event.eventId)}: its state`;
    return snapshotsIn(event).flatMap((snapshot) => stateProblems(subject, snapshot));
  });
  const altered = events.flatMap((event) =>
    payloadsIn(event).some(isAltered)
      ? [`event ${String(event.eventId)}: a payload is not what was written, by its digest`]
      : [],
  );
  return [
    ...altered,
    ...timeProblems(events),
    ...states,
    ...differences(events, captured),
    ...stop,
  ];
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

/** Temporal may hold these back until a workflow task has ended, and then they keep their earlier time. */
const MAY_BE_HELD_BACK: ReadonlySet<unknown> = new Set([
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
  EventType.EVENT_TYPE_TIMER_FIRED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
]);

/** No event is before the one that it follows, and no timer ends early. */
function timeProblems(events: readonly Event[]): string[] {
  const byId = new Map(events.map((event) => [String(event.eventId), event]));
  let latest = events[0];
  return events.flatMap((event) => {
    const subject = `event ${String(event.eventId)}: its time is before`;
    const atMs = timeOf(event);
    const latestMs = timeOf(latest);
    const timer = byId.get(String(event.timerFiredEventAttributes?.startedEventId));
    const lengthMs = msOf(timer?.timerStartedEventAttributes?.startToFireTimeout ?? {});
    const isEarly = atMs < latestMs && !MAY_BE_HELD_BACK.has(event.eventType);
    const found = [
      ...(isEarly ? [`${subject} that of event ${String(latest?.eventId)}`] : []),
      ...(timer && atMs < timeOf(timer) + lengthMs
        ? [`${subject} the end of its timer, event ${String(timer.eventId)}`]
        : []),
    ];
    if (atMs >= latestMs) latest = event;
    return found;
  });
}

const timeOf = (event: Event | undefined): number => msOf(event?.eventTime ?? {});

function payloadsIn(value: unknown): Payload[] {
  if (typeof value !== 'object' || value === null) return [];
  if (isPayload(value)) return [value];
  return Object.values(value).flatMap(payloadsIn);
}

const isPayload = (value: object): value is Payload => 'metadata' in value && 'data' in value;

type Event = Replayed['events'][number];
type Snapshot = Pick<SubscriptionInput, 'state' | 'entries'>;

/** A run begins with a snapshot, and reads others from the row. */
function snapshotsIn(event: Event): Snapshot[] {
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

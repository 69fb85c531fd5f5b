import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { formatInstant } from '../../../domain/calendar.ts';
import { differencesIn, jsonOf } from '../../../domain/subscription/ledger.ts';
import type { Difference } from '../../../domain/subscription/ledger.ts';
import type { Captured } from './capture.ts';

type Event = temporal.api.history.v1.IHistoryEvent;
type Payloads = temporal.api.common.v1.IPayloads | null | undefined;

/**
 * Returns what this build would do in another way, with the event: the end of a timer, the input of a queued activity or
 * of the next run, the answer to a command.
 */
export function differences(events: readonly Event[], captured: readonly Captured[]): string[] {
  return events.flatMap((event) =>
    differencesAt(event, captured).map((text) => `event ${String(event.eventId)}: ${text}`),
  );
}

function differencesAt(event: Event, captured: readonly Captured[]): string[] {
  const timer = event.timerStartedEventAttributes;
  if (timer) return timerDifferences(event, timer, captured);
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled) {
    const id = scheduled.activityId;
    const found = captured.find(
      (each) => each.kind === 'activity' && String(each.seq) === String(id),
    );
    return found?.kind === 'activity'
      ? textsOf(`activity ${found.type}`, found.args, valuesOf(scheduled.input))
      : [];
  }
  const successor = event.workflowExecutionContinuedAsNewEventAttributes;
  if (successor) {
    const found = captured.find((each) => each.kind === 'successor');
    return found ? textsOf('next run', found.args, valuesOf(successor.input)) : [];
  }
  const answered = event.workflowExecutionUpdateCompletedEventAttributes;
  if (answered) {
    const { updateId } = answered.meta ?? {};
    const found = captured.find((each) => each.kind === 'answer' && each.updateId === updateId);
    const [answer] = valuesOf(answered.outcome?.success);
    return found?.kind === 'answer' ? textsOf('answer', found.answer, answer) : [];
  }
  return [];
}

function timerDifferences(
  { eventTime }: Event,
  { timerId, startToFireTimeout }: temporal.api.history.v1.ITimerStartedEventAttributes,
  captured: readonly Captured[],
): string[] {
  const found = captured.find((each) => each.kind === 'timer' && String(each.seq) === timerId);
  if (found?.kind !== 'timer' || !startToFireTimeout) return [];
  const recordedMs = msOf(startToFireTimeout);
  if (recordedMs === found.durationMs) return [];
  const startedAt = eventTime ? msOf(eventTime) : 0;
  const [was, is] = [recordedMs, found.durationMs].map((ms) => formatInstant(startedAt + ms));
  return [`the timer ended at ${was}, by this build at ${is}`];
}

interface Seconds {
  /** Of the package `long`, or a bigint. */
  seconds?: { toString: () => string } | null;
  nanos?: number | null;
}

export function msOf({ seconds, nanos }: Seconds): number {
  return Number(seconds?.toString() ?? 0) * 1_000 + (nanos ?? 0) / 1_000_000;
}

/** Compares what the workflow ordered, as JSON, with what is recorded. */
export function textsOf(subject: string, ordered: unknown, recorded: unknown): string[] {
  const inJson = JSON.parse(JSON.stringify(ordered ?? null)) as unknown;
  return differencesIn('', inJson, recorded ?? null).map((each) => differenceText(subject, each));
}

export function differenceText(subject: string, { what, derived, recorded }: Difference): string {
  return `${subject}: ${what} was ${jsonOf(recorded)}, by this build it is ${jsonOf(derived)}`;
}

export function valuesOf(payloads: Payloads): unknown[] {
  return (payloads?.payloads ?? []).map((payload) => defaultPayloadConverter.fromPayload(payload));
}

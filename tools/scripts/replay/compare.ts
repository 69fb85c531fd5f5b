import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { formatInstant } from '../../../domain/calendar.ts';
import { differencesIn, jsonOf } from '../../../domain/subscription/ledger.ts';
import type { Difference } from '../../../domain/subscription/ledger.ts';
import type { Captured } from './capture.ts';

type Event = temporal.api.history.v1.IHistoryEvent;
type Payload = temporal.api.common.v1.IPayload;
type Payloads = temporal.api.common.v1.IPayloads | null | undefined;

/**
 * Returns what this build would do in another way, with the event: the end of a timer, the input of a queued activity or
 * of the next run, the answer to a command, the text of a step in the Web UI.
 */
export function differences(events: readonly Event[], captured: readonly Captured[]): string[] {
  return events.flatMap((event) =>
    differencesAt(event, captured).map((text) => `event ${String(event.eventId)}: ${text}`),
  );
}

function differencesAt(event: Event, captured: readonly Captured[]): string[] {
  const ordered = orderOf(event, captured);
  if (ordered) {
    const [said] = valuesOf(asList(event.userMetadata?.summary));
    return [
      ...(said === undefined ? [] : textsOf('summary', ordered.summary, said)),
      ...orderDifferences(event, ordered),
    ];
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

type Order = Extract<Captured, { seq: number }>;

/** The timer or activity that the workflow of this build orders at this event. */
function orderOf(event: Event, captured: readonly Captured[]): Order | undefined {
  const marker = event.markerRecordedEventAttributes;
  const [local] = valuesOf(marker?.details?.['data']) as { seq: number }[];
  const id =
    event.timerStartedEventAttributes?.timerId ??
    event.activityTaskScheduledEventAttributes?.activityId ??
    (marker?.markerName === 'core_local_activity' ? local?.seq : undefined);
  const kind = event.timerStartedEventAttributes ? 'timer' : marker ? 'local activity' : 'activity';
  return captured.find(
    (each): each is Order => each.kind === kind && 'seq' in each && String(each.seq) === String(id),
  );
}

/** The input of a local activity is not in a history. */
function orderDifferences(event: Event, ordered: Order): string[] {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled && ordered.kind === 'activity') {
    return textsOf(`activity ${ordered.type}`, ordered.args, valuesOf(scheduled.input));
  }
  const timeout = event.timerStartedEventAttributes?.startToFireTimeout;
  if (!timeout || ordered.kind !== 'timer' || msOf(timeout) === ordered.durationMs) return [];
  const startedAt = event.eventTime ? msOf(event.eventTime) : 0;
  const [was, is] = [msOf(timeout), ordered.durationMs].map((ms) => formatInstant(startedAt + ms));
  return [`the timer ended at ${was}, by this build at ${is}`];
}

const asList = (payload: Payload | null | undefined): Payloads => ({
  payloads: payload ? [payload] : [],
});

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

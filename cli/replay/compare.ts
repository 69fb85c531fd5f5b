import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { formatInstant } from '../../domain/calendar.ts';
import { differencesIn, jsonOf } from '../../domain/subscription/ledger.ts';
import type { Difference } from '../../domain/subscription/ledger.ts';
import type { Captured } from './capture.ts';

type Event = temporal.api.history.v1.IHistoryEvent;
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

/** The order of this build that an event records. Undefined for another event, and if this build did not order it. */
export function orderOf(event: Event, captured: readonly Captured[]): Captured | undefined {
  const find = (kind: Captured['kind'], id: unknown): Captured | undefined =>
    captured.find((each) => each.kind === kind && String(idOf(each)) === String(id));
  const answered = event.workflowExecutionUpdateCompletedEventAttributes;
  if (answered) return find('answer', answered.meta?.updateId);
  const timer = event.timerStartedEventAttributes;
  if (timer) return find('timer', timer.timerId);
  const queued = event.activityTaskScheduledEventAttributes;
  if (queued) return find('activity', queued.activityId);
  const marker = event.markerRecordedEventAttributes;
  if (marker?.markerName === 'core_local_activity') {
    const [data] = valuesOf(marker.details?.['data']) as { seq: number }[];
    return find('local activity', data?.seq);
  }
  const isContinued = event.workflowExecutionContinuedAsNewEventAttributes;
  return isContinued ? captured.find(({ kind }) => kind === 'successor') : undefined;
}

function idOf(order: Captured): unknown {
  if (order.kind === 'answer') return order.updateId;
  return order.kind === 'successor' ? undefined : order.seq;
}

function differencesAt(event: Event, captured: readonly Captured[]): string[] {
  const order = orderOf(event, captured);
  return order ? [...summaryDifferences(event, order), ...orderDifferences(event, order)] : [];
}

/** A scrubbed history has no texts. */
function summaryDifferences(event: Event, order: Captured): string[] {
  const said = event.userMetadata?.summary;
  if (!said || !('summary' in order)) return [];
  return textsOf('summary', order.summary, valuesOf({ payloads: [said] })[0]);
}

function orderDifferences(event: Event, order: Captured): string[] {
  switch (order.kind) {
    case 'timer':
      return timerDifferences(event, order.durationMs);
    case 'activity': {
      const input = event.activityTaskScheduledEventAttributes?.input;
      return textsOf(`activity ${order.type}`, order.args, valuesOf(input));
    }
    case 'successor': {
      const input = event.workflowExecutionContinuedAsNewEventAttributes?.input;
      return textsOf('next run', order.args, valuesOf(input));
    }
    case 'answer': {
      const outcome = event.workflowExecutionUpdateCompletedEventAttributes?.outcome;
      return textsOf('answer', order.answer, valuesOf(outcome?.success)[0]);
    }
    // Its input is not in a history.
    case 'local activity':
      return [];
  }
}

function timerDifferences(event: Event, durationMs: number): string[] {
  const length = event.timerStartedEventAttributes?.startToFireTimeout;
  const recordedMs = length ? msOf(length) : durationMs;
  if (recordedMs === durationMs) return [];
  const startedAt = event.eventTime ? msOf(event.eventTime) : 0;
  const [was, is] = [recordedMs, durationMs].map((ms) => formatInstant(startedAt + ms));
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

/** Returns one text for each difference. `ordered` is converted to JSON first, as it is in a history. */
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

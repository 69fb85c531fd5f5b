import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamRef } from '../db/repositories/webhooks/deliveries.ts';
import { createFairSlots } from './fair-slots.ts';
import { StreamRound } from './stream-round.ts';
import type { RoundDeps, SubmittedStream } from './stream-round.ts';

export interface StreamToDeliver extends StreamRef {
  /** The caller's real time, which decides which retries are due. */
  nowAt: number;
}

/**
 * Makes the first delivery attempts of events, and their retries that are due, in the background of the
 * process that committed the events. The endpoint queue sends the deliveries that the dispatcher cannot send
 * at once.
 */
export interface DeliveryDispatcher {
  /**
   * Sends the pending events of the stream soon. If too many streams wait, drops the stream instead; then the
   * periodic sweep wakes the endpoint queues. Returns at once and never throws.
   */
  submit(stream: StreamToDeliver): void;
  /**
   * Submits the stream. Resolves when the stream's events are sent or left to the endpoint queues, at the latest
   * after `withinMs`.
   */
  deliver(stream: StreamToDeliver, withinMs: number): Promise<void>;
  /**
   * Stops the dispatcher: no further request begins. Resolves when the requests in flight are recorded and
   * the delayed wake-ups of endpoint queues are sent, at the latest after `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<void>;
}

export type DispatcherDeps = Omit<RoundDeps, 'isDraining' | 'knownEndpoints'>;

/**
 * Maximum number of streams processed at the same time. Each waits for its slowest endpoint, at most 15 s a
 * request.
 */
const STREAMS_AT_ONCE = 64;
/**
 * Maximum number of streams of one merchant processed at the same time, so that slow endpoints do not delay
 * other merchants.
 */
const MERCHANT_STREAMS_AT_ONCE = 16;
/**
 * Maximum number of streams that wait to be processed. Further streams are dropped; the sweep wakes their
 * endpoint queues.
 */
const MOST_WAITING = 5_000;
/** Maximum number of streams of one merchant that wait to be processed. */
const MERCHANT_MOST_WAITING = 4_000;

type Round = SubmittedStream & { isOver: Promise<void> };

export function createDeliveryDispatcher(deps: DispatcherDeps): DeliveryDispatcher {
  const rounds = new Map<string, Round>();
  const slots = createFairSlots({ most: STREAMS_AT_ONCE, mostOfOne: MERCHANT_STREAMS_AT_ONCE });
  let isDraining = false;
  const roundDeps: RoundDeps = {
    ...deps,
    isDraining: () => isDraining,
    knownEndpoints: new Map(),
  };

  const run = async (key: string, round: Round): Promise<void> => {
    const free = await slots.take(round.ref.merchantId);
    try {
      while (round.isWanted) await new StreamRound(roundDeps, round).run();
    } catch (error) {
      // No process sends these deliveries until their claims expire. Then the sweep wakes the endpoint queues.
      const reason = error instanceof Error ? error.message : String(error);
      deps.logger?.warn({ ...round.ref, error: reason }, 'first delivery failed');
    } finally {
      rounds.delete(key);
      free();
    }
  };

  const roundOf = ({ nowAt, merchantId, streamId }: StreamToDeliver): Round | null => {
    const key = `${merchantId}/${streamId}`;
    const current = rounds.get(key);
    if (current) {
      current.isWanted = true;
      current.notify();
      return current;
    }
    const waiting = slots.waiting(merchantId);
    if (waiting.all >= MOST_WAITING || waiting.own >= MERCHANT_MOST_WAITING) return null;
    const submittedAt = performance.now();
    const round: Round = {
      ref: { merchantId, streamId },
      now: () => nowAt + Math.floor(performance.now() - submittedAt),
      isWanted: true,
      notify: () => undefined,
      isOver: Promise.resolve(),
    };
    rounds.set(key, round);
    round.isOver = run(key, round);
    return round;
  };

  return {
    submit(stream) {
      roundOf(stream);
    },
    async deliver(stream, withinMs) {
      const round = roundOf(stream);
      if (round) await within(withinMs, round.isOver);
    },
    async drain(timeoutMs) {
      isDraining = true;
      const end = async (): Promise<void> => {
        while (rounds.size > 0) {
          await Promise.all([...rounds.values()].map(({ isOver }) => isOver));
        }
        await deps.wakes.flush();
      };
      await within(timeoutMs, end());
    },
  };
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal }).catch(() => undefined);
  await Promise.race([work, late]);
  timeout.abort();
}

import { setTimeout as sleep } from 'node:timers/promises';
import { DomainError } from '../../../domain/errors.ts';

/** Maximum number of calls of one merchant that wait in this process. */
const WAITING_MAX = 4;
/** Time in ms between two reads of a waiting call. Each is one statement; no connection is held in between. */
const POLL_MS = 1_000;

export interface PollOptions {
  readonly merchantId: string;
  readonly waitMs: number;
  readonly closed: () => AbortSignal;
}

export type FeedWaits = ReturnType<typeof createFeedWaits>;

/** The long polls of this process. */
export function createFeedWaits(pollMs = POLL_MS) {
  const waiting = new Map<string, number>();
  const stopping = new AbortController();

  return {
    /**
     * Repeats `read` each second until it returns a result that `isEnough`. Returns the latest result after `waitMs`, and
     * at once when the client has gone or the process stops.
     * @throws DomainError `rate_limit_exceeded` if the merchant has four waiting calls in this process.
     */
    async poll<T>(
      { merchantId, waitMs, closed }: PollOptions,
      read: () => Promise<T>,
      isEnough: (result: T) => boolean,
    ): Promise<T> {
      const overAt = performance.now() + waitMs;
      let result = await read();
      if (waitMs === 0 || stopping.signal.aborted || isEnough(result)) return result;
      const others = waiting.get(merchantId) ?? 0;
      if (others >= WAITING_MAX) {
        const text = `At most ${WAITING_MAX} calls may wait for events at the same time.`;
        throw new DomainError('rate_limit_exceeded', text, { retryAfterSeconds: 1 });
      }
      waiting.set(merchantId, others + 1);
      const signal = AbortSignal.any([closed(), stopping.signal]);
      try {
        for (;;) {
          const leftMs = overAt - performance.now();
          if (leftMs <= 0) return result;
          await sleep(Math.min(pollMs, leftMs), undefined, { signal }).catch(() => undefined);
          if (signal.aborted) return result;
          result = await read();
          if (isEnough(result)) return result;
        }
      } finally {
        const left = (waiting.get(merchantId) ?? 1) - 1;
        if (left > 0) waiting.set(merchantId, left);
        else waiting.delete(merchantId);
      }
    },
    /** Number of calls of a merchant that wait. */
    waiting: (merchantId: string): number => waiting.get(merchantId) ?? 0,
    /** Ends the waits that have begun, and lets no other begin. */
    stop(): void {
      stopping.abort();
    },
  };
}

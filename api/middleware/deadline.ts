import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';

/** Longer than an outcome may take: 5 s until Temporal accepts the order, then 25 s. */
const LATE_AFTER_MS = 32_000;
/** Grace period to void the order and answer. Both times together are less than a key's lease (45 s). */
const GRACE_MS = 3_000;

/**
 * Answers 503 when a request takes longer than 35 s. The work continues, and a repeat with the same key
 * finds its outcome. `ctx.state.late` aborts 3 s before the 503: an order without a key, which the
 * caller cannot repeat, must be voided then.
 */
export function deadline(lateAfterMs: number = LATE_AFTER_MS, graceMs: number = GRACE_MS) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const late = new AbortController();
    ctx.state.late = late.signal;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        late.abort();
        // Started here, so that a process that was frozen still grants the whole grace period.
        timer = setTimeout(() => reject(new DomainError('service_unavailable')), graceMs);
      }, lateAfterMs);
    });
    try {
      await Promise.race([next(), over]);
    } finally {
      clearTimeout(timer);
    }
  };
}

import { DomainError } from '../../domain/errors.ts';
import { insideRequest } from '../../runtime/request-scope.ts';
import type { Context } from '../context.ts';

/**
 * Time in ms after which `late` aborts. Longer than the wait for an outcome (25 s) and a call of Temporal that begins
 * at its end (4.5 s).
 */
const LATE_AFTER_MS = 32_000;
/** Grace period in ms to void the order and answer. 32 s + 3 s is less than the lease of an Idempotency-Key (45 s). */
const GRACE_MS = 3_000;

/**
 * Answers 503 after 35 s. The request then begins nothing more, and its open transaction is rolled back.
 * `ctx.state.late` aborts 3 s before, to void an order that has no key.
 */
export function deadline(lateAfterMs: number = LATE_AFTER_MS, graceMs: number = GRACE_MS) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const late = new AbortController();
    const answered = new AbortController();
    ctx.state.late = late.signal;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        late.abort();
        // The second timer starts here, so that a suspended process still grants the whole grace period.
        timer = setTimeout(() => {
          answered.abort();
          reject(new DomainError('service_unavailable'));
        }, graceMs);
      }, lateAfterMs);
    });
    try {
      await Promise.race([insideRequest(answered.signal, next), over]);
    } finally {
      clearTimeout(timer);
    }
  };
}

import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';

/** More than the longest way to an outcome: 5 s to be accepted, then 25 s. */
const LATE_AFTER_MS = 32_000;
/** For the last word of who has to say what became of it. Altogether less than a key's lease (45 s). */
const LAST_WORD_MS = 3_000;

/**
 * Answers 503 when a request takes too long, whatever it waits for. What it was doing goes on and is
 * found by a repeat with the same key. `ctx.state.late` tells 3 s before: what nobody can repeat is
 * given up then.
 */
export function deadline(lateAfterMs: number = LATE_AFTER_MS, lastWordMs: number = LAST_WORD_MS) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const late = new AbortController();
    ctx.state.late = late.signal;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        late.abort();
        // Only now, so that a process that stood still gives them all the same.
        timer = setTimeout(() => reject(new DomainError('service_unavailable')), lastWordMs);
      }, lateAfterMs);
    });
    try {
      await Promise.race([next(), over]);
    } finally {
      clearTimeout(timer);
    }
  };
}

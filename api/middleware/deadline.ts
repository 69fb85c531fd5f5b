import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';

/** More than the longest way to an outcome (5 s to be accepted, then 25 s), less than a key's lease (45 s). */
const REQUEST_LIMIT_MS = 35_000;

/**
 * Answers 503 when a request takes too long, whatever it waits for. What it was doing goes on and is
 * found by a repeat with the same key.
 */
export function deadline(limitMs: number = REQUEST_LIMIT_MS) {
  return async (_ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new DomainError('service_unavailable')), limitMs);
    });
    try {
      await Promise.race([next(), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

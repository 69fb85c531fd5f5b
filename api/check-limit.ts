import type { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../domain/errors.ts';

/** Throws `rate_limit_exceeded` if the limiter has counted its points for `key`. Counts nothing. */
export async function checkLimit(limiter: RateLimiterMemory, key: string): Promise<void> {
  const counted = await limiter.get(key);
  if (counted === null || counted.consumedPoints < limiter.points) return;
  throw limitError(counted);
}

export function limitError({ msBeforeNext }: RateLimiterRes): DomainError {
  const retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1_000));
  return new DomainError('rate_limit_exceeded', undefined, { retryAfterSeconds });
}

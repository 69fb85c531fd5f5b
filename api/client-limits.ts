import type { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../domain/errors.ts';
import ipaddr from 'ipaddr.js';
import type { Context } from './context.ts';

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

/** Returns the client's address; for IPv6 its /64 network, because one client has all addresses of a /64. */
export function addressOf({ ip }: Context): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  return address.kind() === 'ipv6'
    ? address.toByteArray().slice(0, 8).join('.')
    : address.toString();
}

import ipaddr from 'ipaddr.js';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { DomainError } from '../../../domain/errors.ts';
import type { Context } from '../../context.ts';

/** Cards tried on one checkout session, refused ones included; then its page takes no more. */
export const CARD_TRIES_MAX = 5;

/** Declined cards that one address may bring in an hour, on all pages together. */
const DECLINES_PER_HOUR = 10;

/** Addresses of pages that are not there, that one address may ask for in a minute. */
const UNKNOWN_PER_MINUTE = 20;

/**
 * What hosted pages do against the testing of stolen cards and the guessing of addresses. Counted for
 * each client address within this process: several processes allow several times as much. Rule:
 * reliability §4.
 */
export interface PageLimits {
  /**
   * What `find` gives. Finding nothing counts, and an address that did so too often is refused
   * before anything is looked up. Throws `rate_limit_exceeded`.
   */
  lookUp<T>(ctx: Context, find: () => Promise<T | null>): Promise<T | null>;
  /** Throws `rate_limit_exceeded` for an address that brought too many declined cards. */
  expectFewDeclines(ctx: Context): Promise<void>;
  /** One more declined card. The caller counts each card once. */
  countDecline(ctx: Context): Promise<void>;
}

export function createPageLimits(): PageLimits {
  const declines = new RateLimiterMemory({ points: DECLINES_PER_HOUR, duration: 3_600 });
  const unknown = new RateLimiterMemory({ points: UNKNOWN_PER_MINUTE, duration: 60 });
  return {
    async lookUp(ctx, find) {
      await expectLess(unknown, ctx);
      const found = await find();
      if (found === null) await unknown.penalty(addressOf(ctx));
      return found;
    },
    expectFewDeclines: (ctx) => expectLess(declines, ctx),
    async countDecline(ctx) {
      await declines.penalty(addressOf(ctx));
    },
  };
}

async function expectLess(limiter: RateLimiterMemory, ctx: Context): Promise<void> {
  const counted = await limiter.get(addressOf(ctx));
  if (counted === null || counted.consumedPoints < limiter.points) return;
  throw new DomainError('rate_limit_exceeded', undefined, {
    retryAfterSeconds: Math.max(1, Math.ceil(counted.msBeforeNext / 1_000)),
  });
}

/** The client's address; of IPv6 the network, since a whole /64 is one customer's. */
function addressOf({ ip }: Context): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  return address.kind() === 'ipv6'
    ? address.toByteArray().slice(0, 8).join('.')
    : address.toString();
}

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { DomainError } from '../../domain/errors.ts';
import { callerOf, pathParam } from '../context.ts';
import type { Context } from '../context.ts';

/** How much one merchant may ask of one API process within a window, which its first request opens. */
export interface RateLimits {
  readonly windowSeconds: number;
  readonly requests: number;
  readonly readsOfOneSubscription: number;
}

/** The limits of D-22 with as many requests in a second as the settings say. */
export function limitsPerSecond(requests: number): RateLimits {
  return { windowSeconds: 1, requests, readsOfOneSubscription: 10 };
}

type Deps = Readonly<{ rateLimits: RateLimits }>;

/**
 * Refuses what a merchant asks beyond its share, before the body is read and before a key is claimed.
 * Only for what comes behind authentication: strangers cannot use up a merchant's share. Counted in
 * memory, so with several API processes each grants the whole limit. Rule: D-22.
 */
export function rateLimit({ rateLimits }: Deps) {
  const take = createShare(rateLimits.requests, rateLimits);
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    await take(callerOf(ctx).id);
    await next();
  };
}

/** Refuses to be polled: each subscription has a share of its own. Rules: IF-4.5, D-22. */
export function readLimit({ rateLimits }: Deps) {
  const take = createShare(rateLimits.readsOfOneSubscription, rateLimits);
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    await take(`${callerOf(ctx).id} ${pathParam(ctx, 'subscriptionId')}`);
    await next();
  };
}

function createShare(points: number, { windowSeconds }: RateLimits) {
  const limiter = new RateLimiterMemory({ points, duration: windowSeconds });
  return async (key: string): Promise<void> => {
    try {
      await limiter.consume(key);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      const retryAfterSeconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1_000));
      throw new DomainError('rate_limit_exceeded', undefined, { retryAfterSeconds });
    }
  };
}

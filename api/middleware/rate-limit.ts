import PQueue from 'p-queue';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { callerOf } from '../context.ts';
import type { Context } from '../context.ts';
import { DomainError } from '../../domain/errors.ts';
import { isId } from '../../domain/ids.ts';
import { memberOf } from '../../domain/subscription/read-command.ts';
import ipaddr from 'ipaddr.js';

/** Limits of one merchant in one API process. A time window starts with its first request. */
export interface RateLimits {
  readonly windowSeconds: number;
  readonly requests: number;
  readonly readsOfOneSubscription: number;
}

export function limitsPerSecond(requests: number): RateLimits {
  return { windowSeconds: 1, requests, readsOfOneSubscription: 10 };
}

type Deps = Readonly<{ rateLimits: RateLimits }>;

/** Runs after authentication, before a body is read and a key is claimed. */
export function rateLimit({ rateLimits }: Deps) {
  const consume = createLimiter(rateLimits.requests, rateLimits);
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    await consume(callerOf(ctx).id);
    await next();
  };
}

/** Of the subscription that the path or the body names. */
export function readLimit({ rateLimits }: Deps) {
  const consume = createLimiter(rateLimits.readsOfOneSubscription, rateLimits);
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const id = ctx.params['subscriptionId'] ?? memberOf(ctx.state.body, 'subscriptionId');
    if (isId('sub', id)) await consume(`${callerOf(ctx).id} ${id}`);
    await next();
  };
}

/** At most 130 ms each on a slow machine, so that the last one waits less than 3 s. */
const COSTLY_WAITING_MAX = 20;

/**
 * Runs one costly request of a merchant at a time; throws `rate_limit_exceeded` if 20 wait. The requests of other
 * merchants are handled in between.
 */
export function costlyInTurn() {
  const queues = new Map<string, PQueue>();
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const { id } = callerOf(ctx);
    const queue = queues.get(id) ?? new PQueue({ concurrency: 1 });
    if (queue.size >= COSTLY_WAITING_MAX) {
      throw new DomainError('rate_limit_exceeded', undefined, { retryAfterSeconds: 1 });
    }
    queues.set(id, queue);
    try {
      await queue.add(async () => {
        await nextTurn();
        await next();
      });
    } finally {
      if (queue.size + queue.pending === 0) queues.delete(id);
    }
  };
}

function createLimiter(points: number, { windowSeconds }: RateLimits) {
  const limiter = new RateLimiterMemory({ points, duration: windowSeconds });
  return async (key: string): Promise<void> => {
    try {
      await limiter.consume(key);
    } catch (refusal) {
      throw refusal instanceof RateLimiterRes ? limitError(refusal) : refusal;
    }
  };
}

/** Throws `rate_limit_exceeded` if the limiter has counted its points for `key`. Counts nothing. */
export async function checkLimit(limiter: RateLimiterMemory, key: string): Promise<void> {
  const counted = await limiter.get(key);
  if (counted === null || counted.consumedPoints < limiter.points) return;
  throw limitError(counted);
}

function limitError({ msBeforeNext }: RateLimiterRes): DomainError {
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

import { RateLimiterMemory } from 'rate-limiter-flexible';
import { addressOf, checkLimit } from '../../http/caller.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { sign } from './own-requests.ts';

/** Declined cards per live merchant, client address and hour, counted over all pages of the merchant. */
const DECLINES_PER_HOUR = 30;

/** Openings of a gateway's card page per live merchant, client address and 10 minutes. */
const OPENINGS_PER_10_MINUTES = 30;

/** Look-ups after a return from the bank per merchant, client address and 10 minutes. */
const LOOK_UPS_PER_10_MINUTES = 30;

/** Declarations per merchant, client address and hour. */
const DECLARATIONS_PER_HOUR = 20;

/** Requests for a link to the own page per merchant, client address and hour. */
const PORTAL_REQUESTS_PER_HOUR = 10;

/** Requests for unknown pages per client address and minute. */
const UNKNOWN_PER_MINUTE = 20;

interface PageMerchant {
  readonly merchantId: string;
  readonly mode: 'test' | 'live';
}

export type PageLimits = ReturnType<typeof createPageLimits>;

/**
 * Limits against testing stolen cards and guessing page URLs, by client address and merchant: a stranger with the
 * payer's address cannot shut the payer out of other merchants' pages. Each process counts for itself.
 */
export function createPageLimits() {
  const declines = new RateLimiterMemory({ points: DECLINES_PER_HOUR, duration: 3_600 });
  const unknown = new RateLimiterMemory({ points: UNKNOWN_PER_MINUTE, duration: 60 });
  const openings = new RateLimiterMemory({ points: OPENINGS_PER_10_MINUTES, duration: 600 });
  const declarations = new RateLimiterMemory({ points: DECLARATIONS_PER_HOUR, duration: 3_600 });
  const portalRequests = new RateLimiterMemory({
    points: PORTAL_REQUESTS_PER_HOUR,
    duration: 3_600,
  });
  const lookUps = new RateLimiterMemory({ points: LOOK_UPS_PER_10_MINUTES, duration: 600 });
  return {
    /**
     * Returns the result of `find`, and counts a null one, except of a prefetch.
     * @throws DomainError `rate_limit_exceeded` in place of null after too many. A page that exists is always found.
     */
    async lookUp<T>(ctx: Context, find: () => Promise<T | null>): Promise<T | null> {
      const found = await find();
      if (found !== null || isPrefetch(ctx)) return found;
      await spend(unknown, addressOf(ctx));
      return null;
    },
    /** Throws `rate_limit_exceeded`, so that no payer uses up the merchant's request rate at the gateway. */
    async countOpening(ctx: Context, merchant: PageMerchant): Promise<void> {
      if (merchant.mode !== 'live') return;
      await spend(openings, keyOf(ctx, merchant));
    },
    /** Throws `rate_limit_exceeded` after too many. */
    async countDeclaration(ctx: Context, merchantId: string): Promise<void> {
      await spend(declarations, keyOf(ctx, { merchantId }));
    },
    /** Throws `rate_limit_exceeded` after too many. */
    async countPortalRequest(ctx: Context, merchantId: string): Promise<void> {
      await spend(portalRequests, keyOf(ctx, { merchantId }));
    },
    /** False: the caller must not request the look-up. Does not throw, because the payer must see the page. */
    async countLookUp(ctx: Context, merchant: PageMerchant): Promise<boolean> {
      const { consumedPoints } = await lookUps.penalty(keyOf(ctx, merchant));
      return consumedPoints <= lookUps.points;
    },
    /** Throws `rate_limit_exceeded`. Never in test mode, whose declined cards are test cards. */
    async expectFewDeclines(ctx: Context, merchant: PageMerchant): Promise<void> {
      if (merchant.mode === 'live') await checkLimit(declines, keyOf(ctx, merchant));
    },
    /** The caller must call this once for each declined card. */
    async countDecline(ctx: Context, merchant: PageMerchant): Promise<void> {
      if (merchant.mode === 'live') await declines.penalty(keyOf(ctx, merchant));
    },
  };
}

async function spend(limiter: RateLimiterMemory, key: string): Promise<void> {
  await checkLimit(limiter, key);
  await limiter.penalty(key);
}

/** True if a browser loads the page before a person opens it. Any site can make a visitor's browser do so. */
export function isPrefetch(ctx: Context): boolean {
  return ctx.get('Sec-Purpose').includes('prefetch');
}

function keyOf(ctx: Context, { merchantId }: Pick<PageMerchant, 'merchantId'>): string {
  return `${merchantId} ${addressOf(ctx)}`;
}

/** Returns an HMAC of the client's address for storage. Without the session key the HMAC reveals no address. */
export function hashAddress({ sessionKey }: Pick<ApiDeps, 'sessionKey'>, ctx: Context): Buffer {
  return sign(sessionKey, `address:${addressOf(ctx)}`);
}

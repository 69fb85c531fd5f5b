import { findAttempt, markSending } from '../db/repositories/attempts.ts';
import type { Attempt, Settlement } from '../db/repositories/attempts.ts';
import { findDecision } from '../db/repositories/reviews.ts';
import type { Db } from '../db/client.ts';
import { isAskedLongEnough } from '../domain/lookup-delays.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { GatewayRejectedRequest } from '../gateways/port.ts';
import type {
  ChargeOutcome,
  LookupOutcome,
  LookupRequest,
  PaymentGateway,
} from '../gateways/port.ts';

/** How long one activity talks to the gateway about one charge or refund. */
export interface SendBudget {
  /**
   * No send and no question starts later than this after the activity's start, in ms. This time and
   * the gateway client's timeout together must stay below the activity's own timeout of 15 s.
   */
  readonly newSendsForMs: number;
  /** Between two questions, in ms. */
  readonly pauseMs: number;
}

/** For a gateway client with a timeout of 5 s. */
const DEFAULT_SEND_BUDGET: SendBudget = { newSendsForMs: 6_000, pauseMs: 1_000 };

/** Of activities that ask a gateway. */
export interface SendBudgetDeps {
  /** Must fit the gateway client's timeout. Default: 6 s, with a question each second. */
  sendBudget?: SendBudget;
}

export interface ExchangeDeps extends SendBudgetDeps {
  db: Db;
  gateway: PaymentGateway;
}

/** Resends stop at this share of the time for which the gateway honours a key. Design §4. */
const KEY_LIFETIME_SHARE = 0.8;

/** Until when an activity that begins now may begin something with the gateway. */
export function sendsUntil({ sendBudget = DEFAULT_SEND_BUDGET }: SendBudgetDeps): number {
  return performance.now() + sendBudget.newSendsForMs;
}

/** Waits before asking once more. False, at once, when no time is left for it. */
export async function pauseBefore(
  { sendBudget: { pauseMs } = DEFAULT_SEND_BUDGET }: SendBudgetDeps,
  stopAt: number,
): Promise<boolean> {
  if (performance.now() + pauseMs > stopAt) return false;
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
  return true;
}

/** Real time: the gateway counts the age of a key from its first send. */
export function isKeyTooOld(firstSentAt: number | null, gateway: PaymentGateway): boolean {
  return (
    firstSentAt !== null &&
    Date.now() - firstSentAt > gateway.capabilities.keyLifetimeMs * KEY_LIFETIME_SHARE
  );
}

/**
 * A request that the gateway refuses as such is our own fault or a wrong setting: nothing is known of
 * what it was about, repeating it does not help, and a person reads the reason.
 */
export async function unlessRejected<T>(
  call: () => Promise<T>,
): Promise<T | { kind: 'rejected'; reason: string }> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof GatewayRejectedRequest) return { kind: 'rejected', reason: error.message };
    throw error;
  }
}

/**
 * Not known: asked again by the ladder, until the waits before this question, the `lookups`-th, came
 * to 24 h; then for a person.
 */
export function unknownAfter(lookups: number, reason: string) {
  return isAskedLongEnough(lookups)
    ? { kind: 'review' as const, reason: `asked for 24 h: ${reason}` }
    : { kind: 'unknown' as const, reason };
}

/** How long and how often somebody has asked, and whether anything may still be sent. */
export interface SendLimits {
  /** When to stop, by `performance.now()`. */
  stopAt: number;
  /** Questions in vain before. */
  lookups: number;
  /** The caller has just opened the attempt as SENDING: it was never sent. */
  isFresh?: boolean;
  /**
   * What it is for ended or is paused: what the gateway has not got, it does not get any more. Rule:
   * D-§4.
   */
  isVoided?: boolean;
}

/** Nothing was charged, and nothing will be; that the gateway gets it late after all is looked for. */
const WITHDRAWN = {
  kind: 'declined',
  code: 'processing_error',
  gatewayChargeId: null,
  isWithdrawn: true,
} as const;

/**
 * The attempt's outcome: from its row, or else from the gateway, which is sent the charge and asked
 * about it until `stopAt`. What may be there is asked for before it is sent again, always under the
 * same key and with the stored amount, so that running this again, or twice at once, charges once.
 * Where asking leads nowhere the outcome is `review`.
 */
export async function collect(
  deps: ExchangeDeps,
  attempt: Attempt,
  subscriptionId: string | null,
  limits: SendLimits,
): Promise<Settlement> {
  const { db, gateway } = deps;
  if (attempt.state === 'SUCCEEDED') {
    return { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' };
  }
  if (attempt.state === 'DECLINED') {
    const { errorCode, gatewayChargeId } = attempt;
    return { kind: 'declined', code: errorCode ?? 'card_declined', gatewayChargeId };
  }
  if (attempt.state === 'REVIEW') return reviewed({ db, gateway }, attempt);

  let mayBeThere = attempt.state !== 'CREATED' && !limits.isFresh;
  let isMarked = limits.isFresh === true;
  if (limits.isVoided && !mayBeThere) return WITHDRAWN;
  if (limits.isVoided && !gateway.capabilities.lookup) {
    return {
      kind: 'review',
      reason: 'it was called off, and the gateway cannot be asked what it has',
    };
  }
  for (;;) {
    const exchange = { db, gateway, attempt, subscriptionId, isMarked };
    const outcome = await unlessRejected(() => sendOrAsk(exchange, mayBeThere));
    isMarked = false;
    switch (outcome.kind) {
      case 'succeeded':
      case 'declined':
        return outcome;
      case 'absent':
        if (limits.isVoided) return WITHDRAWN;
        if (isKeyTooOld(attempt.firstSentAt, gateway)) {
          return { kind: 'review', reason: 'not at the gateway, and its key is too old to resend' };
        }
        mayBeThere = false;
        continue;
      case 'another_charge':
      case 'rejected':
        return { kind: 'review', reason: outcome.reason };
      case 'moved':
        // Somebody settled it, or put it in review, while this one looked away.
        return collect(deps, outcome.attempt, subscriptionId, limits);
      case 'not_sent':
      case 'in_progress':
      case 'unknown': {
        mayBeThere = mayBeThere || outcome.kind !== 'not_sent';
        const reason = outcome.kind === 'in_progress' ? 'still in progress' : outcome.reason;
        if (!(await pauseBefore(deps, limits.stopAt))) return unknownAfter(limits.lookups, reason);
      }
    }
  }
}

/**
 * An attempt in review is never sent again. What the gateway knows for certain counts more than a
 * person's *not paid*; a person's *paid* is evidence that the gateway's key does not lead to.
 */
async function reviewed({ db, gateway }: ExchangeDeps, attempt: Attempt): Promise<Settlement> {
  const { merchantId, id: subjectId } = attempt;
  const decision = await findDecision(db, { merchantId, subjectId });
  if (decision?.outcome === 'paid') {
    return { kind: 'succeeded', gatewayChargeId: decision.gatewayId ?? '', byPerson: true };
  }
  if (gateway.capabilities.lookup) {
    const found = await unlessRejected(() => gateway.lookup(questionAbout(attempt)));
    if (found.kind === 'succeeded' || found.kind === 'declined') return found;
  }
  return decision
    ? {
        kind: 'declined',
        code: decision.code ?? 'processing_error',
        gatewayChargeId: null,
        byPerson: true,
      }
    : { kind: 'review', reason: attempt.reason ?? 'waits for a person' };
}

interface ChargeExchange extends ExchangeDeps {
  attempt: Attempt;
  subscriptionId: string | null;
  /** The row says SENDING already. */
  isMarked: boolean;
}

/** One exchange with the gateway. One that cannot be asked gets the same key again. */
async function sendOrAsk(
  exchange: ChargeExchange,
  mayBeThere: boolean,
): Promise<ChargeOutcome | LookupOutcome | { kind: 'moved'; attempt: Attempt }> {
  const { gateway, attempt } = exchange;
  if (!mayBeThere) return send(exchange);
  if (!gateway.capabilities.lookup) return { kind: 'absent' };
  return gateway.lookup(questionAbout(attempt));
}

/** What to ask the gateway of an attempt. */
export function questionAbout(attempt: Attempt): LookupRequest {
  const { gatewayKey, amountMinor, currency } = attempt;
  return { key: gatewayKey, amountMinor, currency };
}

async function send({ db, gateway, attempt, subscriptionId, isMarked }: ChargeExchange) {
  if (!isMarked && !(await markSending(db, attempt))) {
    return { kind: 'moved' as const, attempt: await findAttempt(db, attempt) };
  }
  failpoint('before_gateway');
  const outcome = await gateway.charge({
    key: attempt.gatewayKey,
    gatewayMethodId: attempt.gatewayMethodId,
    amountMinor: attempt.amountMinor,
    currency: attempt.currency,
    reference: {
      merchantId: attempt.merchantId,
      intentId: attempt.intentId,
      subscriptionId,
      paymentMethodId: attempt.paymentMethodId,
    },
  });
  failpoint('after_gateway');
  return outcome;
}

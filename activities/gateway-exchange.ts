import { findAttempt, markSending } from '../db/repositories/subscriptions/attempts.ts';
import type { Attempt } from '../db/repositories/subscriptions/attempts.ts';
import type { Settlement } from '../domain/settlement.ts';
import { findDecision } from '../db/repositories/payments/reviews.ts';
import type { Db } from '../db/client.ts';
import { isAskedLongEnough } from '../domain/lookup-delays.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { GatewayRejectedRequest } from '../gateways/port.ts';
import type { GatewayRegistry } from '../gateways/registry.ts';
import type {
  ChargeOutcome,
  LookupOutcome,
  LookupRequest,
  PaymentGateway,
} from '../gateways/port.ts';

/** Time limits of one activity for its requests to the gateway about one charge or refund. */
export interface SendBudget {
  /**
   * Time after the activity's start, in ms, within which a send or a look-up may begin. This time plus the
   * gateway client's timeout must be shorter than the activity's timeout of 15 s.
   */
  readonly newSendsForMs: number;
  /** Pause between two requests, in ms. */
  readonly pauseMs: number;
}

/** Fits a gateway client with a timeout of 5 s. */
const DEFAULT_SEND_BUDGET: SendBudget = { newSendsForMs: 6_000, pauseMs: 1_000 };

/** Dependencies of activities that call a gateway. */
export interface SendBudgetDeps {
  /** Must fit the gateway client's timeout. Default: 6 s, with a pause of 1 s between requests. */
  sendBudget?: SendBudget;
}

export interface ExchangeDeps extends SendBudgetDeps {
  db: Db;
  gateways: GatewayRegistry;
}

/** If a key is older than this share of its lifetime, its charge or refund is not sent again. */
const KEY_LIFETIME_SHARE = 0.8;

/** Returns the latest `performance.now()` at which an activity that starts now may begin a request. */
export function sendDeadline({ sendBudget = DEFAULT_SEND_BUDGET }: SendBudgetDeps): number {
  return performance.now() + sendBudget.newSendsForMs;
}

/** Waits before the next request. Returns false at once if no request may begin after the wait. */
export async function pauseIfTimeLeft(
  { sendBudget: { pauseMs } = DEFAULT_SEND_BUDGET }: SendBudgetDeps,
  stopAt: number,
): Promise<boolean> {
  if (performance.now() + pauseMs > stopAt) return false;
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
  return true;
}

/** True if a resend is no longer safe, because the gateway may have deleted the key of the first send. */
export function isKeyTooOld(firstSentAt: number | null, gateway: PaymentGateway): boolean {
  return (
    firstSentAt !== null &&
    Date.now() - firstSentAt > gateway.capabilities.keyLifetimeMs * KEY_LIFETIME_SHARE
  );
}

/**
 * Calls the gateway and turns a {@link GatewayRejectedRequest} into a result. Its cause is a bug or a wrong
 * setting on our side. A repeat does not help, so the outcome stays unknown until manual review.
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
 * Returns the result of a look-up that found no outcome: `unknown`, or `review` if the delays of the earlier
 * look-ups add up to at least 24 h. `lookups`: the number of earlier look-ups. `unansweredAt`: null if the
 * gateway answered.
 */
export function unknownOrReview(lookups: number, reason: string, unansweredAt: number | null) {
  return isAskedLongEnough(lookups)
    ? { kind: 'review' as const, reason: `asked for 24 h: ${reason}` }
    : { kind: 'unknown' as const, reason, unansweredAt };
}

/** Limits of one call of {@link collect}. */
export interface SendLimits {
  /** The latest `performance.now()` at which a request may begin. */
  stopAt: number;
  /** Number of earlier look-ups that found no outcome. */
  lookups: number;
  /** Real time of the call, from the workflow. */
  realNowAt: number;
  /** True if the caller has just opened the attempt in state SENDING and has not sent it yet. */
  isFresh?: boolean;
  /** True if the subscription is ENDED or PAUSED: the charge must not be sent any more. Rule: D-§4. */
  isVoided?: boolean;
}

/**
 * The outcome of a voided attempt: the gateway has no charge, and no charge will be sent. The late-charge
 * watch covers a request that is still in transit.
 */
const VOIDED = {
  kind: 'declined',
  code: 'processing_error',
  gatewayChargeId: null,
  isWithdrawn: true,
} as const;

/**
 * Returns the attempt's outcome, from its row or from the gateway. Sends the charge and looks it up until
 * `stopAt`. If the gateway may have the charge, a look-up precedes each resend. Every send has the same key
 * and the stored amount, so repeated or concurrent calls charge once. Returns `review` if a look-up cannot
 * find the outcome.
 */
export async function collect(
  deps: ExchangeDeps,
  attempt: Attempt,
  subscriptionId: string | null,
  limits: SendLimits,
): Promise<Settlement> {
  const { db } = deps;
  if (attempt.state === 'SUCCEEDED') {
    return { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' };
  }
  if (attempt.state === 'DECLINED') {
    const { errorCode, gatewayChargeId } = attempt;
    return { kind: 'declined', code: errorCode ?? 'card_declined', gatewayChargeId };
  }
  const gateway = await deps.gateways.of(attempt.merchantId, attempt.gateway);
  if (attempt.state === 'REVIEW') return outcomeInReview(db, gateway, attempt);

  let mayBeAtGateway = attempt.state !== 'CREATED' && !limits.isFresh;
  let isMarked = limits.isFresh === true;
  if (limits.isVoided && !mayBeAtGateway) return VOIDED;
  if (limits.isVoided && !gateway.capabilities.lookup) {
    return {
      kind: 'review',
      reason: 'the charge was voided, and the gateway has no look-up to show whether it was made',
    };
  }
  for (;;) {
    const exchange = { db, gateway, attempt, subscriptionId, isMarked };
    const outcome = await unlessRejected(() => sendOrLookUp(exchange, mayBeAtGateway));
    isMarked = false;
    switch (outcome.kind) {
      case 'succeeded':
      case 'declined':
        return outcome;
      case 'absent':
        if (limits.isVoided) return VOIDED;
        if (isKeyTooOld(attempt.firstSentAt, gateway)) {
          return { kind: 'review', reason: 'not at the gateway, and its key is too old to resend' };
        }
        mayBeAtGateway = false;
        continue;
      case 'another_charge':
      case 'rejected':
        return { kind: 'review', reason: outcome.reason };
      case 'moved':
        // Another process has settled the attempt or put it in review.
        return collect(deps, outcome.attempt, subscriptionId, limits);
      case 'not_sent':
      case 'in_progress':
      case 'unknown': {
        mayBeAtGateway = mayBeAtGateway || outcome.kind !== 'not_sent';
        const hasTime = await pauseIfTimeLeft(deps, limits.stopAt);
        if (hasTime) continue;
        return outcome.kind === 'in_progress'
          ? unknownOrReview(limits.lookups, 'still in progress', null)
          : unknownOrReview(limits.lookups, outcome.reason, limits.realNowAt);
      }
    }
  }
}

/**
 * Returns the outcome of an attempt in REVIEW, which is never sent again. If the manual decision is *paid*,
 * no look-up is made, because the operator has found a charge that a look-up by key does not find. Otherwise
 * a definite answer of the gateway overrides the decision.
 */
async function outcomeInReview(
  db: Db,
  gateway: PaymentGateway,
  attempt: Attempt,
): Promise<Settlement> {
  const { merchantId, id: subjectId } = attempt;
  const decision = await findDecision(db, { merchantId, subjectId });
  if (decision?.outcome === 'paid') {
    return { kind: 'succeeded', gatewayChargeId: decision.gatewayId ?? '', byPerson: true };
  }
  if (gateway.capabilities.lookup) {
    const found = await unlessRejected(() => gateway.lookup(lookupRequestOf(attempt)));
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

interface ChargeExchange {
  db: Db;
  gateway: PaymentGateway;
  attempt: Attempt;
  subscriptionId: string | null;
  /** True if the attempt's row is already in state SENDING. */
  isMarked: boolean;
}

/**
 * Makes one request: a look-up if the gateway may have the charge, else a send. Without look-ups, returns
 * `absent`, so that the charge is sent again with its key.
 */
async function sendOrLookUp(
  exchange: ChargeExchange,
  mayBeAtGateway: boolean,
): Promise<ChargeOutcome | LookupOutcome | { kind: 'moved'; attempt: Attempt }> {
  const { gateway, attempt } = exchange;
  if (!mayBeAtGateway) return send(exchange);
  if (!gateway.capabilities.lookup) return { kind: 'absent' };
  return gateway.lookup(lookupRequestOf(attempt));
}

export function lookupRequestOf(attempt: Attempt): LookupRequest {
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

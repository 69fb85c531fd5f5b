import { findPaidSession } from '../../db/repositories/checkouts/sessions.ts';
import { findAttempt, markSending } from '../../db/repositories/subscriptions/attempts.ts';
import type { Attempt } from '../../db/repositories/subscriptions/attempts.ts';
import { findDecision } from '../../db/repositories/payments/reviews.ts';
import type { Db } from '../../db/client.ts';
import type { Settlement } from '../../domain/settlement.ts';
import { AUTHENTICATION_MS } from '../../domain/subscription/authentication.ts';
import type {
  ChargeOutcome,
  ChargeRef,
  ChargeRequest,
  LookupOutcome,
  PaymentGateway,
  PresentPayer,
  WithdrawOutcome,
} from '../../gateways/port.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { bankReturnUrl } from '../../runtime/payer-links.ts';
import type { LinkSettings } from '../../runtime/payer-links.ts';
import {
  inProgressOrReview,
  pauseIfTimeLeft,
  unknownOrReview,
  unlessRejected,
} from './gateway-exchange.ts';
import type { ExchangeDeps, SendLimits } from './gateway-exchange.ts';

/** A voided attempt. A request in transit may still charge; a late-charge watch then refunds it. */
const VOIDED = {
  kind: 'declined',
  code: 'processing_error',
  gatewayChargeId: null,
  isWithdrawn: true,
} as const;

/** The outcome of an attempt that the payer did not confirm: the gateway will never make the charge. */
const NOT_CONFIRMED = {
  kind: 'declined',
  code: 'authentication_required',
  gatewayChargeId: null,
} as const;

/** The subscription and the billing cycle of an attempt; null outside the billing cycles. */
export interface CycleRef {
  readonly subscriptionId: string | null;
  readonly cycleNumber: number | null;
}

/**
 * Returns the attempt's outcome. Until `stopAt`, sends and looks up with one key and the stored amount, so repeated
 * calls charge once. `unknown`: none yet. `review`: no request can find it. Throws if the database fails.
 */
export async function collect(
  deps: ExchangeDeps,
  attempt: Attempt,
  cycle: CycleRef,
  limits: SendLimits,
): Promise<Settlement> {
  const count: RequestCount = { withoutOutcome: 0 };
  return { ...(await settlementOf(deps, attempt, cycle, { ...limits, count })), ...count };
}

type RequestCount = Required<Pick<Settlement, 'withoutOutcome'>>;

/** `moved`: no request was sent. */
const OUTCOMES: readonly string[] = ['succeeded', 'declined', 'withdrawn', 'moved'];

/** Counts a request after which the outcome is still unknown. */
async function counted<Answer extends { kind: string }>(
  count: RequestCount,
  request: () => Promise<Answer>,
) {
  const answer = await unlessRejected(request);
  if (!OUTCOMES.includes(answer.kind)) count.withoutOutcome += 1;
  return answer;
}

async function settlementOf(
  deps: ExchangeDeps,
  attempt: Attempt,
  cycle: CycleRef,
  limits: SendLimits & { count: RequestCount },
): Promise<Settlement> {
  const { db } = deps;
  if (attempt.state === 'SUCCEEDED') {
    return { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' };
  }
  if (attempt.state === 'DECLINED') {
    const { errorCode, gatewayChargeId, gatewayCode } = attempt;
    return { kind: 'declined', code: errorCode ?? 'card_declined', gatewayChargeId, gatewayCode };
  }
  const gateway = await deps.gateways.of(attempt.merchantId, attempt.gateway);
  if (attempt.state === 'REVIEW') return outcomeInReview(db, gateway, attempt, limits.count);

  const isVoided = limits.isVoided === true || limits.isAbandoned === true;
  const exchange: ChargeExchange = {
    db,
    gateway,
    attempt,
    cycle,
    payer: gateway.capabilities.payerPresent ? limits.payer : undefined,
    isVoided,
    isMarked: limits.isFresh === true,
    mayBeAtGateway: mayBeAtGateway(gateway, attempt, limits, isVoided),
  };
  const voided = limits.isVoided === true ? VOIDED : NOT_CONFIRMED;
  if (isVoided && !exchange.mayBeAtGateway) return voided;
  for (;;) {
    const byLookup = exchange.mayBeAtGateway;
    const outcome = await counted(limits.count, () => ask(exchange));
    switch (outcome.kind) {
      case 'succeeded':
      case 'declined':
        return byLookup ? { ...outcome, byLookup } : outcome;
      case 'withdrawn':
        return { ...voided, isProven: true };
      case 'absent':
        if (isVoided) return voided;
        exchange.mayBeAtGateway = false;
        continue;
      case 'another_charge':
      case 'rejected':
        return { kind: 'review', reason: outcome.reason };
      case 'moved':
        // Another process has settled the attempt or put it in review.
        return settlementOf(deps, outcome.attempt, cycle, limits);
      case 'not_sent':
      case 'in_progress':
      case 'unknown': {
        if (outcome.kind !== 'not_sent') exchange.mayBeAtGateway = true;
        const payerUrl = outcome.kind === 'in_progress' ? outcome.payerUrl : undefined;
        // The gateway decides only after the payer has confirmed the charge at `payerUrl`, which takes minutes.
        if (exchange.payer !== undefined && payerUrl !== undefined) {
          return { kind: 'unknown', reason: 'waits for the payer', unansweredAt: null, payerUrl };
        }
        const hasTime = await pauseIfTimeLeft(deps, limits.stopAt);
        if (hasTime) continue;
        // A late-charge watch asks as soon as requests are possible again.
        if (outcome.kind === 'not_sent' && isVoided && attempt.state === 'UNSENT') return voided;
        if (outcome.kind === 'not_sent' && !exchange.mayBeAtGateway) {
          const { reason, isAccountRefused = false } = outcome;
          // The sends of this call had no effect.
          const sentAt = limits.isFresh ? [] : attempt.sentAt;
          return { kind: 'unsent', reason, isAccountRefused, sentAt };
        }
        if (outcome.kind === 'in_progress') return inProgressOrReview(limits.lookups);
        if (isInProgress(attempt)) {
          return { kind: 'unknown', reason: outcome.reason, unansweredAt: limits.realNowAt };
        }
        return unknownOrReview(limits.lookups, outcome.reason, limits.realNowAt);
      }
    }
  }
}

/** Returns the payer of an attempt from a hosted page; `isAbandoned`: they will not confirm it. */
export async function presentPayerOf(
  { db, links }: { db: Db; links: LinkSettings },
  attempt: Attempt,
  {
    nowAt,
    savesMethod,
    isSuperseded,
  }: { nowAt: number; savesMethod: boolean; isSuperseded: boolean },
): Promise<Pick<SendLimits, 'payer' | 'isAbandoned'>> {
  const { merchantId, intentId, sessionId, payerUrl, payerAskedAt, payerLeftAt } = attempt;
  const session = sessionId && (await findPaidSession(db, { merchantId, sessionId }));
  if (!session) return {};
  const isLate = payerAskedAt !== null && nowAt - payerAskedAt >= AUTHENTICATION_MS;
  return {
    payer: { returnUrl: bankReturnUrl(links, session, intentId), savesMethod },
    isAbandoned: payerUrl !== null && (isLate || payerLeftAt !== null || isSuperseded),
  };
}

/** True if the charge of a checkout could not be sent before the payer's page expired. */
export function isPayerGone(
  { state, trigger }: Attempt,
  pageExpiresAt: number | null,
  nowAt: number,
): boolean {
  return state === 'UNSENT' && trigger === 'checkout' && nowAt >= (pageExpiresAt ?? Infinity);
}

/** True if the gateway last answered that it has received the charge and has not decided it yet. */
function isInProgress({ state, unansweredAt }: Attempt): boolean {
  return state === 'UNKNOWN' && unansweredAt === null;
}

/**
 * True if the gateway may have the charge: after a send, or after `prepare` if it has one. An UNSENT charge is sent
 * again, with the same key; but a worker that stalled may have sent it meanwhile.
 */
function mayBeAtGateway(
  gateway: PaymentGateway,
  { state, gatewayChargeId }: Attempt,
  { isFresh = false }: SendLimits,
  isVoided: boolean,
): boolean {
  if (state === 'UNSENT' && !isVoided) return false;
  return gateway.prepare === null ? !isFresh : gatewayChargeId !== null;
}

/** REVIEW is never sent again. A definite answer overrides every decision except *paid*. */
async function outcomeInReview(
  db: Db,
  gateway: PaymentGateway,
  attempt: Attempt,
  count: RequestCount,
): Promise<Settlement> {
  const { merchantId, id: subjectId } = attempt;
  const decision = await findDecision(db, { merchantId, subjectId });
  if (decision?.outcome === 'paid') {
    return { kind: 'succeeded', gatewayChargeId: decision.gatewayId ?? '', byPerson: true };
  }
  const found = await counted(count, () => gateway.lookup(chargeRefOf(attempt)));
  if (found.kind === 'succeeded' || found.kind === 'declined') return { ...found, byLookup: true };
  return decision
    ? {
        kind: 'declined',
        code: decision.code ?? 'processing_error',
        gatewayChargeId: null,
        byPerson: true,
      }
    : { kind: 'review', reason: attempt.reason ?? 'waits for manual review' };
}

interface ChargeExchange {
  readonly db: Db;
  readonly gateway: PaymentGateway;
  readonly cycle: CycleRef;
  readonly payer: PresentPayer | undefined;
  /** True if the charge must not be sent any more. */
  readonly isVoided: boolean;
  /** Has the id of the prepared charge as soon as the row has it. */
  attempt: Attempt;
  /** True if the row is already in state SENDING for the next send. */
  isMarked: boolean;
  mayBeAtGateway: boolean;
}

type Moved = { kind: 'moved'; attempt: Attempt };

/** Sends if the gateway cannot have the charge yet, else withdraws a voided charge or looks the charge up. */
async function ask(
  exchange: ChargeExchange,
): Promise<ChargeOutcome | LookupOutcome | WithdrawOutcome | Moved> {
  const { gateway, attempt } = exchange;
  if (!exchange.mayBeAtGateway) return send(exchange);
  if (exchange.isVoided && gateway.withdraw !== null) return gateway.withdraw(chargeRefOf(attempt));
  return gateway.lookup(chargeRefOf(attempt));
}

export function chargeRefOf(
  attempt: Pick<Attempt, 'gatewayKey' | 'gatewayChargeId' | 'amountMinor' | 'currency'>,
): ChargeRef {
  const { gatewayKey: key, gatewayChargeId, amountMinor, currency } = attempt;
  return { key, gatewayChargeId, amountMinor, currency };
}

async function send(exchange: ChargeExchange): Promise<ChargeOutcome | Moved> {
  const { db, gateway, isMarked } = exchange;
  let preparedId: string | null = null;
  if (gateway.prepare !== null && exchange.attempt.gatewayChargeId === null) {
    const prepared = await gateway.prepare(chargeRequestOf(exchange));
    failpoint('after_prepare');
    // The gateway charges only after `charge`. If the answer to `prepare` was lost, a new preparation is safe.
    if (prepared.kind === 'declined') return prepared;
    if (prepared.kind === 'unknown') return { kind: 'not_sent', reason: prepared.reason };
    if (prepared.kind === 'not_sent') return prepared;
    preparedId = prepared.gatewayChargeId;
  }
  exchange.isMarked = false;
  if (!isMarked || preparedId !== null) {
    const { attempt } = exchange;
    const marked = await markSending(db, attempt, preparedId);
    if (marked === 'settled') return { kind: 'moved', attempt: await findAttempt(db, attempt) };
    exchange.attempt = { ...attempt, ...marked };
  }
  failpoint('before_gateway');
  const outcome = await gateway.charge(chargeRequestOf(exchange));
  failpoint('after_gateway');
  return outcome;
}

function chargeRequestOf({ attempt, cycle, payer }: ChargeExchange): ChargeRequest {
  const { merchantId, intentId, paymentMethodId, gatewayMethodId } = attempt;
  const { description, statementSuffix } = attempt;
  return {
    ...chargeRefOf(attempt),
    gatewayMethodId,
    reference: {
      merchantId,
      intentId,
      subscriptionId: cycle.subscriptionId,
      cycleNumber: cycle.cycleNumber,
      paymentMethodId,
    },
    openedAt: attempt.createdAt,
    description,
    statementSuffix,
    payer,
  };
}

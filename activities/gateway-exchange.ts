import type { Db } from '../db/client.ts';
import { isAskedLongEnough, isPendingTooLong } from '../domain/lookup-delays.ts';
import { GatewayRejectedRequest } from '../gateways/port.ts';
import type { PresentPayer } from '../gateways/port.ts';
import type { GatewayRegistry } from '../gateways/registry.ts';

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

/** Time limits for a gateway client with a timeout of 5 s. */
const DEFAULT_SEND_BUDGET: SendBudget = { newSendsForMs: 6_000, pauseMs: 1_000 };

/** Dependencies of activities that call a gateway. */
export interface SendBudgetDeps {
  /** Must fit the gateway client's timeout. Default: requests begin within 6 s, with pauses of 1 s between them. */
  sendBudget?: SendBudget;
}

export interface ExchangeDeps extends SendBudgetDeps {
  db: Db;
  gateways: GatewayRegistry;
}

/**
 * Returns the latest `performance.now()` at which an activity that starts now may repeat a request. After a look-up
 * without an outcome it repeats none, so that thousands of look-ups do not multiply the requests to a failing gateway.
 */
export function sendDeadline(
  { sendBudget = DEFAULT_SEND_BUDGET }: SendBudgetDeps,
  lookups: number,
): number {
  return performance.now() + (lookups > 0 ? 0 : sendBudget.newSendsForMs);
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

/**
 * Calls the gateway and turns a {@link GatewayRejectedRequest} into a result. The cause of the rejection is a
 * bug or a wrong setting on our side. A repeat does not help, so the outcome stays unknown until manual
 * review.
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

/**
 * Returns the result of a look-up of a charge that the gateway has received and not decided yet: `unknown`, or `review`
 * after 24 h of look-ups and 30 daily look-ups. `lookups`: the number of earlier look-ups.
 */
export function inProgressOrReview(lookups: number) {
  return isPendingTooLong(lookups)
    ? { kind: 'review' as const, reason: 'the gateway has not decided the charge for 31 days' }
    : { kind: 'unknown' as const, reason: 'still in progress', unansweredAt: null };
}

/** Limits of one call that sends requests for one charge or refund. */
export interface SendLimits {
  /** The latest `performance.now()` at which a request may begin. */
  stopAt: number;
  /** Number of earlier look-ups that found no outcome. */
  lookups: number;
  /** Real time of the call, from the workflow. */
  realNowAt: number;
  /** True if the caller has just opened the attempt in state SENDING and has not sent the charge yet. */
  isFresh?: boolean;
  /** True if the subscription's status no longer allows the charge. Rule: D-§4. */
  isVoided?: boolean;
  /** True if the payer did not confirm the charge in time, or gave another payment method instead. */
  isAbandoned?: boolean;
  /** The payer on whose page the attempt was caused. */
  payer?: PresentPayer;
}

import { isAskedLongEnough, isPendingTooLong } from '../../domain/delays.ts';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import type { PresentPayer } from '../../gateways/port.ts';
import type { ActivityDeps, SendBudget } from '../deps.ts';

/** Time limits for a gateway client with a timeout of 5 s. */
const DEFAULT_SEND_BUDGET: SendBudget = { newSendsForMs: 6_000, pauseMs: 1_000 };

type SendBudgetDeps = Pick<ActivityDeps, 'sendBudget'>;
export type ExchangeDeps = Pick<ActivityDeps, 'db' | 'gateways' | 'sendBudget'>;

/**
 * Returns the `performance.now()` until which an activity may repeat a request. After a look-up without an outcome it
 * may not, to spare a failing gateway.
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

/** Turns {@link GatewayRejectedRequest}, a bug or wrong setting of ours, into a result. */
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

/** `review` after 24 h of look-ups, else `unknown`. `unansweredAt`: null if it was answered. */
export function unknownOrReview(lookups: number, reason: string, unansweredAt: number | null) {
  return isAskedLongEnough(lookups)
    ? { kind: 'review' as const, reason: `asked for 24 h: ${reason}` }
    : { kind: 'unknown' as const, reason, unansweredAt };
}

/** `review` after 24 h and 30 daily look-ups of a charge that is in progress, else `unknown`. */
export function inProgressOrReview(lookups: number) {
  return isPendingTooLong(lookups)
    ? { kind: 'review' as const, reason: 'the gateway has not decided the charge for 31 days' }
    : { kind: 'unknown' as const, reason: 'still in progress', unansweredAt: null };
}

export interface SendLimits {
  stopAt: number;
  /** Number of earlier look-ups that found no outcome. */
  lookups: number;
  /** Real time of the call, from the workflow. */
  realNowAt: number;
  /** True if the caller has just opened the attempt in state SENDING and has not sent the charge yet. */
  isFresh?: boolean;
  /** True if the subscription's status no longer allows the charge. */
  isVoided?: boolean;
  /** True if the payer did not confirm the charge in time, or gave another payment method instead. */
  isAbandoned?: boolean;
  payer?: PresentPayer;
}

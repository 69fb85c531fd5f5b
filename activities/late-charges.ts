import type { Db } from '../db/client.ts';
import { findAttempt, isUnproven } from '../db/repositories/attempts.ts';
import type { Attempt, Settlement } from '../db/repositories/attempts.ts';
import { bookLateCharge, lateWatch } from '../db/repositories/late-charges.ts';
import { closeReview } from '../db/repositories/reviews.ts';
import { isLastLateLook } from '../domain/review.ts';
import type { AttemptRef, LateChargeOutcome } from '../domain/review.ts';
import type { PaymentGateway } from '../gateways/port.ts';
import { questionAbout, unlessRejected } from './gateway-exchange.ts';
import type { PaymentResumption, SubscriptionWorkflowsPort } from './maintenance.ts';

export interface LateChargeDeps {
  db: Db;
  gateway: PaymentGateway;
  subscriptionWorkflows: Pick<SubscriptionWorkflowsPort, 'recheck'>;
  payments: Pick<PaymentResumption, 'resumeRefund'>;
}

/** Charges that were settled as not made, and were. */
export function createLateChargeActivities(deps: LateChargeDeps) {
  return {
    /**
     * Asks the gateway once more about an attempt that a person settled as not paid. A charge it turns
     * out to have made is booked beside the payment, told of in the timeline and given back, however
     * often this is run. Throws, retryably, when the database or Temporal does not answer. `nowAt` is
     * real time; `looks` how often it was asked before.
     */
    async lookForLateCharge(
      input: AttemptRef & { nowAt: number; looks: number },
    ): Promise<LateChargeOutcome> {
      const { nowAt, looks, ...ref } = input;
      const watch = await lateWatch(deps.db, ref);
      switch (watch.kind) {
        case 'over':
          return { kind: 'absent' };
        case 'waiting':
          return { kind: 'pending' };
        case 'found':
          return book(deps, ref, watch.gatewayChargeId, nowAt);
        case 'watched': {
          const found = await ask(deps.gateway, watch.attempt);
          if (found.kind === 'succeeded') return book(deps, ref, found.gatewayChargeId, nowAt);
          const isCertain = found.kind === 'absent' || found.kind === 'declined';
          if (!isCertain || !isLastLateLook(looks)) return { kind: 'pending' };
          await closeReview(deps.db, { merchantId: ref.merchantId, subjectId: ref.attemptId });
          return { kind: 'absent' };
        }
      }
    },
  };
}

/**
 * Has a late charge of what was just settled as not paid looked for, if there can be one; where it
 * never was sent, that ends at once. Never throws: a watch that did not start is started by the sweep.
 */
export async function watchUnproven(
  payments: Pick<PaymentResumption, 'watchLateCharge'>,
  attempt: Attempt,
  settlement: Settlement,
): Promise<void> {
  if (!isUnproven(settlement)) return;
  const { merchantId, id: attemptId } = attempt;
  await payments.watchLateCharge({ merchantId, attemptId }).catch(() => undefined);
}

/** A gateway that cannot be asked has nothing more to say. */
async function ask(gateway: PaymentGateway, attempt: Attempt) {
  if (!gateway.capabilities.lookup) return { kind: 'absent' as const };
  return unlessRejected(() => gateway.lookup(questionAbout(attempt)));
}

async function book(
  { db, subscriptionWorkflows, payments }: LateChargeDeps,
  { merchantId, attemptId }: AttemptRef,
  gatewayChargeId: string,
  nowAt: number,
): Promise<LateChargeOutcome> {
  const attempt = await findAttempt(db, { merchantId, id: attemptId });
  const { refundId, subscription } = await bookLateCharge(db, attempt, gatewayChargeId, nowAt);
  // Its workflow reads the row again, and so the line of the timeline.
  if (subscription) await subscriptionWorkflows.recheck(subscription);
  await payments.resumeRefund({ merchantId, refundId });
  return { kind: 'found', refundId, gatewayChargeId };
}

import { createHash, randomBytes } from 'node:crypto';
import type { Db } from '../db/client.ts';
import { savePaymentMethod } from '../db/repositories/payment-methods.ts';
import {
  loadSnapshot,
  recordClockReached,
  recordTransition,
} from '../db/repositories/subscriptions.ts';
import type { Recorded, Snapshot, Transition } from '../db/repositories/subscriptions.ts';
import { newId } from '../domain/ids.ts';
import type { PaymentGateway } from '../gateways/port.ts';
import { invalidInput, outcomeUnknown } from './failures.ts';

export interface TransitionDeps {
  db: Db;
  gateway: PaymentGateway;
}

export interface RedeemTokenInput {
  merchantId: string;
  customerId: string;
  paymentToken: string;
  checkoutSessionId: string;
  /** No charge follows: the gateway checks the card now. */
  verify: boolean;
  nowAt: number;
}

export type RedeemTokenResult =
  | { kind: 'saved'; paymentMethodId: string }
  | { kind: 'refused'; errorCode: string };

/** What a subscription does besides charging. Each may be run again at any point. */
export function createTransitionActivities(deps: TransitionDeps) {
  return {
    /** Writes one transition, once. See `recordTransition` of the repository for what it answers. */
    async record(transition: Transition): Promise<Recorded> {
      return recordTransition(deps.db, transition);
    },

    /** The clocked subscription has done everything due up to `reachedAt`. Rule: D-60. */
    async clockReached(input: {
      merchantId: string;
      subscriptionId: string;
      reachedAt: number;
    }): Promise<void> {
      const { reachedAt, ...ref } = input;
      await recordClockReached(deps.db, ref, reachedAt);
    },

    /** The row as it stands, for a workflow that lost its own certainty. */
    async loadSubscription(ref: { merchantId: string; subscriptionId: string }): Promise<Snapshot> {
      const snapshot = await loadSnapshot(deps.db, ref);
      if (!snapshot) throw invalidInput(`no subscription ${ref.subscriptionId}`);
      return snapshot;
    },

    /**
     * Turns a one-time token of the card form into a payment method, PENDING until it is used. The
     * same token gives the same method. Throws, retryably, when the gateway does not answer: nothing
     * was charged and the token is not lost.
     */
    async redeemToken(input: RedeemTokenInput): Promise<RedeemTokenResult> {
      const id = newId('pmt', input.nowAt, randomBytes);
      const outcome = await deps.gateway.saveMethod({
        key: saveKey(input),
        token: input.paymentToken,
        session: input.checkoutSessionId,
        verify: input.verify,
        reference: { customerId: input.customerId },
      });
      if (outcome.kind === 'unknown') throw outcomeUnknown(outcome.reason);
      if (outcome.kind === 'refused') return { kind: 'refused', errorCode: outcome.code };
      const paymentMethodId = await savePaymentMethod(deps.db, {
        merchantId: input.merchantId,
        id,
        customerId: input.customerId,
        gateway: deps.gateway.name,
        card: outcome.card,
        nowAt: input.nowAt,
      });
      // The gateway's method is another customer's already: nobody else pays with it.
      if (paymentMethodId === null) return { kind: 'refused', errorCode: 'processing_error' };
      return { kind: 'saved', paymentMethodId };
    },
  };
}

/** One key for one redemption: the same token in another session or for another customer is another. */
function saveKey({ merchantId, customerId, checkoutSessionId, paymentToken }: RedeemTokenInput) {
  const parts = [merchantId, customerId, checkoutSessionId, paymentToken];
  return `save:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

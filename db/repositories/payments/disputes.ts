import { randomBytes } from 'node:crypto';
import { and, asc, eq, inArray, isNull } from 'drizzle-orm';
import type { GatewayDispute } from '../../../domain/dispute.ts';
import type { StreamRef } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import { applyDispute } from '../../../domain/subscription/notes.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { disputes, paymentAttempts } from '../../schema/payments.ts';
import { hasValues, isRecord } from '../records.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { writeChange } from '../subscriptions/write-change.ts';
import { appendIntentEvent, streamOf } from './events.ts';
import { lockWithSubscription } from './orders.ts';

export type Dispute = typeof disputes.$inferSelect;

/**
 * Records a dispute in one transaction, with event and timeline entry for a new status. A repeat, and OPEN after its
 * end, change nothing. Returns the event's stream and the subscription. `nowAt` is real time.
 */
export async function recordDispute(
  db: Db,
  attempt: Attempt,
  gatewayDisputeId: string,
  found: GatewayDispute,
  nowAt: number,
): Promise<{ stream: ReturnType<typeof streamOf>; subscription: SubscriptionRef | null }> {
  const { merchantId, intentId, id: attemptId, gateway } = attempt;
  const { amountMinor, currency, reason, status, openedAt } = found;
  return db.transaction(async (tx) => {
    const { intent, subscription, state } = await lockWithSubscription(tx, {
      merchantId,
      intentId,
    });
    const recorded = { stream: streamOf(intent), subscription };
    const [known] = await tx
      .select()
      .from(disputes)
      .where(hasValues(disputes, { gateway, gatewayDisputeId }));
    if (known && known.status !== 'OPEN' && status === 'OPEN') return recorded;
    const facts = {
      amountMinor,
      currency,
      reason,
      status,
      closedAt: status === 'OPEN' ? null : (known?.closedAt ?? nowAt),
    };
    const disputeId = known?.id ?? newId('dp', nowAt, randomBytes);
    if (known)
      await tx
        .update(disputes)
        .set(facts)
        .where(isRecord(disputes, merchantId, known.id));
    else {
      const ids = { merchantId, id: disputeId, intentId, attemptId, gateway, gatewayDisputeId };
      await tx.insert(disputes).values({ ...ids, ...facts, openedAt });
    }
    if (known?.status === status) return recorded;
    const at = await businessNow(tx, intent, nowAt);
    const dispute = { disputeId, amountMinor, currency, reason, status };
    const draft = { ...intentEvent('intent.disputed', intentId, at, intent.status), dispute };
    if (state) {
      const change = { ...applyDispute(state, dispute, at), events: [draft] };
      const transitionId = `dispute:${disputeId}:${status}`;
      await writeChange(tx, { change, transitionId, command: null, nowAt: at });
    } else await appendIntentEvent(tx, intent, draft);
    return recorded;
  });
}

/** Writes the event of the charge's first warning, once. Returns the event's stream. `nowAt` is real time. */
export async function recordFraudWarning(
  db: Db,
  { merchantId, intentId, id }: Attempt,
  fraudType: string,
  nowAt: number,
): Promise<StreamRef> {
  return db.transaction(async (tx) => {
    const { intent } = await lockWithSubscription(tx, { merchantId, intentId });
    const first = await tx
      .update(paymentAttempts)
      .set({ fraudWarnedAt: nowAt })
      .where(and(isRecord(paymentAttempts, merchantId, id), isNull(paymentAttempts.fraudWarnedAt)))
      .returning({ id: paymentAttempts.id });
    if (first.length > 0) {
      const at = await businessNow(tx, intent, nowAt);
      const draft = intentEvent('intent.fraud_warning', intentId, at, intent.status);
      await appendIntentEvent(tx, intent, { ...draft, fraudType });
    }
    return streamOf(intent);
  });
}

export function disputesOf(
  db: Db,
  merchantId: string,
  intentIds: readonly string[],
): Promise<Dispute[]> {
  return db
    .select()
    .from(disputes)
    .where(and(eq(disputes.merchantId, merchantId), inArray(disputes.intentId, [...intentIds])))
    .orderBy(asc(disputes.openedAt), asc(disputes.id));
}

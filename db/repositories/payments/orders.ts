import { asc, sql } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import type { IntentKind, IntentRef } from '../../../domain/payment-intent.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { lockCurrentRow } from '../subscriptions/row.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { insertSession } from '../checkouts/sessions.ts';
import type { NewCheckout } from '../checkouts/sessions.ts';
import { appendIntentEvent } from './events.ts';
import { releasePaymentUse } from './link-uses.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';

type Intent = typeof paymentIntents.$inferSelect;

type StoredTerms = Omit<
  typeof paymentIntents.$inferInsert,
  'id' | 'status' | 'presentmentCurrency' | 'cycleNumber' | 'createdAt' | 'checkoutExpiresAt'
>;

/** A requested payment outside the billing cycles. An absent field becomes null or false. */
export interface NewPayment extends StoredTerms {
  intentId: string;
  kind: Exclude<IntentKind, 'cycle'>;
  /** Real time. If the intent's subscription has a test clock, the clock's time is recorded instead. */
  nowAt: number;
  /** The session of a hosted payment's page; absent for a charge without a page. */
  checkout?: NewCheckout & { expiresAt: number };
}

/**
 * Writes a payment inside the caller's transaction: intent, `intent.created` and for a hosted one its session. False
 * if it exists already. The caller must wake the stream after the transaction.
 */
export async function insertPayment(tx: Db, payment: NewPayment): Promise<boolean> {
  const { nowAt, checkout, ...terms } = payment;
  const { merchantId, intentId, currency } = payment;
  const subscriptionId = payment.subscriptionId ?? null;
  const createdAt = await businessNow(tx, { merchantId, subscriptionId }, nowAt);
  const inserted = await tx
    .insert(paymentIntents)
    .values({
      ...terms,
      id: intentId,
      normalEmail: emailNormalForm(payment.customerDetails.email),
      presentmentCurrency: currency,
      status: 'CREATED',
      createdAt,
      checkoutExpiresAt: checkout?.expiresAt ?? null,
    })
    .onConflictDoNothing()
    .returning({ id: paymentIntents.id });
  if (inserted.length === 0) return false;
  if (checkout) {
    await insertSession(tx, { ...checkout, merchantId, purpose: 'payment', intentId, createdAt });
  }
  const created = intentEvent('intent.created', intentId, createdAt, 'CREATED');
  await appendIntentEvent(tx, { merchantId, id: intentId, subscriptionId }, created);
  return true;
}

/** Returns the merchant's intent; null for an unknown id and for another merchant's id. */
export const findIntent = (db: Db, merchantId: string, intentId: string) =>
  findRecord(db, paymentIntents, merchantId, intentId);

/** Returns every attempt on an intent, oldest first. */
export function attemptsOf(db: Db, ref: IntentRef): Promise<Attempt[]> {
  return db
    .select()
    .from(paymentAttempts)
    .where(isAttemptOn(ref))
    .orderBy(asc(paymentAttempts.attemptNumber));
}

/** Reads the intent and locks it until the transaction ends. Null if the intent does not exist. */
export async function lockIntent(tx: Db, ref: IntentRef): Promise<Intent | null> {
  const [intent] = await tx.select().from(paymentIntents).where(isIntent(ref)).for('update');
  return intent ?? null;
}

/** Locks the intent and, first, its subscription. Throws if the intent does not exist. */
export async function lockWithSubscription(tx: Db, ref: IntentRef) {
  const { merchantId, intentId } = ref;
  const [owner] = await tx
    .select({ subscriptionId: paymentIntents.subscriptionId })
    .from(paymentIntents)
    .where(isIntent(ref));
  const subscriptionId = owner?.subscriptionId ?? null;
  const subscription = subscriptionId === null ? null : { merchantId, subscriptionId };
  // Every transaction locks the subscription before its intent, to avoid deadlocks.
  const row = subscription && (await lockCurrentRow(tx, subscription));
  const intent = await lockIntent(tx, ref);
  if (!intent) throw new Error(`no intent ${intentId}`);
  return { intent, subscription, state: row?.state ?? null };
}

/** Voids a payment without an attempt that is not hosted. True if it is voided, also earlier. */
export async function withdrawPayment(db: Db, ref: IntentRef): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Code that opens an attempt takes the same lock and sets the intent to PENDING.
    const intent = await lockIntent(tx, ref);
    if (!intent || intent.kind === 'hosted') return false;
    if (intent.status === 'CANCELLED') return true;
    if (intent.status !== 'CREATED') return false;
    await setCancelled(tx, ref);
    return true;
  });
}

export type Cancelled = { ok: true } | { ok: false; message: string };

/**
 * Cancels a hosted payment inside the caller's transaction, and releases the use of its link. Refuses one that is not
 * hosted, paid, cancelled, expired at `nowAt` (real time), or has an open attempt.
 */
export async function cancelHostedPayment(
  tx: Db,
  ref: IntentRef,
  nowAt: number,
): Promise<Cancelled> {
  const refused = (message: string): Cancelled => ({ ok: false, message });
  const intent = await lockIntent(tx, ref);
  if (!intent || intent.kind !== 'hosted') {
    return refused('Only a payment whose page is open can be cancelled.');
  }
  switch (intentStatusAt(intent, nowAt)) {
    case 'CREATED':
    case 'FAILED':
      await setCancelled(tx, ref);
      if (intent.linkId !== null) await releasePaymentUse(tx, { ...ref, linkId: intent.linkId });
      return { ok: true };
    case 'CANCELLED':
      return refused('The payment is cancelled, or its page has expired.');
    case 'PENDING':
      return refused('A charge was sent, and its outcome is not known yet.');
    case 'SUCCESS':
    case 'REFUNDED':
    case 'PARTIALLY_REFUNDED':
      return refused('The payment has succeeded.');
  }
}

async function setCancelled(tx: Db, ref: IntentRef): Promise<void> {
  await tx
    .update(paymentIntents)
    .set({ status: 'CANCELLED', updatedAt: sql`now()` })
    .where(isIntent(ref));
}

function isIntent(ref: IntentRef) {
  return isRecord(paymentIntents, ref.merchantId, ref.intentId);
}

function isAttemptOn(ref: IntentRef) {
  return hasValues(paymentAttempts, { merchantId: ref.merchantId, intentId: ref.intentId });
}

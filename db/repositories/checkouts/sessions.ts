import { createHash } from 'node:crypto';
import { and, eq, isNull, sql } from 'drizzle-orm';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { emailNormalForm } from '../../../domain/email.ts';
import type { EventDraft } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkouts.ts';
import type { CheckoutPurpose } from '../../schema/checkouts.ts';
import { customers, paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { isSession } from './tries.ts';
import type { SessionRef } from './tries.ts';
import { findFirstPaid } from '../payments/receipts.ts';
import { appendDrafts } from '../subscriptions/events.ts';
import { hasValues, isRecord } from '../is-record.ts';
import { latestAttempt } from '../payments/shown-attempts.ts';

/** Returns the SHA-256 of the token in a checkout URL. Only this hash is stored. */
export function hashCheckoutToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** What opens a session: the token of its page, or the session itself, which a link back to the page names. */
export type SessionKey = string | SessionRef;

/** Returns the SQL condition for the session of a key. A key of another purpose selects no session. */
export function opensWith(key: SessionKey, purpose: CheckoutPurpose) {
  return and(
    typeof key === 'string'
      ? eq(checkoutSessions.tokenHash, hashCheckoutToken(key))
      : isSession(key),
    eq(checkoutSessions.purpose, purpose),
  );
}

export type Checkout = NonNullable<Awaited<ReturnType<typeof findCheckout>>>;

/**
 * Returns the subscription checkout that a key opens; null for an unknown key. `paid`: the payment of the first
 * cycle. `attempt`: the latest attempt to pay it.
 */
export async function findCheckout(db: Db, key: SessionKey) {
  const [row] = await db
    .select({
      merchantId: checkoutSessions.merchantId,
      sessionId: checkoutSessions.id,
      openedAt: checkoutSessions.openedAt,
      tries: checkoutSessions.tries,
      lastErrorCode: checkoutSessions.lastErrorCode,
      subscriptionId: subscriptions.id,
      customerId: subscriptions.customerId,
      state: subscriptions.state,
      clockReachedAt: subscriptions.clockReachedAt,
      customerDetails: subscriptions.customerDetails,
      savedDetails: customers.details,
      receiptId: subscriptions.receiptId,
      metadata: subscriptions.metadata,
      description: subscriptions.description,
      callbackUrl: subscriptions.callbackUrl,
      cancelUrl: subscriptions.cancelUrl,
      productPage: subscriptions.productPage,
      phoneNumberRequired: subscriptions.phoneNumberRequired,
      locale: subscriptions.locale,
      merchantName: merchants.name,
      merchantSettings: merchants.settings,
      mode: merchants.mode,
      card: { brand: paymentMethods.brand, lastFourDigit: paymentMethods.lastFourDigit },
    })
    .from(checkoutSessions)
    .innerJoin(
      subscriptions,
      isRecord(subscriptions, checkoutSessions.merchantId, checkoutSessions.subscriptionId),
    )
    .innerJoin(customers, isRecord(customers, subscriptions.merchantId, subscriptions.customerId))
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .leftJoin(
      paymentMethods,
      isRecord(
        paymentMethods,
        subscriptions.merchantId,
        sql`${subscriptions.state}->>'paymentMethodId'`,
      ),
    )
    .where(opensWith(key, 'subscription'));
  if (row === undefined) return null;
  // While `anchorAt` is null, no cycle is paid.
  const paid = row.state.anchorAt === null ? null : await findFirstPaid(db, row);
  const { merchantId, state } = row;
  const intentId = state.owed?.intentId ?? null;
  const isTried = state.anchorAt === null && intentId !== null && state.owed?.attempts !== 0;
  const attempt = isTried ? await latestAttempt(db, { merchantId, intentId }) : null;
  return { ...row, paid, attempt };
}

/** Returns the session on which a payer pays; null for an unknown session, and for one that only saves a card. */
export async function findPaidSession(db: Db, ref: SessionRef) {
  const [row] = await db
    .select({
      merchantId: checkoutSessions.merchantId,
      sessionId: checkoutSessions.id,
      purpose: checkoutSessions.purpose,
      subscriptionId: checkoutSessions.subscriptionId,
      expiresAt: checkoutSessions.expiresAt,
    })
    .from(checkoutSessions)
    .where(isSession(ref));
  if (!row || row.purpose === 'setup_method') return null;
  return { ...row, purpose: row.purpose };
}

export interface CheckoutRef extends SessionRef {
  subscriptionId: string;
}

/**
 * Marks the checkout as opened and stores the event `draft`. Changes nothing and returns false if the checkout was
 * opened before.
 */
export async function markOpened(
  db: Db,
  checkout: Checkout,
  draft: EventDraft,
  nowAt: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isFirst = await setOpened(tx, checkout, nowAt);
    if (isFirst) await appendDrafts(tx, checkout, [draft]);
    return isFirst;
  });
}

/** Marks the session as opened, inside the caller's transaction. False if the session was opened before. */
export async function setOpened(tx: Db, ref: SessionRef, nowAt: number): Promise<boolean> {
  const opened = await tx
    .update(checkoutSessions)
    .set({ openedAt: nowAt })
    .where(and(isSession(ref), isNull(checkoutSessions.openedAt)))
    .returning({ id: checkoutSessions.id });
  return opened.length > 0;
}

export type GivenDetails = Pick<CustomerDetails, 'name' | 'email' | 'contactNumber'>;

/**
 * Adds the payer's details to the subscription, its intents in CREATED and the customer. Fills in only empty
 * fields.
 */
export async function fillInDetails(db: Db, ref: CheckoutRef, given: GivenDetails): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx
      .select({ details: subscriptions.customerDetails, customerId: subscriptions.customerId })
      .from(subscriptions)
      .where(isSubscription(ref))
      .for('no key update');
    if (!row) return;
    const customerDetails = filledIn(row.details, given);
    const filled = { customerDetails, normalEmail: emailNormalForm(customerDetails.email) };
    await tx.update(subscriptions).set(filled).where(isSubscription(ref));
    await tx
      .update(paymentIntents)
      .set(filled)
      .where(
        hasValues(paymentIntents, {
          merchantId: ref.merchantId,
          subscriptionId: ref.subscriptionId,
          status: 'CREATED',
        }),
      );
    await fillInCustomer(tx, { merchantId: ref.merchantId, customerId: row.customerId }, given);
  });
}

export async function fillInCustomer(
  tx: Db,
  { merchantId, customerId }: { merchantId: string; customerId: string },
  given: GivenDetails,
): Promise<void> {
  const isCustomer = isRecord(customers, merchantId, customerId);
  const [customer] = await tx
    .select({ details: customers.details })
    .from(customers)
    .where(isCustomer)
    .for('no key update');
  if (!customer) return;
  const details = filledIn(customer.details, given);
  await tx
    .update(customers)
    .set({ details, normalEmail: emailNormalForm(details.email) })
    .where(isCustomer);
}

export function filledIn(details: CustomerDetails, given: GivenDetails): CustomerDetails {
  const missing = Object.entries(given).filter(
    ([field, value]) => value && !details[field as keyof CustomerDetails],
  );
  return { ...details, ...Object.fromEntries(missing) };
}

function isSubscription(ref: CheckoutRef) {
  return isRecord(subscriptions, ref.merchantId, ref.subscriptionId);
}

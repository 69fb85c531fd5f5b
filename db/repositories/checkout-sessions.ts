import { createHash } from 'node:crypto';
import { and, eq, isNull, notExists, sql } from 'drizzle-orm';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { EventDraft } from '../../domain/events.ts';
import type { Db } from '../client.ts';
import { checkoutSessions } from '../schema/checkout-sessions.ts';
import { customers } from '../schema/customers.ts';
import { merchants } from '../schema/merchants.ts';
import { paymentIntents } from '../schema/payment-intents.ts';
import { paymentMethods } from '../schema/payment-methods.ts';
import { subscriptionCommands } from '../schema/subscription-commands.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import { appendDrafts } from './subscription-events.ts';

/** What is stored of a checkout URL's token. */
export function hashCheckoutToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** Everything a hosted checkout page shows. */
export type Checkout = NonNullable<Awaited<ReturnType<typeof findCheckout>>>;

/** The checkout that a token opens, or null. */
export async function findCheckout(db: Db, token: string) {
  const [row] = await db
    .select({
      merchantId: checkoutSessions.merchantId,
      sessionId: checkoutSessions.id,
      openedAt: checkoutSessions.openedAt,
      lastErrorCode: checkoutSessions.lastErrorCode,
      subscriptionId: subscriptions.id,
      state: subscriptions.state,
      clockReachedAt: subscriptions.clockReachedAt,
      customerDetails: subscriptions.customerDetails,
      savedDetails: customers.details,
      receiptId: subscriptions.receiptId,
      description: subscriptions.description,
      callbackUrl: subscriptions.callbackUrl,
      cancelUrl: subscriptions.cancelUrl,
      productPage: subscriptions.productPage,
      phoneNumberRequired: subscriptions.phoneNumberRequired,
      merchantName: merchants.name,
      mode: merchants.mode,
      cardLastFourDigit: paymentMethods.lastFourDigit,
    })
    .from(checkoutSessions)
    .innerJoin(
      subscriptions,
      and(
        eq(subscriptions.merchantId, checkoutSessions.merchantId),
        eq(subscriptions.id, checkoutSessions.subscriptionId),
      ),
    )
    .innerJoin(
      customers,
      and(
        eq(customers.merchantId, subscriptions.merchantId),
        eq(customers.id, subscriptions.customerId),
      ),
    )
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .leftJoin(
      paymentMethods,
      and(
        eq(paymentMethods.merchantId, subscriptions.merchantId),
        eq(paymentMethods.id, sql`${subscriptions.state}->>'paymentMethodId'`),
      ),
    )
    .where(eq(checkoutSessions.tokenHash, hashCheckoutToken(token)));
  return row ?? null;
}

export interface CheckoutRef {
  merchantId: string;
  sessionId: string;
  subscriptionId: string;
}

/**
 * The first time a checkout is opened, once: marks it and writes `draft`. False when it was opened
 * before. Rule: D-51.
 */
export async function markOpened(
  db: Db,
  ref: CheckoutRef,
  draft: EventDraft,
  nowAt: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const opened = await tx
      .update(checkoutSessions)
      .set({ openedAt: nowAt })
      .where(and(isSession(ref), isNull(checkoutSessions.openedAt)))
      .returning({ id: checkoutSessions.id });
    if (opened.length === 0) return false;
    await appendDrafts(tx, ref, [draft]);
    return true;
  });
}

/** Counts a try with a card. A token whose command was already accepted is the same try again. */
export async function countTry(db: Db, ref: CheckoutRef, commandId: string): Promise<void> {
  const accepted = db
    .select({ one: sql`1` })
    .from(subscriptionCommands)
    .where(
      and(
        eq(subscriptionCommands.merchantId, ref.merchantId),
        eq(subscriptionCommands.subscriptionId, ref.subscriptionId),
        eq(subscriptionCommands.commandId, commandId),
      ),
    );
  await db
    .update(checkoutSessions)
    .set({ tries: sql`${checkoutSessions.tries} + 1` })
    .where(and(isSession(ref), notExists(accepted)));
}

/** Why the last try did not go through; null clears it. `counts`: the try was not counted before. */
export async function recordTry(
  db: Db,
  ref: CheckoutRef,
  outcome: { errorCode: string | null; counts: boolean },
): Promise<void> {
  await db
    .update(checkoutSessions)
    .set({
      lastErrorCode: outcome.errorCode,
      ...(outcome.counts ? { tries: sql`${checkoutSessions.tries} + 1` } : {}),
    })
    .where(isSession(ref));
}

/**
 * Fills in what the merchant left out and the payer gave, on the subscription, its unpaid intents
 * and the customer. What the merchant gave stays as it is. Rule: D-11.
 */
export async function fillInDetails(
  db: Db,
  ref: CheckoutRef,
  given: Pick<CustomerDetails, 'name' | 'email' | 'contactNumber'>,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx
      .select({ details: subscriptions.customerDetails, customerId: subscriptions.customerId })
      .from(subscriptions)
      .where(isSubscription(ref))
      .for('no key update');
    if (!row) return;
    const details = filledIn(row.details, given);
    await tx.update(subscriptions).set({ customerDetails: details }).where(isSubscription(ref));
    await tx
      .update(paymentIntents)
      .set({ customerDetails: details })
      .where(
        and(
          eq(paymentIntents.merchantId, ref.merchantId),
          eq(paymentIntents.subscriptionId, ref.subscriptionId),
          eq(paymentIntents.status, 'CREATED'),
        ),
      );
    const isCustomer = and(
      eq(customers.merchantId, ref.merchantId),
      eq(customers.id, row.customerId),
    );
    const [customer] = await tx
      .select({ details: customers.details })
      .from(customers)
      .where(isCustomer)
      .for('no key update');
    if (!customer) return;
    await tx
      .update(customers)
      .set({ details: filledIn(customer.details, given) })
      .where(isCustomer);
  });
}

function filledIn(details: CustomerDetails, given: CustomerDetails): CustomerDetails {
  const missing = Object.entries(given).filter(
    ([field, value]) => value && !details[field as keyof CustomerDetails],
  );
  return { ...details, ...Object.fromEntries(missing) };
}

function isSession(ref: CheckoutRef) {
  return and(
    eq(checkoutSessions.merchantId, ref.merchantId),
    eq(checkoutSessions.id, ref.sessionId),
  );
}

function isSubscription(ref: CheckoutRef) {
  return and(
    eq(subscriptions.merchantId, ref.merchantId),
    eq(subscriptions.id, ref.subscriptionId),
  );
}

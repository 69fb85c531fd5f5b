import { createHash } from 'node:crypto';
import { and, eq, getColumnTable, isNull, getColumns } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { emailNormalForm } from '../../../domain/email.ts';
import type { EventDraft } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkouts.ts';
import type { CheckoutPurpose } from '../../schema/checkouts.ts';
import { customers, paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionLinks, subscriptions } from '../../schema/subscriptions.ts';
import { isSession } from './tries.ts';
import type { SessionRef } from './tries.ts';
import { findFirstPaid } from '../payments/receipts.ts';
import { appendDrafts } from '../payments/events.ts';
import { hasValues, isRecord } from '../records.ts';
import { latestAttempt } from '../payments/shown-attempts.ts';
import { payerConditions } from '../customers/customers.ts';
import { CARD, METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';

/** Returns the SHA-256 of the token in a page's URL, or of a browser's id. Only this hash is stored. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

/** What opens a session: the token of its page, or the session itself, which a link back to the page names. */
export type SessionKey = string | SessionRef;

/** Returns the SQL condition for the session of a key. A key of another purpose selects no session. */
export function opensWith(key: SessionKey, purpose: CheckoutPurpose) {
  return and(
    typeof key === 'string' ? eq(checkoutSessions.tokenHash, hashToken(key)) : isSession(key),
    eq(checkoutSessions.purpose, purpose),
  );
}

/** What a hosted page shows of its merchant and its payer. */
export const SHOWN = {
  savedDetails: customers.details,
  merchantName: merchants.name,
  merchantSettings: merchants.settings,
  mode: merchants.mode,
};

export const HOSTED = {
  ...SHOWN,
  merchantId: checkoutSessions.merchantId,
  sessionId: checkoutSessions.id,
  openedAt: checkoutSessions.openedAt,
  tries: checkoutSessions.tries,
  lastErrorCode: checkoutSessions.lastErrorCode,
};

export type Checkout = NonNullable<Awaited<ReturnType<typeof findCheckout>>>;

/** `paid`: the payment of the first cycle. `attempt`: the latest attempt to pay it. */
export async function findCheckout(db: Db, key: SessionKey) {
  const { id: subscriptionId, ...order } = getColumns(subscriptions);
  const [row] = await db
    .select({ ...order, ...HOSTED, subscriptionId, card: CARD })
    .from(checkoutSessions)
    .innerJoin(
      subscriptions,
      isRecord(subscriptions, checkoutSessions.merchantId, checkoutSessions.subscriptionId),
    )
    .innerJoin(customers, isRecord(customers, subscriptions.merchantId, subscriptions.customerId))
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .leftJoin(paymentMethods, METHOD_OF_SUBSCRIPTION)
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
  const [row] = await db.select().from(checkoutSessions).where(isSession(ref));
  if (!row || row.purpose === 'setup_method') return null;
  return { ...row, sessionId: row.id, purpose: row.purpose };
}

/** Marks the session as opened, and writes its event with `append`. False, without effect, if it was opened before. */
export async function setOpened(
  db: Db,
  ref: SessionRef,
  nowAt: number,
  append: (tx: Db) => Promise<void>,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const opened = await tx
      .update(checkoutSessions)
      .set({ openedAt: nowAt })
      .where(and(isSession(ref), isNull(checkoutSessions.openedAt)))
      .returning({ id: checkoutSessions.id });
    if (opened.length > 0) await append(tx);
    return opened.length > 0;
  });
}

/** Marks the checkout as opened and stores the event `draft`. False, without effect, if it was opened before. */
export function markOpened(
  db: Db,
  checkout: Checkout,
  draft: EventDraft,
  nowAt: number,
): Promise<boolean> {
  return setOpened(db, checkout, nowAt, (tx) => appendDrafts(tx, checkout, [draft]));
}

export type GivenDetails = Pick<CustomerDetails, 'name' | 'email' | 'contactNumber'>;

/** Writes the payer's details to the subscription, its unpaid intents and the customer. */
export function fillInDetails(db: Db, checkout: Checkout, given: GivenDetails): Promise<void> {
  const { merchantId, subscriptionId } = checkout;
  const isOrder = isRecord(subscriptions, merchantId, subscriptionId);
  const isOwn = hasValues(paymentIntents, { merchantId, subscriptionId });
  const isUnpaid = and(isOwn, isNull(paymentIntents.succeededAt));
  return fillIn(db, checkout, given, subscriptions.customerDetails, isOrder, async (tx, filled) => {
    await tx.update(subscriptions).set(filled).where(isOrder);
    await tx.update(paymentIntents).set(filled).where(isUnpaid);
  });
}

/**
 * Adds the payer's details to an order, with `write`, and to its customer. Fills in only empty fields, and replaces the
 * e-mail that the order had: also at the customer if it is the same there and no method is saved yet.
 */
export async function fillIn(
  db: Db,
  payer: OrderPayer & { customerDetails: CustomerDetails },
  given: GivenDetails,
  orderDetails: PgColumn,
  isOrder: SQL | undefined,
  write: (tx: Db, filled: ReturnType<typeof withNormalForm>) => Promise<unknown>,
): Promise<void> {
  const { merchantId, customerId, customerDetails } = payer;
  const isCustomer = isRecord(customers, merchantId, customerId);
  const isSaved = hasValues(paymentMethods, { merchantId, customerId, status: 'LIVE' });
  await db.transaction(async (tx) => {
    const former = customerDetails.email;
    const order = await lockFilled(tx, orderDetails, isOrder, given, former);
    if (order) await write(tx, withNormalForm(order));
    if (await isNamedByLink(tx, payer)) return;
    // The address of a customer who has paid opens the payer's own page, and the page of an order may be forwarded.
    const isPayer = and(isCustomer, payerConditions(tx).isPayer);
    if ((await tx.$count(customers, isPayer)) > 0) return;
    const isNew = (await tx.$count(paymentMethods, isSaved)) === 0;
    const replaced = isNew ? former : undefined;
    const details = await lockFilled(tx, customers.details, isCustomer, given, replaced);
    if (!details) return;
    const { normalEmail } = withNormalForm(details);
    await tx.update(customers).set({ details, normalEmail }).where(isCustomer);
  });
}

interface OrderPayer {
  merchantId: string;
  customerId: string;
  /** The link by which the payer came. */
  linkId?: string | null;
}

/** True if the payer's link names this customer. Any person may open a link, so a payer must not change the customer. */
async function isNamedByLink(tx: Db, { merchantId, customerId, linkId }: OrderPayer) {
  if (!linkId) return false;
  const isLink = hasValues(subscriptionLinks, { merchantId, id: linkId, customerId });
  return (await tx.$count(subscriptionLinks, isLink)) > 0;
}

const withNormalForm = (customerDetails: CustomerDetails) => ({
  customerDetails,
  normalEmail: emailNormalForm(customerDetails.email),
});

/** Locks a row and returns its details with the empty fields filled in, and the e-mail `former` replaced. */
async function lockFilled(
  tx: Db,
  column: PgColumn,
  isRow: SQL | undefined,
  given: GivenDetails,
  former: string | null | undefined,
) {
  const query = tx.select({ details: column }).from(getColumnTable<PgTable>(column)).where(isRow);
  const [row] = (await query.for('no key update')) as { details: CustomerDetails }[];
  if (!row) return undefined;
  const { details } = row;
  const changes = Object.entries(given).filter(
    ([field, value]) =>
      value &&
      (!details[field as keyof CustomerDetails] || (field === 'email' && details.email === former)),
  );
  return { ...details, ...Object.fromEntries(changes) };
}

export interface NewCheckout {
  id: string;
  /** The bearer token of the page's URL; only its hash is stored. */
  token: string;
}

/** Writes the session of a hosted page. */
export async function insertSession(
  tx: Db,
  { token, ...session }: Omit<typeof checkoutSessions.$inferInsert, 'tokenHash'> & NewCheckout,
): Promise<void> {
  await tx.insert(checkoutSessions).values({ ...session, tokenHash: hashToken(token) });
}

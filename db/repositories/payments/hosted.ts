import { eq, getColumns } from 'drizzle-orm';
import { isId } from '../../../domain/ids.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkouts.ts';
import { customers } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { HOSTED, fillIn, opensWith, setOpened } from '../checkouts/sessions.ts';
import type { GivenDetails, SessionKey } from '../checkouts/sessions.ts';
import { findPaid } from './receipts.ts';
import { appendIntentEvent, streamOf } from './events.ts';
import { hasValues, isRecord } from '../records.ts';
import { latestAttempt } from './shown-attempts.ts';

export type HostedPayment = NonNullable<Awaited<ReturnType<typeof findHostedPayment>>>;

/** `key`: opens the session, or is the intent's id. `paid`: the receipt. */
export async function findHostedPayment(db: Db, key: SessionKey) {
  const { id: intentId, ...intent } = getColumns(paymentIntents);
  const [row] = await db
    .select({ ...intent, ...HOSTED, intentId })
    .from(checkoutSessions)
    .innerJoin(
      paymentIntents,
      isRecord(paymentIntents, checkoutSessions.merchantId, checkoutSessions.intentId),
    )
    .innerJoin(customers, isRecord(customers, paymentIntents.merchantId, paymentIntents.customerId))
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .where(
      typeof key === 'string' && isId('in', key)
        ? hasValues(checkoutSessions, { intentId: key, purpose: 'payment' })
        : opensWith(key, 'payment'),
    );
  if (row === undefined) return null;
  const paid = row.succeededAt === null ? null : await findPaid(db, row);
  const attempt = row.status === 'CREATED' ? null : await latestAttempt(db, row);
  return { ...row, paid, attempt };
}

/** Marks the page as opened and writes its event, once. Returns the stream to wake; null if it was opened before. */
export async function markPaymentOpened(db: Db, payment: HostedPayment, nowAt: number) {
  const { merchantId, intentId, subscriptionId, status } = payment;
  const intent = { merchantId, id: intentId, subscriptionId };
  const draft = intentEvent('intent.checkout_opened', intentId, nowAt, status);
  const isFirst = await setOpened(db, payment, nowAt, (tx) => appendIntentEvent(tx, intent, draft));
  return isFirst ? streamOf(intent) : null;
}

/** Adds the payer's details to the intent and the customer. */
export function fillInPaymentDetails(
  db: Db,
  payment: HostedPayment,
  given: GivenDetails,
): Promise<void> {
  const isIntent = isRecord(paymentIntents, payment.merchantId, payment.intentId);
  return fillIn(db, payment, given, paymentIntents.customerDetails, isIntent, (tx, filled) =>
    tx.update(paymentIntents).set(filled).where(isIntent),
  );
}

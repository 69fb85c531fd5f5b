import type { Db } from '../../../db/client.ts';
import { findCustomer } from '../../../db/repositories/customers.ts';
import { hasLiveMethod } from '../../../db/repositories/payment-methods.ts';
import { insertPayment } from '../../../db/repositories/payments.ts';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import { notFound } from '../../answers.ts';
import type { ChargeTokenisedBody } from './schema.ts';

/**
 * Writes the intent of a charge of a saved method, inside the caller's transaction.
 *
 * @throws DomainError `resource_not_found` unless the method is live and belongs to the customer, and
 * both belong to the merchant. Rules: IF-4.12, D-10, D-36.
 */
export async function insertTokenised(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: ChargeTokenisedBody,
  nowAt: number,
): Promise<void> {
  const customer = await findCustomer(tx, merchantId, body.customerId);
  if (!customer) throw notFound('customer');
  const method = { merchantId, customerId: customer.id, id: body.pmId };
  if (!(await hasLiveMethod(tx, method))) throw notFound('payment method');
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'tokenised',
    customerId: customer.id,
    paymentMethodId: body.pmId,
    amountMinor: body.amount,
    currency: body.currency,
    customerDetails: customer.details,
    receiptId: body.receiptId ?? null,
    storeFrontId: body.storeFrontId ?? null,
    metadata: body.metadata ?? null,
    nowAt,
  });
}

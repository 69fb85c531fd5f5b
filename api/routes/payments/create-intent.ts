import type { Db } from '../../../db/client.ts';
import { findIntentRecord } from '../../../db/repositories/payments-read.ts';
import { insertPayment } from '../../../db/repositories/payments.ts';
import { invariant } from '../../../domain/errors.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { ok } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Outcome } from '../../idempotency.ts';
import { paymentPath } from '../../page-paths.ts';
import { payerOf } from '../customers/payer.ts';
import { presentIntent } from './present.ts';
import type { CreateIntentBody } from './schema.ts';

/**
 * Creates a payment that a payer makes on a hosted page, inside the caller's transaction. An
 * extension. Rules: D-§7, D-11.
 */
export async function createIntentIn(
  tx: Db,
  deps: ApiDeps,
  merchantId: string,
  body: CreateIntentBody,
): Promise<Outcome> {
  const nowAt = deps.now();
  const intentId = newId('in', nowAt, deps.random);
  const token = randomToken(deps.random);
  const { customerId, customerDetails } = body;
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'hosted',
    customerId: await payerOf(tx, deps, merchantId, { customerId, details: customerDetails }),
    amountMinor: body.amount,
    currency: body.currency,
    customerDetails,
    receiptId: body.receiptId ?? null,
    description: body.description ?? null,
    storeFrontId: body.storeFrontId ?? null,
    callbackUrl: body.callbackUrl,
    cancelUrl: body.cancelUrl ?? null,
    paymentMethods: body.paymentMethods ?? null,
    metadata: body.metadata ?? null,
    phoneNumberRequired: body.phoneNumberRequired ?? false,
    tokenise: body.tokenise ?? false,
    nowAt,
    checkout: {
      id: newId('cs', nowAt, deps.random),
      token,
      expiresAt: nowAt + deps.checkoutExpiryMs,
    },
  });
  const record = await findIntentRecord(tx, merchantId, intentId);
  invariant(record, 'the intent exists after its insert');
  return {
    answer: ok({
      ...presentIntent(record, nowAt),
      fwdUrl: `${deps.publicUrl}${paymentPath(token)}`,
    }),
    // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
    afterCommit: async () => void deps.webhooks.wakeStream({ merchantId, streamId: intentId }),
  };
}

import type { Router } from '@koa/router';
import { findCustomer } from '../../../db/repositories/customers.ts';
import { loadSettings } from '../../../db/repositories/merchant-settings.ts';
import { insertLink } from '../../../db/repositories/subscription-links.ts';
import type { Db } from '../../../db/client.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { fallbackDisclaimer, PAYMENT_METHOD_KINDS } from '../../../domain/payment-method.ts';
import { notFound, ok } from '../../answers.ts';
import { callerOf } from '../../context.ts';
import type { Merchant, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { answerInTransaction } from '../../idempotency.ts';
import type { Outcome } from '../../idempotency.ts';
import { termsOf } from '../subscriptions/create.ts';
import { checkDates, readGenerateLink } from './schema.ts';
import type { GenerateLinkBody } from './schema.ts';

/** Rule: D-37. */
const CODE_LENGTH = 12;

export function linkRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  /** Rule: IF-4.4. */
  router.post('/subscription/link/merchant/generate-link', async (ctx) => {
    const merchant = callerOf(ctx);
    const body = readGenerateLink(ctx.state.body);
    await answerInTransaction(deps, ctx, (tx) => {
      // Checked after the key is claimed, so that a repeat gets its answer even after `expiryDate`.
      checkDates(body, deps.now());
      return generateLinkIn(tx, deps, merchant, body);
    });
  });
}

async function generateLinkIn(
  tx: Db,
  { now, random, publicUrl }: ApiDeps,
  merchant: Merchant,
  body: GenerateLinkBody,
): Promise<Outcome> {
  const { customerId = null } = body;
  if (customerId !== null && !(await findCustomer(tx, merchant.id, customerId))) {
    throw notFound('customer');
  }
  const { paymentMethods = PAYMENT_METHOD_KINDS } = await loadSettings(tx, merchant.id);
  const code = randomToken(random, CODE_LENGTH);
  const createdAt = now();
  await insertLink(tx, {
    merchantId: merchant.id,
    id: newId('lnk', createdAt, random),
    code,
    terms: termsOf(body),
    customerId,
    customerDetails: body.customerDetails,
    receiptId: body.receiptId ?? null,
    description: body.description ?? null,
    callbackUrl: body.callbackUrl ?? null,
    cancelUrl: body.cancelUrl ?? null,
    productPage: body.productPage ?? null,
    phoneNumberRequired: body.phoneNumberRequired ?? false,
    multiUseLimit: body.multiUseLimit ?? 1,
    createdAt,
    expiresAt: body.expiryDate,
  });
  return {
    answer: ok({
      shortUrl: `${publicUrl}/l/${code}`,
      disclaimer: fallbackDisclaimer(paymentMethods, body.currency),
    }),
  };
}

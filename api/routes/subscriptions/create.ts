import type { Db } from '../../../db/client.ts';
import { createSubscription } from '../../../db/repositories/create-subscription.ts';
import { findTestClock } from '../../../db/repositories/test-clocks.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import type { Terms } from '../../../domain/subscription/state.ts';
import { notFound, ok } from '../../answers.ts';
import type { Merchant } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Outcome } from '../../idempotency.ts';
import { payerOf } from '../customers/payer.ts';
import { checkTerms } from './schema.ts';
import type { CreateSubscriptionBody } from './schema.ts';

/**
 * Creates a subscription inside the caller's transaction; once that committed, its workflow is
 * started. The answer does not wait for more than a second on Temporal and does not depend on it:
 * what was not started, the sweep starts. Rules: IF-4.3, D-11, D-60.
 */
export async function createSubscriptionIn(
  tx: Db,
  deps: ApiDeps,
  merchant: Merchant,
  body: CreateSubscriptionBody,
): Promise<Outcome> {
  const createdAt = await birthOf(tx, deps, merchant, body);
  const subscriptionId = newId('sub', deps.now(), deps.random);
  const terms = termsOf(body);
  const token = randomToken(deps.random);
  await createSubscription(
    tx,
    {
      subscriptionId,
      merchantId: merchant.id,
      customerId: await payerOf(tx, deps, merchant.id, {
        customerId: body.customerId,
        details: body.customerDetails,
      }),
      terms,
      createdAt,
      checkoutExpiresAt: createdAt + deps.checkoutExpiryMs,
      testClockId: body.testClockId ?? null,
      firstIntentId: terms.trial === null ? newId('in', deps.now(), deps.random) : null,
    },
    {
      customerDetails: body.customerDetails,
      receiptId: body.receiptId ?? null,
      description: body.description ?? null,
      callbackUrl: body.callbackUrl,
      cancelUrl: body.cancelUrl ?? null,
      metadata: body.metadata ?? null,
      productPage: body.productPage ?? null,
      phoneNumberRequired: body.phoneNumberRequired ?? false,
    },
    { id: newId('cs', deps.now(), deps.random), token },
  );
  return {
    answer: ok({
      subscriptionId,
      createdAt: formatInstant(createdAt),
      fwdUrl: `${deps.publicUrl}/checkout/${token}`,
    }),
    afterCommit: () => deps.workflows.start({ merchantId: merchant.id, subscriptionId }),
  };
}

/** The present, or where the test clock stands; it stands still until the transaction ends. */
async function birthOf(
  tx: Db,
  { now }: ApiDeps,
  merchant: Merchant,
  body: CreateSubscriptionBody,
): Promise<number> {
  if (body.testClockId === undefined) return now();
  const clock = await findTestClock(tx, merchant.id, body.testClockId, 'share');
  if (!clock) throw notFound('test clock');
  checkTerms(body, clock.targetAt);
  return clock.targetAt;
}

function termsOf(body: CreateSubscriptionBody): Terms {
  const { trialPeriodInterval: interval, trialPeriodCount: count = 0 } = body;
  return {
    amountMinor: body.amount,
    currency: body.currency,
    interval: body.interval,
    intervalCount: body.intervalCount,
    cycleCount: body.cycleCount,
    upfrontAmountMinor: body.upfrontAmount ?? null,
    // A count of 0 means no trial. Rule: D-12.
    trial: interval === undefined || count === 0 ? null : { interval, count },
  };
}

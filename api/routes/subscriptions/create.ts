import type { Db } from '../../../db/client.ts';
import { createSubscription } from '../../../db/repositories/create-subscription.ts';
import type { SubscriptionOrder } from '../../../db/repositories/create-subscription.ts';
import { findTestClock } from '../../../db/repositories/test-clocks.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import type { NewSubscription, Terms } from '../../../domain/subscription/state.ts';
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
  const token = randomToken(deps.random);
  const subscriptionId = await writeSubscription(
    tx,
    deps,
    {
      merchantId: merchant.id,
      customerId: await payerOf(tx, deps, merchant.id, {
        customerId: body.customerId,
        details: body.customerDetails,
      }),
      terms: termsOf(body),
      createdAt,
      testClockId: body.testClockId ?? null,
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
    token,
  );
  return {
    answer: ok({
      subscriptionId,
      createdAt: formatInstant(createdAt),
      fwdUrl: `${deps.publicUrl}/checkout/${token}`,
    }),
    afterCommit: () => deps.starts.begin({ merchantId: merchant.id, subscriptionId }),
  };
}

type TermsFields = Pick<
  CreateSubscriptionBody,
  | 'amount'
  | 'currency'
  | 'interval'
  | 'intervalCount'
  | 'cycleCount'
  | 'upfrontAmount'
  | 'trialPeriodCount'
  | 'trialPeriodInterval'
>;

/** What is decided about a subscription when it begins. */
type Birth = Pick<
  NewSubscription,
  'merchantId' | 'customerId' | 'terms' | 'createdAt' | 'testClockId'
>;

/**
 * Writes a new subscription with a checkout that `token` opens, inside the caller's transaction, and
 * answers its id. The caller starts its workflow once that committed.
 */
export async function writeSubscription(
  tx: Db,
  { now, random, checkoutExpiryMs }: Pick<ApiDeps, 'now' | 'random' | 'checkoutExpiryMs'>,
  birth: Birth,
  order: SubscriptionOrder,
  token: string,
): Promise<string> {
  const subscriptionId = newId('sub', now(), random);
  await createSubscription(
    tx,
    {
      ...birth,
      subscriptionId,
      checkoutExpiresAt: birth.createdAt + checkoutExpiryMs,
      // A trial's first intent is made when it ends.
      firstIntentId: birth.terms.trial === null ? newId('in', now(), random) : null,
    },
    order,
    { id: newId('cs', now(), random), token },
  );
  return subscriptionId;
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

/** The terms that a request's fields, already judged, come to. */
export function termsOf(body: TermsFields): Terms {
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

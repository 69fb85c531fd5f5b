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
 * Creates a subscription inside the caller's transaction. After the commit its workflow is queued to be
 * started. The answer does not depend on Temporal: the maintenance sweep starts a workflow that was not
 * started. Rules: IF-4.3, D-11, D-60.
 */
export async function createSubscriptionIn(
  tx: Db,
  deps: ApiDeps,
  merchant: Merchant,
  body: CreateSubscriptionBody,
): Promise<Outcome> {
  const createdAt = await creationTime(tx, deps, merchant, body);
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

/** The fields of a new subscription that the caller of {@link writeSubscription} decides. */
type InitialFields = Pick<
  NewSubscription,
  'merchantId' | 'customerId' | 'terms' | 'createdAt' | 'testClockId'
>;

/**
 * Writes a new subscription and its checkout, which `token` opens, inside the caller's transaction.
 * Returns the subscription's id. The caller starts the workflow after the commit.
 */
export async function writeSubscription(
  tx: Db,
  { now, random, checkoutExpiryMs }: Pick<ApiDeps, 'now' | 'random' | 'checkoutExpiryMs'>,
  fields: InitialFields,
  order: SubscriptionOrder,
  token: string,
): Promise<string> {
  const subscriptionId = newId('sub', now(), random);
  await createSubscription(
    tx,
    {
      ...fields,
      subscriptionId,
      checkoutExpiresAt: fields.createdAt + checkoutExpiryMs,
      // With a trial the first intent is created at the end of the trial.
      firstIntentId: fields.terms.trial === null ? newId('in', now(), random) : null,
    },
    order,
    { id: newId('cs', now(), random), token },
  );
  return subscriptionId;
}

/** Real time, or the time of the test clock. The clock is locked until the transaction ends. */
async function creationTime(
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

/** Converts the validated fields of a request to terms. */
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

import type { Client, CreateSubscriptionRequest } from '../../../client/index.ts';
import { MONTHLY, subscribe } from '../../scripts/client/monthly.ts';
import { payOnPage } from '../../scripts/client/payer.ts';
import type { RunningStart } from '../../scripts/client/running-start.ts';
import { advanceTestClock, createTestClock } from '../../scripts/client/test-clock.ts';

export interface Records {
  readonly subscriptions: readonly string[];
  /** Subscriptions for the cancel operation only, so that the other operations get active ones. */
  readonly cancellable: readonly string[];
  readonly customers: readonly string[];
  readonly paymentMethods: readonly string[];
  readonly intents: readonly string[];
  readonly setupMethods: readonly string[];
  readonly testClocks: readonly string[];
}

const DAY_MS = 86_400_000;
const ADVANCE_WITHIN_MS = 60_000;
const PAYER = { name: 'Ada Example', email: 'ada@example.com' };
const CALLBACK_URL = 'https://merchant.example/thanks';

/** Subscriptions in every status but ENDED, made through the API and the hosted pages. */
export async function makeRecords(start: RunningStart, merchant: Client): Promise<Records> {
  const subscribeAndPay = (changes: Partial<CreateSubscriptionRequest> = {}) =>
    subscribe(merchant, changes);

  const testClockId = await createTestClock(merchant, Date.now());
  const active = await times(4, () => subscribeAndPay({ testClockId }));
  const trialing = await times(2, () =>
    subscribeAndPay({ trialPeriodInterval: 'DAY', trialPeriodCount: 7 }),
  );
  const unpaid = await times(3, () => subscribeAndPay({ testClockId, interval: 'DAY' }));
  for (const id of unpaid) await start.declineNext(id, 'insufficient_funds', 20);
  await advanceTestClock(merchant, testClockId, Date.now() + 5 * DAY_MS, ADVANCE_WITHIN_MS);
  const paused = await times(2, () => subscribeAndPay());
  await Promise.all(
    paused.map((subscriptionId) => merchant.pauseSubscription({ body: { subscriptionId } })),
  );
  const created = await times(2, () => createSubscription(merchant));

  const saved = await saveMethod(merchant);
  const charge = { subscriptionId: active[0] ?? '', amount: 2_500, currency: 'USD' };
  const oneTime = await times(6, async () => {
    const answer = await merchant.chargeSubscriptionOnce({ body: charge });
    return answer.intentId;
  });
  return {
    subscriptions: [...active, ...trialing, ...unpaid, ...paused, ...created],
    cancellable: await times(4, () => subscribeAndPay()),
    customers: [saved.customerId],
    paymentMethods: [saved.pmId],
    intents: [...oneTime, ...(await times(3, () => createIntent(merchant)))],
    setupMethods: [saved.setupMethodId],
    testClocks: [testClockId],
  };
}

async function createSubscription(merchant: Client): Promise<string> {
  return (await merchant.createSubscription({ body: MONTHLY })).subscriptionId;
}

async function saveMethod(merchant: Client) {
  const { setupMethodId, fwdUrl } = await merchant.createSetupMethod({
    body: { currency: 'USD', billingDetails: PAYER, callbackUrl: CALLBACK_URL },
  });
  await payOnPage(fwdUrl);
  const session = await merchant.getSetupMethod({ path: { setupMethodId } });
  if (session.pmId === undefined) throw new Error('the setup session saved no payment method');
  return { setupMethodId, customerId: session.customerId, pmId: session.pmId };
}

async function createIntent(merchant: Client): Promise<string> {
  const { xIntentId } = await merchant.createIntent({
    body: {
      amount: 4_900,
      currency: 'USD',
      customerDetails: PAYER,
      callbackUrl: CALLBACK_URL,
    },
  });
  return xIntentId;
}

async function times<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let i = 0; i < count; i += 1) made.push(await make());
  return made;
}

import { controlDouble } from '../client/double-control.ts';
import { askControl } from '../../../cli/verify/gateway-control.ts';
import { openPage } from '../client/browser.ts';
import { askForPortal, declare } from '../client/declare.ts';
import { MONTHLY } from '../client/monthly.ts';
import { cardOf } from '../client/payer.ts';
import type { TypedCard } from '../client/payer.ts';
import { payUntilAnswered } from '../client/retrying-payer.ts';
import { advanceTestClock, createTestClock } from '../client/test-clock.ts';
import { deactivate, fail } from './endpoint.ts';
import type { EventType, Scene } from './scene.ts';

interface Made {
  readonly subscriptionId: string;
  readonly fwdUrl: string;
  readonly testClockId: string;
}

const WITHIN_MS = 60_000;
/** Longest wait in ms for the sweep, which reports a refused account. */
export const REPORTED_WITHIN_MS = 900_000;
const DAY_MS = 86_400_000;
/** More than the attempts of every retry plan. */
const DECLINES = 20;
const DECLINED_CARD = cardOf('4000 0000 0000 0002');
const TRIAL = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' } as const;
const YEARLY = { interval: 'YEAR', intervalCount: 1, cycleCount: 2 } as const;
const { amount, currency, customerDetails, callbackUrl } = MONTHLY;

const pay = (url: string, card?: TypedCard) =>
  payUntilAnswered(url, {
    address: '127.0.0.1',
    withinMs: WITHIN_MS,
    betweenLooksMs: 250,
    nextCard: () => null,
    ...(card && { card }),
  });

async function create({ client }: Scene, terms: object = {}): Promise<Made> {
  const testClockId = await createTestClock(client, Date.now());
  const body = { ...MONTHLY, ...terms, testClockId };
  return { ...(await client.createSubscription({ body })), testClockId };
}

async function createActive(scene: Scene, terms?: object): Promise<Made> {
  const made = await create(scene, terms);
  await pay(made.fwdUrl);
  return made;
}

/** Advances the clock to the next payment, and `days` further. */
async function renew({ client }: Scene, made: Made, days = 0): Promise<void> {
  const { subscriptionId, testClockId } = made;
  const { nextPaymentDate } = await client.getSubscription({ path: { subscriptionId } });
  const to = (nextPaymentDate ?? Date.now()) + days * DAY_MS;
  await advanceTestClock(client, testClockId, to, WITHIN_MS);
}

async function decline(scene: Scene, count: number, days?: number): Promise<void> {
  const made = await createActive(scene, { cycleCount: 2 });
  const { subscriptionId } = made;
  const body = { subscriptionId, code: 'insufficient_funds', count } as const;
  await scene.client.declineNext({ body });
  await renew(scene, made, days);
}

const openPayment = ({ client }: Scene) =>
  client.createIntent({ body: { amount, currency, customerDetails, callbackUrl } });

async function paidIntent(scene: Scene): Promise<string> {
  const { xIntentId, fwdUrl } = await openPayment(scene);
  await pay(fwdUrl);
  return xIntentId;
}

async function scheduleCancel(scene: Scene): Promise<string> {
  const { subscriptionId } = await createActive(scene);
  await scene.client.cancelSubscription({ body: { subscriptionId, atPeriodEnd: true } });
  return subscriptionId;
}

interface DoubleCharge {
  readonly id: string;
  readonly paymentMethodId: string;
}

/** The control routes of the Stripe double of the running `npm start`. */
function doubleOf({ demo }: Scene) {
  if (demo?.stripeDouble !== undefined) return { ...controlDouble(demo), ...demo.stripeDouble };
  throw new Error(
    'Only an account at Stripe reports this. Stop npm start, run it with DATA_DIR set to a new folder and ' +
      '--gateway stripe-double, and try again with the same DATA_DIR.',
  );
}

/** Pays a subscription at the Stripe double. Returns its control routes and the charge there. */
async function paidAtDouble(scene: Scene) {
  const double = doubleOf(scene);
  const { subscriptionId } = await createActive(scene);
  const { data } = await scene.client.listIntents({ query: { subscriptionId } });
  const listed = await askControl(`${double.url}/control/charges`, scene.demo?.gatewayKey ?? '');
  const charge = (listed as { charges: DoubleCharge[] }).charges.at(-1);
  const xIntentId = data[0]?.xIntentId;
  if (charge === undefined || xIntentId === undefined) throw new Error('There is no charge.');
  return { double, xIntentId, charge };
}

const ACCOUNT_TYPES = ['account.charges_blocked', 'account.charges_resumed'] as const;

async function isBlocked({ client }: Scene): Promise<boolean> {
  let last = '';
  for await (const { events } of client.feed({ types: [...ACCOUNT_TYPES], wait: 0 })) {
    last = events.at(-1)?.eventType ?? last;
  }
  return last === 'account.charges_blocked';
}

/** Lets Stripe refuse the account while a subscription renews, until the sweep has reported it. */
async function blockAccount(scene: Scene): Promise<void> {
  const { client } = scene;
  const double = doubleOf(scene);
  if (await isBlocked(scene)) {
    throw new Error('The account is blocked already. Wait for account.charges_resumed.');
  }
  const { subscriptionId, testClockId } = await createActive(scene);
  const { nextPaymentDate } = await client.getSubscription({ path: { subscriptionId } });
  const { metadata } = await client.getEvents({ query: { after: 'now' } });
  const body = JSON.stringify({ error: { type: 'invalid_request_error', message: 'Invalid key' } });
  await double.addFault({ fault: 'answer', status: 401, body, count: 100_000 });
  try {
    // The clock cannot reach the date while the charge waits, so this does not wait for it.
    await client.advanceTestClock({ body: { testClockId, to: nextPaymentDate ?? 0 } });
    const query = { after: metadata.after, types: ['account.charges_blocked' as const] };
    const signal = AbortSignal.timeout(REPORTED_WITHIN_MS);
    for await (const page of client.feed(query, { signal })) if (page.events.length > 0) return;
  } finally {
    await double.clearFaults();
  }
}

async function declareOn(scene: Scene, kind: 'cancellation' | 'withdrawal'): Promise<void> {
  const { subscriptionId: reference } = await createActive(scene);
  const { declarationPages } = await scene.client.getMerchantSettings();
  await declare(declarationPages[kind], { ...customerDetails, reference });
}

/** What makes an event of each type happen, through the API, by a payer on the hosted pages, or at the gateway. */
export const RECIPES: Readonly<Record<EventType, (scene: Scene) => Promise<unknown>>> = {
  'intent.checkout_opened': async (scene) => openPage((await openPayment(scene)).fwdUrl),
  'intent.created': openPayment,
  'intent.failed': async (scene) => pay((await openPayment(scene)).fwdUrl, DECLINED_CARD),
  'intent.refunded': async (scene) =>
    scene.client.refundIntent({ body: { xIntentId: await paidIntent(scene) } }),
  'intent.success': paidIntent,
  'intent.refund_failed': async (scene) => {
    const { double, xIntentId, charge } = await paidAtDouble(scene);
    await scene.client.refundIntent({ body: { xIntentId } });
    const failure = 'lost_or_stolen_card';
    await double.order('refunds/settle', { chargeId: charge.id, failure });
  },
  'intent.disputed': async (scene) => {
    const { double, charge } = await paidAtDouble(scene);
    await double.order('disputes', { chargeId: charge.id });
  },
  'intent.fraud_warning': async (scene) => {
    const { double, charge } = await paidAtDouble(scene);
    await double.order('fraud-warnings', { chargeId: charge.id });
  },
  'subscription.trialing': (scene) => createActive(scene, TRIAL),
  'subscription.cycle_charged': createActive,
  'subscription.created': create,
  'subscription.checkout_opened': async (scene) => openPage((await create(scene, TRIAL)).fwdUrl),
  'subscription.active': createActive,
  'subscription.unpaid': (scene) => decline(scene, 1),
  'subscription.retries_exhausted': (scene) => decline(scene, DECLINES, 7),
  'subscription.paused': async (scene) => {
    const { subscriptionId } = await createActive(scene);
    await scene.client.pauseSubscription({ body: { subscriptionId } });
  },
  'subscription.ended': async (scene) => {
    const { subscriptionId } = await createActive(scene);
    await scene.client.cancelSubscription({ body: { subscriptionId } });
  },
  'subscription.edited': async (scene) => {
    const { subscriptionId } = await createActive(scene);
    await scene.client.editSubscription({ body: { subscriptionId, newAmount: 2_499 } });
  },
  'subscription.cancel_scheduled': scheduleCancel,
  'subscription.resumed': async (scene) =>
    scene.client.resumeSubscription({ body: { subscriptionId: await scheduleCancel(scene) } }),
  'subscription.renewal_upcoming': async (scene) =>
    renew(scene, await createActive(scene, YEARLY), -10),
  'subscription.trial_ending': async (scene) =>
    renew(scene, await createActive(scene, { ...TRIAL, trialPeriodCount: 14 }), -8),
  'subscription.amount_changing': async (scene) => {
    const made = await createActive(scene, YEARLY);
    const { subscriptionId } = made;
    await scene.client.editSubscription({ body: { subscriptionId, newAmount: 2_499 } });
    await renew(scene, made, -10);
  },
  // No card is valid for so long.
  'payment_method.expiring': async (scene) =>
    renew(scene, await createActive(scene, { ...YEARLY, intervalCount: 10 }), -30),
  'setup_method.success': async ({ client }) => {
    const body = { currency, callbackUrl, billingDetails: customerDetails };
    await pay((await client.createSetupMethod({ body })).fwdUrl);
  },
  'setup_method.updated': async (scene) => {
    const { double, charge } = await paidAtDouble(scene);
    const card = { lastFour: '1881', expiryMonth: 7, expiryYear: 2_037 };
    await double.order('cards', { paymentMethodId: charge.paymentMethodId, ...card });
  },
  'account.charges_blocked': blockAccount,
  // It comes some minutes later, when the charge that waits is sent again.
  'account.charges_resumed': async (scene) => {
    if (await isBlocked(scene)) await doubleOf(scene).clearFaults();
    else await blockAccount(scene);
  },
  'cancellation.received': (scene) => declareOn(scene, 'cancellation'),
  'withdrawal.received': (scene) => declareOn(scene, 'withdrawal'),
  'customer.portal_requested': async (scene) => {
    await createActive(scene);
    const { payerPage } = await scene.client.getMerchantSettings();
    await askForPortal(payerPage, customerDetails.email);
  },
  'webhook.failing': (scene) => fail(scene, openPayment),
  'webhook.deactivated': (scene) => deactivate(scene, openPayment),
};

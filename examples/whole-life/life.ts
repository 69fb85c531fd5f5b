/**
 * The whole life of a subscription, in test mode. Needs a running `npm start`.
 *
 *     node --import tsx examples/whole-life/life.ts
 *
 * Reads API_URL, KEY_ID and SECRET from the environment, else from .data/demo.json. Prints one line for each
 * step, and stops with exit code 1 at the first answer or event that is not as expected. A test clock lets the
 * months pass.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, PerennialError } from '../../client/index.ts';
import type { Event, IntentEvent, Subscription, SubscriptionEvent } from '../../client/index.ts';
import { expectSame } from './checks.ts';
import { Inbox } from './inbox.ts';
import type { EventType } from './inbox.ts';
import { payAt } from './payer.ts';

const TYPES = [
  'intent.success',
  'intent.failed',
  'intent.refunded',
  'subscription.cycle_charged',
  'subscription.active',
  'subscription.unpaid',
  'subscription.paused',
  'subscription.ended',
  'setup_method.success',
] satisfies EventType[];
const PAID = ['intent.success', 'subscription.cycle_charged'] satisfies EventType[];
const TERMS = {
  currency: 'USD',
  amount: 1_999,
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  callbackUrl: 'https://merchant.example/thanks',
} as const;
const ADA = { name: 'Ada Example', email: 'ada@example.com' };

const client = createClient(readSettings());
const inbox = new Inbox();

function readSettings(): { apiUrl: string; keyId: string; secret: string } {
  const { API_URL, KEY_ID, SECRET } = process.env;
  if (API_URL && KEY_ID && SECRET) return { apiUrl: API_URL, keyId: KEY_ID, secret: SECRET };
  return JSON.parse(readFileSync('.data/demo.json', 'utf8'));
}

const at = (instant: string): number => Date.parse(instant);
const step = (name: string, text: string): void => console.log(`${name.padEnd(12)} ${text}`);

const isOfIntent = (event: Event): event is IntentEvent => event.eventType.startsWith('intent.');
const isOfSubscription = (event: Event): event is SubscriptionEvent =>
  event.eventType.startsWith('subscription.');

/** A subscription, and the time of its test clock. */
class Life {
  readonly id: string;
  now = 0;
  private readonly testClockId: string;
  private readonly types: EventType[] = [];

  constructor(id: string, testClockId = '') {
    this.id = id;
    this.testClockId = testClockId;
  }

  async passTime(until: string): Promise<void> {
    this.now = at(until);
    const { testClockId } = this;
    const body = { testClockId, to: this.now };
    let clock = await client.advanceTestClock({ body });
    while (clock.status === 'ADVANCING') {
      await sleep(1_000);
      clock = await client.getTestClock({ path: { testClockId } });
    }
  }

  /** Expects these new events and no others. */
  async expectEvents(...types: EventType[]): Promise<void> {
    this.types.push(...types);
    await inbox.expect('subscriptionId', this.id, this.types);
  }

  get lastEvent(): SubscriptionEvent | undefined {
    return inbox.about('subscriptionId', this.id).filter(isOfSubscription).at(-1);
  }

  get lastIntentEvent(): IntentEvent | undefined {
    return inbox.about('subscriptionId', this.id).filter(isOfIntent).at(-1);
  }

  /** Expects access or none, as derived from the newest event alone (docs/integrating.md). */
  expectAccess(expected: boolean): void {
    const hasAccess = this.now < (this.lastEvent?.currentPeriodEnd ?? 0);
    expectSame(`access at ${new Date(this.now).toISOString()}`, hasAccess, expected);
  }

  async expectFields(fields: Partial<Subscription>): Promise<void> {
    const read = await client.getSubscription({ path: { subscriptionId: this.id } });
    expectSame('subscription', read, { ...read, ...fields });
  }
}

async function subscribe(): Promise<Life> {
  const now = at('2027-01-31T12:00Z');
  const { testClockId } = await client.createTestClock({ body: { now } });
  const order = { ...TERMS, customerDetails: ADA, testClockId };
  const created = await client.createSubscription({ body: order });
  const life = new Life(created.subscriptionId, testClockId);
  await life.expectFields({ status: 'CREATED', currentPeriodEnd: null });
  step('created', life.id);

  await payAt(created.fwdUrl);
  await life.expectEvents(...PAID, 'subscription.active');
  const nextPaymentDate = at('2027-02-28T12:00Z');
  await life.expectFields({ status: 'ACTIVE', nextPaymentDate, remainingCycleCount: 11 });
  life.now = now;
  life.expectAccess(true);
  step('paid', '19.99 USD on the hosted page; ACTIVE until 28 February');
  return life;
}

async function editAndPause(life: Life): Promise<void> {
  const subscriptionId = life.id;
  await client.editSubscription({ body: { subscriptionId, newAmount: 2_499 } });
  await life.passTime('2027-02-28T12:00Z');
  await life.expectEvents(...PAID);
  expectSame('amount', life.lastEvent?.amount, 2_499);
  step('edited', '24.99 USD from 28 February on');

  await life.passTime('2027-03-10T12:00Z');
  const resumeAt = at('2027-04-15T12:00Z');
  const pause = { subscriptionId, resumeAt };
  await client.pauseSubscription({ body: pause });
  await life.expectEvents('subscription.paused');
  await life.expectFields({ status: 'PAUSED', resumeAt, nextPaymentDate: null });
  life.expectAccess(true);
  await life.passTime('2027-04-15T11:59:59Z');
  life.expectAccess(false);
  await life.passTime('2027-04-15T12:00Z');
  await life.expectEvents('subscription.active', ...PAID);
  life.expectAccess(true);
  step('paused', 'from 10 March to 15 April; access until 31 March; then charged again');
}

async function recoverFromDeclines(life: Life): Promise<void> {
  const subscriptionId = life.id;
  const decline = { subscriptionId, code: 'insufficient_funds', count: 2 } as const;
  await client.declineNext({ body: decline });
  await life.passTime('2027-05-15T12:00Z');
  await life.expectEvents('intent.failed', 'subscription.unpaid');
  expectSame('reason', life.lastEvent?.errorCode, 'insufficient_funds');
  expectSame('automatic retry', life.lastEvent?.nextRetryAt, at('2027-05-15T16:00Z'));
  life.expectAccess(false);
  await life.passTime('2027-05-15T16:00Z');
  await life.expectEvents('intent.failed');
  step('declined', 'on 15 May and four hours later: insufficient_funds; UNPAID');

  const body = { subscriptionId };
  const retry = await client.retrySubscriptionPayment({ body });
  const { success, status, errorCode } = retry;
  expectSame('retry', [success, status, errorCode], [true, 'ACTIVE', null]);
  await life.expectEvents(...PAID, 'subscription.active');
  expectSame('paid until', life.lastEvent?.currentPeriodEnd, at('2027-06-15T12:00Z'));
  life.expectAccess(true);
  step('retried', 'by hand: paid; ACTIVE until 15 June');

  const part = { xIntentId: life.lastIntentEvent?.intentId ?? '', amount: 1_000 };
  const refund = await client.refundIntent({ body: part });
  expectSame('refund', [refund.amount, refund.currency], [1_000, 'USD']);
  await life.expectEvents('intent.refunded');
  expectSame('intent', life.lastIntentEvent?.status, 'PARTIALLY_REFUNDED');
  step('refunded', '10.00 USD of it');
}

async function cancelAtPeriodEnd(life: Life): Promise<void> {
  const subscriptionId = life.id;
  const cancel = { subscriptionId, atPeriodEnd: true };
  await client.cancelSubscription({ body: cancel });
  const cancelAt = at('2027-06-15T12:00Z');
  await life.expectFields({ status: 'ACTIVE', cancelAt, nextPaymentDate: null });
  await life.passTime('2027-06-15T12:00Z');
  await life.expectEvents('subscription.ended');
  expectSame('end', life.lastEvent?.endReason, 'cancelled');
  life.expectAccess(false);
  const edit = { subscriptionId, newAmount: 999 };
  const refused = await client.editSubscription({ body: edit }).catch((error: unknown) => error);
  const code = refused instanceof PerennialError ? refused.errorCode : null;
  expectSame('an edit after the end', code, 'operation_not_allowed');
  await life.passTime('2028-06-15T12:00Z');
  const query = { subscriptionId, startTime: cancelAt };
  const later = await client.listIntents({ query });
  expectSame('later payments', later.data, []);
  step('cancelled', 'at the end of the period: ENDED on 15 June, and no payment in the next year');
}

/** Sells a subscription by a link. A link has no test clock, so the subscription is billed in real time. */
async function sellByLink(): Promise<void> {
  const receiptId = `order-${randomUUID()}`;
  const expiryDate = Date.now() + 86_400_000;
  const offer = { ...TERMS, receiptId, expiryDate, customerDetails: {} };
  const { shortUrl } = await client.generateSubscriptionLink({ body: offer });
  await payAt(shortUrl);
  const events = await inbox.expect('receiptId', receiptId, [...PAID, 'subscription.active']);
  const paid = events.find(isOfIntent);
  expectSame('payment', [paid?.amount, paid?.customerDetails.name], [1_999, 'Ada Example']);
  const life = new Life(paid?.subscriptionId ?? '');
  await life.expectEvents(...PAID, 'subscription.active');
  const body = { subscriptionId: life.id };
  await client.cancelSubscription({ body });
  await life.expectEvents('subscription.ended');
  step('link', `${shortUrl}: one payer subscribed, and is cancelled at once`);
}

async function sellOnceByLink(): Promise<void> {
  const receiptId = `order-${randomUUID()}`;
  const offer = {
    currency: 'USD',
    amount: 4_900,
    description: 'A teapot',
    comments: 'fair in May',
  };
  const body = { ...offer, receiptId, expiryDate: Date.now() + 86_400_000 };
  const { shortUrl } = await client.generatePaymentLink({ body });
  await payAt(shortUrl);
  const [paid] = (await inbox.expect('receiptId', receiptId, ['intent.success'])).filter(
    isOfIntent,
  );
  expectSame(
    'payment by link',
    [paid?.amount, paid?.kind, paid?.comments, paid?.subscriptionId],
    [4_900, 'hosted', 'fair in May', null],
  );
  step('payment link', `${shortUrl}: one payer paid 49.00 USD once`);
}

async function saveACard(): Promise<void> {
  const { customerId } = await client.createCustomer({ body: { customerDetails: ADA } });
  const { currency, callbackUrl } = TERMS;
  const session = { currency, callbackUrl, billingDetails: ADA, customerId };
  const { setupMethodId, fwdUrl } = await client.createSetupMethod({ body: session });
  await payAt(fwdUrl);
  await inbox.expect('setupMethodId', setupMethodId, ['setup_method.success']);
  const saved = await client.listPaymentMethodTokens({ path: { customerId } });
  const pmId = saved.data[0]?.paymentMethodId ?? '';
  const charge = { pmId, customerId, currency, amount: 500 };
  const paid = await client.chargeTokenisedPaymentMethod({ body: charge });
  expectSame('charge', paid.status, 'SUCCESS');
  const decline = { pmId, code: 'lost_card' } as const;
  await client.declineNext({ body: decline });
  const declined = await client.chargeTokenisedPaymentMethod({ body: charge });
  expectSame('charge', [declined.status, declined.errorCode], ['FAILED', 'lost_card']);
  await inbox.expect('intentId', paid.intentId, ['intent.success']);
  await inbox.expect('intentId', declined.intentId, ['intent.failed']);
  step('saved', `${pmId}: charged 5.00 USD, and declined once with lost_card`);
}

// Loopback is allowed on a development server. In production this is a public https URL.
const endpoint = await inbox.open();
const body = { endpoint, eventSigner: inbox.signer, subscribedEventTypes: TYPES };
const { webhookConfigId } = await client.createWebhook({ body });
try {
  const life = await subscribe();
  await editAndPause(life);
  await recoverFromDeclines(life);
  await cancelAtPeriodEnd(life);
  await sellByLink();
  await sellOnceByLink();
  await saveACard();
  step('as expected', `${inbox.count()} events, each with both signatures`);
} finally {
  await client.deleteWebhook({ path: { webhookConfigId } });
  inbox.close();
}

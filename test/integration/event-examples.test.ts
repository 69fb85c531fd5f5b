import { eq } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { recordAccountChange } from '../../db/repositories/merchants/account-blocks.ts';
import { applyOutcomes, deactivateWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { webhookConfigs } from '../../db/schema/webhooks.ts';
import { merchantGateways } from '../../db/schema/merchants.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import type { EventType } from '../../domain/events.ts';
import { onDevServer as test } from '../support/environment.ts';
import { attemptsOf } from '../../db/repositories/payments/orders.ts';
import { recordDispute, recordFraudWarning } from '../../db/repositories/payments/disputes.ts';
import { recordMethodChange } from '../../db/repositories/customers/payment-methods.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { readUpdateToken } from '../../runtime/payer-links.ts';
import { LINKS } from '../support/links.ts';
import { askForPortal, declare } from '../../tools/scripts/client/declare.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';

/**
 * The event examples of the OpenAPI document. `npx vitest run <this test> -u` rewrites the file of examples.
 */
const EXAMPLES = '../../api/openapi/event-examples.json';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const CUSTOMER = { customerDetails: { name: 'Ada Example', email: 'ada@example.com' } };
const TERMS = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  ...CUSTOMER,
  callbackUrl: 'https://merchant.example/thanks',
  metadata: { plan: 'oolong' },
};

type Event = Record<string, unknown>;

/** The token of a link to a hosted page, which differs from run to run. */
const LINK_TOKEN = /(?<=\/update-method\/).+$/;

/** An id, also one in a URL. */
const IDS = /\b([a-z]{2,3})_[0-9A-Za-z]{22,24}\b/g;

/** Replaces the ids, which differ from run to run, by ids that count the records of each kind. */
function withFixedIds(events: readonly Event[]): Event[] {
  const fixed = new Map<string, string>();
  const replace = (id: string, prefix: string): string => {
    const known = fixed.get(id);
    if (known !== undefined) return known;
    const number = [...fixed.values()].filter((other) => other.startsWith(`${prefix}_`)).length + 1;
    const next = `${prefix}_0002sSOLu${String(number).padStart(13, '0')}`;
    fixed.set(id, next);
    return next;
  };
  return JSON.parse(JSON.stringify(events), (_, value: unknown) => {
    if (typeof value === 'string' && LINK_TOKEN.test(value)) {
      return value.replace(LINK_TOKEN, 'eyJ2IjoxfQ.c2lnbmF0dXJl');
    }
    return typeof value === 'string' ? value.replaceAll(IDS, replace) : value;
  }) as Event[];
}

/** Waits until an event of every type was received. Returns the first event of each type. */
async function firstOfEachType({ receiver }: Shop): Promise<Event[]> {
  const firstOf = (type: EventType) =>
    receiver.received.map(({ event }) => event).find((event) => event.eventType === type);
  return vi.waitFor(
    () =>
      EVENT_TYPES.map((type) => {
        const event = firstOf(type);
        if (!event) throw new Error(`no ${type}`);
        return { ...event };
      }),
    { timeout: 30_000, interval: 50 },
  );
}

/**
 * Records a dispute, a warning and a changed card as the events of another gateway do, because the sandbox has neither.
 */
async function disputeAndCardUpdate(env: TestEnvironment, intentId: string): Promise<void> {
  const { db, merchantId } = env;
  const [attempt] = await attemptsOf(db, { merchantId, intentId });
  if (!attempt) throw new Error('no attempt');
  const dispute = {
    gatewayChargeId: String(attempt.gatewayChargeId),
    amountMinor: 1_499,
    currency: 'USD',
    reason: 'fraudulent',
    status: 'OPEN' as const,
    openedAt: NOW,
  };
  const { stream } = await recordDispute(db, attempt, 'du_1', dispute, NOW);
  await recordFraudWarning(db, attempt, 'made_with_stolen_card', NOW);
  const id = attempt.paymentMethodId;
  const card = {
    brand: 'visa',
    country: 'US',
    lastFourDigit: '1881',
    expiryMonth: 12,
    expiryYear: 2037,
  };
  await recordMethodChange(db, { merchantId, id }, card, NOW);
  await env.webhooks.wakeStream(stream);
  await env.webhooks.wakeStream({ merchantId, streamId: id });
}

/** Refuses, and takes again, the charges of an account at Stripe, which a merchant of the sandbox does not have. */
async function accountRefusals(env: TestEnvironment, intentId: string): Promise<void> {
  const { db, merchantId } = env;
  const name = 'stripe:acct_1Perennial';
  await db.insert(merchantGateways).values({
    merchantId,
    name,
    mode: 'test',
    sealedKey: Buffer.from('none'),
    keyEnding: 'none',
    isCurrent: false,
    createdAt: NOW,
    updatedAt: NOW,
  });
  const [attempt] = await attemptsOf(db, { merchantId, intentId });
  if (!attempt) throw new Error('no attempt');
  const change = (values: Partial<typeof attempt>) =>
    db.update(paymentAttempts).set(values).where(eq(paymentAttempts.id, attempt.id));
  const reason = 'Stripe answered 401 api_key_expired';
  const { gateway, state } = attempt;
  await change({
    gateway: name,
    state: 'UNSENT',
    reason,
    isAccountRefused: true,
    unansweredAt: NOW,
  });
  await recordAccountChange(db, { merchantId, name }, NOW);
  await change({ gateway, state, reason: null, isAccountRefused: false, unansweredAt: null });
  await recordAccountChange(db, { merchantId, name }, NOW);
  await env.webhooks.wakeStream({ merchantId, streamId: name });
}

/** Warns of a failing endpoint, which subscribes to nothing, and deactivates it. */
async function endpointFailures(env: TestEnvironment, { merchant }: Shop): Promise<void> {
  const { db, merchantId } = env;
  const { webhookConfigId: configId } = await merchant.post<{ webhookConfigId: string }>(
    '/webhook',
    { endpoint: 'http://127.0.0.1:9/', eventSigner: 'secret', subscribedEventTypes: [] },
  );
  const failingSince = NOW - 61 * 3_600_000;
  const ref = { merchantId, configId };
  await db
    .update(webhookConfigs)
    .set({ url: 'https://merchant.example/orders', failingSince, updatedAt: NOW })
    .where(eq(webhookConfigs.id, configId));
  const failure = { kind: 'failure', at: NOW, jitter: 0, updatedAt: NOW } as const;
  await applyOutcomes(db, ref, [failure], NOW);
  const reason = 'failing_for_five_days' as const;
  await deactivateWebhookConfig(db, { ...ref, readUpdatedAt: NOW, reason, at: NOW });
  await env.webhooks.wakeStream({ merchantId, streamId: configId });
}

test('the event examples in the OpenAPI document equal the bodies that a receiver gets, whose link opens the payer’s page [D-33, D-45, D-52]', async ({
  env,
  shop,
}) => {
  const { merchant } = shop;
  const create = async (changes: object) => {
    const { testClockId } = await merchant.post<{ testClockId: string }>('/test-clock/create', {
      now: NOW,
    });
    const created = await merchant.post<{ subscriptionId: string; fwdUrl: string }>(
      '/subscription/create',
      { ...TERMS, ...changes, testClockId },
    );
    await payOnPage(created.fwdUrl);
    return { ...created, testClockId };
  };

  // The first cycle is paid and partly refunded, and the refund fails afterwards. The second cycle is declined until
  // no retry is left.
  const { subscriptionId, testClockId } = await create({});
  await shop.news(subscriptionId, 6);
  const paid = shop.receiver.received.find(({ event }) => event.eventType === 'intent.success');
  const xIntentId = paid?.event['intentId'];
  const { refundId } = await merchant.post<{ refundId: string }>('/payments/merchant/refund', {
    xIntentId,
    amount: 500,
  });
  await env.control('POST', '/control/refunds', { key: `refund:${refundId}`, status: 'failed' });
  await env.orders.recheck('refund', { merchantId: env.merchantId, refundId });
  await shop.news(subscriptionId, 2);
  const decline = { subscriptionId, code: 'insufficient_funds', count: 5 };
  await env.control('POST', '/control/declines', decline);
  await env.advance(testClockId, '2026-12-23T12:00:00Z');
  await merchant.post('/subscription/merchant/pause', { subscriptionId });
  await merchant.post('/subscription/merchant/cancel', { subscriptionId });

  const { subscriptionId: inTrial, testClockId: trialClockId } = await create({
    trialPeriodCount: 14,
    trialPeriodInterval: 'DAY',
  });
  const edit = { newAmount: 2_999, newCycleCount: 6 };
  await merchant.post('/subscription/edit', { subscriptionId: inTrial, ...edit });
  await merchant.post('/subscription/merchant/cancel', {
    subscriptionId: inTrial,
    atPeriodEnd: true,
  });
  await merchant.post('/subscription/merchant/resume', { subscriptionId: inTrial });
  await env.advance(trialClockId, '2026-11-27T12:00:00Z');

  // The card expires in 2034, before the second charge, whose amount is raised.
  const long = await create({ interval: 'YEAR', intervalCount: 9, cycleCount: 2 });
  await merchant.post('/subscription/edit', {
    subscriptionId: long.subscriptionId,
    newAmount: 2_499,
  });
  await env.advance(long.testClockId, '2035-11-11T12:00:00Z');

  const setup = await merchant.post<{ fwdUrl: string }>('/setup-method/create', {
    currency: 'USD',
    billingDetails: CUSTOMER.customerDetails,
    callbackUrl: 'https://merchant.example/saved',
    metadata: { plan: 'oolong' },
  });
  await payOnPage(setup.fwdUrl);

  await disputeAndCardUpdate(env, String(xIntentId));
  await accountRefusals(env, String(xIntentId));
  await endpointFailures(env, shop);
  const { declarationPages, payerPage } = await merchant.get<{
    declarationPages: Record<string, string>;
    payerPage: string;
  }>('/merchant/settings');
  const payer = { ...CUSTOMER.customerDetails, reference: inTrial };
  await declare(String(declarationPages['cancellation']), payer);
  await declare(String(declarationPages['withdrawal']), payer);
  await askForPortal(payerPage, payer.email);
  const events = await firstOfEachType(shop);
  const unpaid = events.find((event) => event['eventType'] === 'subscription.unpaid');
  const link = new URL(String(unpaid?.['updatePaymentMethodLink']));
  expect(link.origin).toBe(LINKS.publicUrl);
  const { merchantId } = env;
  expect(readUpdateToken(LINKS, link.pathname.replace('/update-method/', ''))).toMatchObject({
    merchantId,
    subscriptionId,
  });
  // A setup session, a saved method and a customer have no test clock, so their events have the real time.
  const examples: Event[] = withFixedIds(events).map((event) => ({
    ...event,
    ...(String(event['eventType']).startsWith('setup_method.') && { eventTime: NOW }),
    ...(event['eventType'] === 'customer.portal_requested' && {
      eventTime: NOW,
      expiresAt: NOW + 3_600_000,
    }),
    ...('declaredAt' in event && { declaredAt: NOW }),
  }));
  const byType = Object.fromEntries(examples.map((event) => [event['eventType'], event]));
  await expect(`${JSON.stringify(byType, null, 2)}\n`).toMatchFileSnapshot(EXAMPLES);
});

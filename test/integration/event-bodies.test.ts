import { expect } from 'vitest';
import { readUpdateToken } from '../../runtime/payer-links.ts';
import { findings } from '../support/findings.ts';
import { LINKS } from '../support/links.ts';
import { unpaidIn } from '../support/unpaid.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

const NOW = Date.parse('2027-01-31T12:00:00Z');
const NEXT = Date.parse('2027-02-28T12:00:00Z');

test('intent.success and subscription.cycle_charged carry every field of their type and no other [D-45, D-52]', async ({
  shop,
}) => {
  const { testClockId } = await shop.merchant.post<{ testClockId: string }>('/test-clock/create', {
    now: NOW,
  });
  const { subscriptionId, fwdUrl } = await shop.merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', {
    ...MONTHLY,
    currency: 'EUR',
    cycleCount: 3,
    receiptId: 'r-1',
    metadata: { plan: 'letters' },
    testClockId,
  });
  await payOnPage(fwdUrl);
  await shop.merchant.post('/subscription/merchant/pause', { subscriptionId });
  await shop.news(subscriptionId, 7);
  const bodies = new Map(
    shop.receiver.received
      .filter(({ event }) => event['subscriptionId'] === subscriptionId)
      .map(({ event, headers }) => {
        expect(headers['webhook-id']).toBe(event.eventId);
        return [event.eventType, event];
      }),
  );
  const intentId = bodies.get('intent.created')?.['intentId'];

  expect(bodies.get('intent.success')).toEqual({
    eventId: expect.stringMatching(/^evt_/),
    eventType: 'intent.success',
    eventTime: NOW,
    sequence: 4,
    intentId,
    status: 'SUCCESS',
    amount: 1_999,
    currency: 'EUR',
    presentmentCurrency: 'EUR',
    receiptId: 'r-1',
    subscriptionId,
    kind: 'cycle',
    comments: null,
    paymentMethod: 'CARD',
    card: {
      brand: 'visa',
      country: 'US',
      lastFourDigit: '4242',
      expiryMonth: 12,
      expiryYear: 2034,
    },
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    errorCode: null,
    errorMessage: null,
    metadata: { plan: 'letters' },
  });
  expect(bodies.get('subscription.cycle_charged')).toEqual({
    eventId: expect.stringMatching(/^evt_/),
    eventType: 'subscription.cycle_charged',
    eventTime: NOW,
    sequence: 5,
    subscriptionId,
    customerId: expect.stringMatching(/^cus_/),
    status: 'ACTIVE',
    amount: 1_999,
    currency: 'EUR',
    intentId,
    cycleNumber: 1,
    remainingCycleCount: 2,
    nextPaymentDate: NEXT,
    currentPeriodEnd: NEXT,
    actor: 'payer',
    receiptId: 'r-1',
    metadata: { plan: 'letters' },
  });
  // `subscription.created` is stored together with the first intent, `subscription.paused` without an intent.
  for (const type of ['subscription.created', 'subscription.paused']) {
    expect(bodies.get(type)).toMatchObject({ receiptId: 'r-1' });
  }
});

test('subscription.unpaid and intent.failed name cycle, reason, next retry and the link for a new card [D-52, D-33]', async ({
  env,
}) => {
  const unpaidEvents = async (code: string) => {
    const { ref } = await unpaidIn(env, code);
    const { owed } = await env.state(ref);
    const events = await env.events(ref);
    const [failed, ...own] = events.slice(
      events.findIndex((event) => event['eventType'] === 'intent.failed'),
    );
    return { owed, failed, events: own, link: own[0]?.['updatePaymentMethodLink'], ref };
  };
  const soft = await unpaidEvents('insufficient_funds');
  expect(soft.events).toEqual([
    {
      eventId: expect.stringMatching(/^evt_/),
      eventType: 'subscription.unpaid',
      eventTime: Date.parse('2027-02-10T00:00:00Z'),
      sequence: expect.any(Number),
      subscriptionId: expect.stringMatching(/^sub_/),
      customerId: expect.stringMatching(/^cus_/),
      status: 'UNPAID',
      amount: 1_999,
      currency: 'USD',
      intentId: soft.owed?.intentId,
      cycleNumber: 2,
      remainingCycleCount: 2,
      nextPaymentDate: Date.parse('2027-02-10T04:00:00Z'),
      currentPeriodEnd: Date.parse('2027-02-10T00:00:00Z'),
      actor: 'schedule',
      errorCode: 'insufficient_funds',
      nextRetryAt: Date.parse('2027-02-10T04:00:00Z'),
      updatePaymentMethodLink: expect.any(String),
      receiptId: null,
      metadata: {},
    },
  ]);
  const { pathname, origin } = new URL(String(soft.link));
  expect(origin).toBe(LINKS.publicUrl);
  expect(readUpdateToken(LINKS, pathname.replace('/update-method/', ''))).toMatchObject(soft.ref);
  expect(soft.failed).toMatchObject({
    cycleNumber: 2,
    errorCode: 'insufficient_funds',
    nextRetryAt: Date.parse('2027-02-10T04:00:00Z'),
    updatePaymentMethodLink: soft.link,
  });
  const hard = await unpaidEvents('stolen_card');
  expect(hard.events).toEqual([
    expect.objectContaining({ errorCode: 'stolen_card', nextRetryAt: null, nextPaymentDate: null }),
    expect.objectContaining({
      eventType: 'subscription.retries_exhausted',
      errorCode: 'stolen_card',
      nextRetryAt: null,
      updatePaymentMethodLink: hard.link,
    }),
  ]);
  await env.execute(hard.ref, { kind: 'pause', commandId: 'pause_1' });
  const newNextPaymentAt = Date.parse('2027-04-01T00:00:00Z');
  await env.execute(hard.ref, { kind: 'unpause', commandId: 'unpause_1', newNextPaymentAt });
  expect((await env.events(hard.ref)).at(-1)).toMatchObject({
    eventType: 'subscription.unpaid',
    errorCode: 'stolen_card',
    nextRetryAt: null,
    updatePaymentMethodLink: expect.stringContaining('/update-method/'),
  });
  expect(await findings(env)).toEqual({ wrong: [], forPerson: [] });
});

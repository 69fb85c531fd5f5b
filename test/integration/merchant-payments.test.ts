import { expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { ApiRefusal } from '../../tools/scripts/client/merchant-client.ts';
import { cardOf, payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/** Charges and refunds over HTTP on a real Temporal server, checked against the gateway's charges. */

type Json = Record<string, unknown>;

const ADA = { name: 'Ada Example', email: 'ada@example.com' };

/** An intent's charges at the gateway. */
async function booked(env: TestEnvironment, intentId: string): Promise<string[]> {
  const { charges } = await env.control('GET', '/control/charges');
  return charges
    .filter(({ key }) => key.includes(intentId))
    .map(({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`);
}

/** Saves a customer's card on the hosted page of a setup session. */
async function savedCard(
  shop: Shop,
  number: string,
): Promise<{ customerId: string; pmId: string }> {
  const { merchant } = shop;
  const made = await merchant.post<{ setupMethodId: string; fwdUrl: string }>(
    '/setup-method/create',
    { currency: 'USD', billingDetails: ADA, callbackUrl: 'https://merchant.example/saved' },
  );
  await payOnPage(made.fwdUrl, cardOf(number));
  const session = await merchant.get<Json>(`/setup-method/${made.setupMethodId}`);
  expect(session).toMatchObject({ status: 'SUCCESS' });
  return { customerId: String(session['customerId']), pmId: String(session['pmId']) };
}

const statusOf = (reason: unknown): string =>
  reason instanceof ApiRefusal ? `status ${reason.status}` : String(reason);

async function activeSubscription(shop: Shop): Promise<string> {
  const { merchant } = shop;
  const made = await merchant.post<{ subscriptionId: string; fwdUrl: string }>(
    '/subscription/create',
    { ...MONTHLY, callbackUrl: 'https://merchant.example/back' },
  );
  await payOnPage(made.fwdUrl);
  return made.subscriptionId;
}

test('a saved card is charged, and the charge is refunded in parts [IF-4.12, IF-4.13, D-§7, IF-1]', async ({
  env,
  shop,
}) => {
  const { merchant } = shop;
  const method = await savedCard(shop, '4242 4242 4242 4242');
  const tokens = await merchant.get<{ data: Json[] }>(
    `/customer/${method.customerId}/payment-method-tokens`,
  );
  expect(tokens.data).toMatchObject([
    { paymentMethodId: method.pmId, status: 'LIVE', cardMetadata: { lastFourDigit: '4242' } },
  ]);

  const order = { ...method, currency: 'USD', amount: 2_500 };
  const charged = await merchant.post<Json>('/payments/charge-tokenised-pm', order);
  const intentId = String(charged['intentId']);
  expect(charged).toEqual({ intentId, status: 'SUCCESS' });

  const refund = (amount?: number | string) =>
    merchant.post<Json>('/payments/merchant/refund', { xIntentId: intentId, amount });
  expect(await refund('900')).toMatchObject({ intentId, amount: 900, currency: 'USD' });
  expect(await merchant.get<Json>(`/payments/v2/get-intent/${intentId}`)).toMatchObject({
    status: 'PARTIALLY_REFUNDED',
    chargeAttempts: [{ attempt: 1, status: 'SUCCESS' }],
  });
  await expect(refund(1_601)).rejects.toMatchObject({
    status: 400,
    errorCode: 'operation_not_allowed',
  });
  expect(await refund()).toMatchObject({ amount: 1_600 });
  expect(await merchant.get<Json>(`/payments/v2/get-intent/${intentId}`)).toMatchObject({
    status: 'REFUNDED',
  });
  expect(await booked(env, intentId)).toEqual(['succeeded 2500 x1']);
});

test('a one-time charge is made once when 20 requests have the same key [IF-4.10, D-17]', async ({
  env,
  shop,
}) => {
  const { merchant } = shop;
  const subscriptionId = await activeSubscription(shop);
  const before = await merchant.get<Json>(`/subscription/get-subscription/${subscriptionId}`);
  const charge = () =>
    merchant.post<Json>(
      '/subscription/merchant/one-time-charge',
      { subscriptionId, amount: 700, currency: 'USD', comments: 'One more seat' },
      'one-more-seat',
    );
  const answers = await Promise.allSettled(Array.from({ length: 20 }, charge));
  const last = await charge();
  expect(last).toEqual({
    intentId: last['intentId'],
    status: 'SUCCESS',
    errorCode: null,
    errorMessage: null,
  });
  // Requests that arrive during the first request get 409.
  const outcomes = answers.map((answer) =>
    answer.status === 'fulfilled' ? JSON.stringify(answer.value) : statusOf(answer.reason),
  );
  expect(new Set([...outcomes, 'status 409'])).toEqual(
    new Set([JSON.stringify(last), 'status 409']),
  );
  expect(await booked(env, String(last['intentId']))).toEqual(['succeeded 700 x1']);
  const after = await merchant.get<Json>(`/subscription/get-subscription/${subscriptionId}`);
  const { updatePaymentMethodLink: _, ...rest } = before;
  expect(after).toMatchObject(rest);
  await shop.expectAllDelivered(subscriptionId);
  const events = shop.receiver.received
    .filter(({ event }) => event['subscriptionId'] === subscriptionId)
    .map(({ event }) => `${event.sequence} ${event.eventType} ${String(event['amount'])}`);
  expect(events.slice(-2)).toEqual([
    `${events.length - 1} intent.created 700`,
    `${events.length} intent.success 700`,
  ]);
});

import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { refunds } from '../../db/schema/payments.ts';
import {
  active,
  eventsOf,
  expectNothingLeft,
  lastAttempt,
  onStripeScene as test,
} from '../support/stripe-scene.ts';

/** What merchants get when Stripe refuses a refund or a charge definitely. */

const refusal = (code: string) => ({
  error: { type: 'invalid_request_error', code, message: 'ordered by the test' },
});

test('a refund that Stripe refuses is answered with the reason, and its amount can be refunded again [D-§7]', async ({
  scene,
}) => {
  const { env, shop, world } = scene;
  const made = await active(scene);
  const { intentId: xIntentId } = (await lastAttempt(scene, made)).attempt;
  const refund = () =>
    shop.merchant.post<{ refundId: string; amount: number }>('/payments/merchant/refund', {
      xIntentId,
    });
  await world.faults('POST', 'faults', {
    method: 'POST',
    path: '/v1/refunds',
    count: 1,
    fault: 'answer',
    status: 400,
    body: refusal('balance_insufficient'),
  });
  await expect(refund()).rejects.toMatchObject({
    errorCode: 'operation_not_allowed',
    message:
      '/payments/merchant/refund was answered 400 operation_not_allowed: The gateway refused the refund: ' +
      'balance_insufficient.',
  });
  expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual([]);

  const again = await refund();
  expect(again.amount).toBe(1_999);
  const rows = await env.db
    .select({ state: refunds.state, amountMinor: refunds.amountMinor })
    .from(refunds)
    .where(eq(refunds.intentId, xIntentId))
    .orderBy(refunds.state);
  expect(rows).toEqual([
    { state: 'REFUSED', amountMinor: 1_999 },
    { state: 'SUCCEEDED', amountMinor: 1_999 },
  ]);
  await expectNothingLeft(scene);
  expect((await eventsOf(scene, made.subscriptionId)).slice(5)).toEqual(['intent.refunded']);
});

test('a renewal that Stripe refuses is declined with processing_error and Stripe’s code, and the next retry pays it once [D-30, D-42]', async ({
  scene,
}) => {
  const { env, seller, world } = scene;
  const made = await active(scene);
  const before = (await seller.charges()).length;
  await world.faults('POST', 'faults', {
    method: 'POST',
    path: '/v1/payment_intents',
    count: 1,
    fault: 'answer',
    status: 400,
    body: refusal('amount_too_small'),
  });
  await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
  expect(await env.state(made)).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
  expect((await lastAttempt(scene, made)).attempt).toMatchObject({
    state: 'DECLINED',
    errorCode: 'processing_error',
    gatewayCode: 'amount_too_small',
  });
  await env.advance(made.testClockId, '2027-02-28T16:00:00Z');
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999']);
  await expectNothingLeft(scene);
  expect((await seller.charges()).slice(before)).toEqual(['succeeded 1999']);
});

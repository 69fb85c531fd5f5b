import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { orderRows } from '../../db/repositories/payments/charges.ts';
import { withdrawPayment } from '../../db/repositories/payments/orders.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import { idempotencyKeys } from '../../db/schema/merchants.ts';
import { DomainError } from '../../domain/errors.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createTemporalClient } from '../../temporal/client.ts';
import { createOrders } from '../../temporal/orders.ts';
import type { Orders } from '../../temporal/orders.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import type { SubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import { createWebhookQueues } from '../../temporal/webhook-queues.ts';
import type { WebhookQueues } from '../../temporal/webhook-queues.ts';
import { onDevServer } from '../support/environment.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** The API's workflow clients, connected to this address. */
function clientsOf(
  env: TestEnvironment,
  address: string,
): {
  workflows: SubscriptionWorkflows;
  orders: Orders;
  webhooks: WebhookQueues;
  close(): Promise<void>;
} {
  const { client, close } = createTemporalClient({
    temporalAddress: address,
    temporalNamespace: 'default',
  });
  const { taskQueuePrefix } = env;
  const logger = createLogger({ name: 'away', level: 'silent' });
  const orders = createOrders({
    client,
    rows: orderRows(env.db),
    taskQueuePrefix,
    logger,
  });
  const workflows = createSubscriptionWorkflows({
    client,
    rows: subscriptionRows(env.db),
    taskQueuePrefix,
    logger,
  });
  const webhooks = createWebhookQueues({
    client,
    taskQueuePrefix,
    logger,
    endpointsOf: async ({ merchantId }) => [{ merchantId, configId: 'whc_of_nothing' }],
  });
  return { workflows, orders, webhooks, close };
}

const test = onDevServer;

test('while Temporal refuses connections or never answers, a create is not delayed, a command and a charge get 503, and a settled charge is answered; afterwards each is executed once, and a voided charge is not [D-17, D-40]', async ({
  env,
  payments,
  silentAddress,
}) => {
  const order = async () => ({ ...(await payments.tokenised()), token: null });
  const placeAt = async (address: string) => {
    const place = {
      away: clientsOf(env, address),
      created: await env.createRowOnly({ createdAt: Date.now() }),
      commanded: await env.create({ createdAt: Date.now() }),
      payment: checkoutCommand(await env.token()),
      repeated: await order(),
      swept: await order(),
      voided: await order(),
      settled: await order(),
    };
    await env.orders.execute('payment', place.settled);
    return place;
  };
  const places = [await placeAt('127.0.0.1:1'), await placeAt(silentAddress)];
  // The calls wait at the same time, each for 4.5 s or longer.
  const refusal = (call: Promise<unknown>) => call.catch((error: unknown) => error);
  const answers = await Promise.all(
    places.map(({ away, created, commanded, payment, repeated, swept, voided, settled }) =>
      Promise.all([
        away.workflows.start(created),
        away.webhooks.wakeStream({ ...created, streamId: created.subscriptionId }),
        refusal(away.workflows.execute(commanded, payment)),
        ...[repeated, swept, voided].map((each) => refusal(away.orders.execute('payment', each))),
        away.orders.execute('payment', settled),
      ]),
    ),
  );
  const unavailable = Array.from({ length: 4 }, () => new DomainError('service_unavailable'));
  const answered = [false, undefined, ...unavailable, { kind: 'succeeded' }];
  expect(answers).toEqual([answered, answered]);

  // Temporal is back.
  const paid = { kind: 'result', result: { outcome: 'paid' } };
  for (const { away, created, commanded, payment, ...orders } of places) {
    const { repeated, swept, voided, settled } = orders;
    await away.close();
    await env.workflows.recheck(created);
    expect(await payCheckout(env, created)).toMatchObject(paid);
    expect(await env.book(created)).toHaveLength(1);
    const again = await env.execute(commanded, payment);
    expect(again).toMatchObject(paid);
    expect(await env.execute(commanded, payment)).toEqual(again);
    expect(await env.book(commanded)).toHaveLength(1);

    expect(await payments.intent(swept)).toMatchObject({ status: 'CREATED' });
    expect(await env.orders.execute('payment', repeated)).toEqual({ kind: 'succeeded' });
    expect(await env.sweep()).toMatchObject({ openPayments: 0 });
    expect(await withdrawPayment(env.db, voided)).toBe(true);
    for (const { intentId } of [swept, voided]) {
      await env.age('payment_intent', intentId);
    }
    expect(await env.sweep()).toMatchObject({ openPayments: 1, failed: 0 });
    expect(await env.orders.execute('payment', swept)).toEqual({ kind: 'succeeded' });
    expect(await env.sweep()).toMatchObject({ openPayments: 0, failed: 0 });
    expect(await payments.intent(voided)).toMatchObject({ status: 'CANCELLED' });
    expect(await payments.book(voided)).toEqual([]);
    for (const each of [repeated, swept, settled]) {
      expect(await payments.book(each)).toEqual(['succeeded 5000 x1']);
    }
  }
});

describe('the sweep', () => {
  test('sends no charge without an idempotency key, however many must be voided first [D-17]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    const { intentId } = ref;
    await env.db
      .delete(idempotencyKeys)
      .where(eq(idempotencyKeys.commandId, `cmd_${intentId.slice(3)}`));
    await env.age('payment_intent', intentId);
    // One sweep voids at most 200 charges.
    await env.db.execute(sql`
      insert into payment_intent
      select copy.* from payment_intent charge, generate_series(1, 200) number,
        jsonb_populate_record(charge, jsonb_build_object(
          'id', left(charge.id, -4) || 'x' || lpad(number::text, 3, '0'),
          'updated_at', charge.updated_at - interval '1 minute')) copy
      where charge.id = ${intentId}`);
    expect(await env.sweep()).toMatchObject({ withdrawn: 200, openPayments: 0, failed: 0 });
    expect(await payments.intent(ref)).toMatchObject({ status: 'CREATED' });
    expect(await env.sweep()).toMatchObject({ withdrawn: 1, openPayments: 0, failed: 0 });
    expect(await payments.intent(ref)).toMatchObject({ status: 'CANCELLED' });
    expect(await env.orders.execute('payment', { ...ref, token: null })).toMatchObject({
      kind: 'refused',
    });
    expect(await env.sweep()).toMatchObject({ withdrawn: 0, openPayments: 0, failed: 0 });
    expect(await payments.book(ref)).toEqual([]);
  });

  test('sends no refund without an idempotency key, however many must be voided first [D-17]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid);
    const { refundId } = ref;
    await env.db
      .delete(idempotencyKeys)
      .where(eq(idempotencyKeys.commandId, `cmd_${refundId.slice(3)}`));
    await env.age('refund', refundId);
    await env.db.execute(sql`
      insert into refund
      select copy.* from refund, generate_series(1, 200) number,
        jsonb_populate_record(refund, jsonb_build_object(
          'id', left(refund.id, -4) || 'x' || lpad(number::text, 3, '0'), 'gateway_key', refund.gateway_key || '_' || number,
          'updated_at', refund.updated_at - interval '1 minute')) copy
      where refund.id = ${refundId}`);
    expect(await env.sweep()).toMatchObject({ withdrawn: 200, openRefunds: 0, failed: 0 });
    expect(await env.sweep()).toMatchObject({ withdrawn: 1, openRefunds: 0, failed: 0 });
    expect(await env.orders.execute('refund', ref)).toMatchObject({ kind: 'refused' });
    expect(await env.sweep()).toMatchObject({ withdrawn: 0, openRefunds: 0, failed: 0 });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
  });

  test('leaves a charge without an idempotency key to its workflow when one runs [D-17, D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    await env.db
      .delete(idempotencyKeys)
      .where(eq(idempotencyKeys.commandId, `cmd_${ref.intentId.slice(3)}`));
    await env.stopWorkers();
    const paying = env.orders.execute('payment', { ...ref, token: null });
    await vi.waitFor(
      async () => expect(await env.orders.isRunning('payment', { ...ref, token: null })).toBe(true),
      {
        timeout: 20_000,
      },
    );
    await env.age('payment_intent', ref.intentId);
    const swept = await env.sweep();
    expect(swept).toMatchObject({ withdrawn: 0, openPayments: 0 });
    await env.startWorkers();
    // The order has no outcome if the workers take longer than 25 s.
    await paying;
    await expect
      .poll(() => env.orders.execute('payment', { ...ref, token: null }))
      .toEqual({
        kind: 'succeeded',
      });
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });
});

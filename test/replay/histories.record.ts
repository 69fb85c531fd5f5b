import { describe, expect, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { maintenanceWorkflowId } from '../../workflows/maintenance/messages.ts';
import { webhookEndpointWorkflowId } from '../../workflows/webhook-endpoint/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  isLongerThan,
  keep,
  keepSubscription,
  recorderOn,
  send,
  spoilMethod,
  unpaid,
} from './recorder.ts';

/** Records histories of manual reviews, payments, refunds, saved cards, webhooks and maintenance. */

const record = recorderOn(onDevServer);

async function inReview(env: TestEnvironment) {
  return vi.waitFor(async () => {
    const [attempt] = await env.db
      .select()
      .from(paymentAttempts)
      .where(eq(paymentAttempts.state, 'REVIEW'));
    if (!attempt) throw new Error('none in review yet');
    return attempt;
  }, 10_000);
}

const settle = (env: TestEnvironment, attemptId: string) =>
  decideReview(env.db, attemptId, {
    outcome: 'not_charged',
    gatewayId: null,
    code: null,
    by: 'Ada',
    note: 'nothing there',
  });

describe('record', () => {
  record('review', async ({ env }) => {
    const { ref } = await unpaid(env);
    await spoilMethod(env, (await env.state(ref)).paymentMethodId);
    await send(env, ref, { kind: 'manualRetry' });
    const attempt = await inReview(env);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await settle(env, attempt.id);
    await env.workflows.recheck(ref);
    await vi.waitFor(async () => expect((await env.state(ref)).openAttempt).toBeNull(), 10_000);
    expect(await keepSubscription(env, 'review', ref)).toBeGreaterThan(0);

    const watched = { merchantId: ref.merchantId, attemptId: attempt.id };
    const workflowId = orderWorkflowId('lateCharge', attempt.id);
    await env.orders.ensureRunning('lateCharge', watched);
    const handle = env.client.workflow.getHandle(workflowId);
    await isLongerThan(handle, 5);
    const { owed, paymentMethodId } = await env.state(ref);
    const card = await env.gateway.saveMethod({
      key: 'of-the-late-charge',
      token: await env.token(),
      session: checkoutCommand('').checkoutSessionId,
    });
    if (card.kind !== 'saved' || !owed) throw new Error('no card to charge');
    const { amountMinor, currency, gatewayKey: key } = attempt;
    await env.gateway.charge({
      key,
      gatewayChargeId: null,
      gatewayMethodId: card.card.gatewayMethodId,
      amountMinor,
      currency,
      reference: { ...ref, intentId: owed.intentId, paymentMethodId: paymentMethodId ?? '' },
    });
    await handle.signal('recheck');
    await handle.result();
    expect(await keep(env, 'late-charge', workflowId)).toBe(1);
  });

  record('payment-review', async ({ env }) => {
    const payments = paymentsIn(env);
    const ref = await payments.tokenised();
    await spoilMethod(env, (await payments.intent(ref)).paymentMethodId);
    const paying = env.orders.execute('payment', { ...ref, token: null });
    const attempt = await inReview(env);
    await settle(env, attempt.id);
    await env.orders.recheck('payment', { ...ref, token: null });
    expect((await paying).kind).toBe('declined');
    expect(await keep(env, 'payment-review', orderWorkflowId('payment', ref.intentId))).toBe(1);
  });

  record('webhook-endpoint', async ({ env }) => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    receiver.answerNext({ status: 500 });
    const configId = await env.subscribe(receiver.url, 'a-secret-of-the-merchant');
    await begin(env);
    await receiver.waitFor(3);
    const workflowId = webhookEndpointWorkflowId(configId);
    await env.client.workflow.getHandle(workflowId).result();
    expect(await keep(env, 'webhook-endpoint', workflowId)).toBeGreaterThan(0);
    await receiver.close();
  });

  record('payment', async ({ env }) => {
    const payments = paymentsIn(env);
    const ref = await payments.payment('hosted');
    await env.orders.execute('payment', { ...ref, token: await payments.card() });
    expect(await keep(env, 'payment', orderWorkflowId('payment', ref.intentId))).toBe(1);
  });

  record('payment-unknown', async ({ env }) => {
    const payments = paymentsIn(env);
    const ref = await payments.tokenised();
    const fault = { match: {}, count: 1_000 };
    await env.control('POST', '/control/faults', {
      ...fault,
      operation: 'charge',
      fault: 'lose_answer',
    });
    await env.control('POST', '/control/faults', {
      ...fault,
      operation: 'lookup',
      fault: 'error_500',
    });
    const paying = env.orders.execute('payment', { ...ref, token: null });
    await vi.waitFor(async () => expect(await payments.attempts(ref)).toEqual(['1 UNKNOWN']), {
      timeout: 20_000,
      interval: 100,
    });
    await env.control('DELETE', '/control/faults');
    expect(await paying).toEqual({ kind: 'succeeded' });
    expect(await keep(env, 'payment-unknown', orderWorkflowId('payment', ref.intentId))).toBe(1);
  });

  record('refund', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await env.orders.execute('refund', ref);
    expect(await keep(env, 'refund', orderWorkflowId('refund', ref.refundId))).toBe(1);
  });

  record('setup-method', async ({ env }) => {
    const payments = paymentsIn(env);
    const { customerId: _, ...ref } = await payments.setup();
    await env.orders.execute('setupMethod', { ...ref, token: await payments.card() });
    expect(await keep(env, 'setup-method', orderWorkflowId('setupMethod', ref.setupMethodId))).toBe(
      1,
    );
  });

  record('maintenance', async ({ env }) => {
    const workflowId = maintenanceWorkflowId(env.taskQueuePrefix);
    const handle = await env.client.workflow.start('maintenance', {
      workflowId,
      taskQueue: `${env.taskQueuePrefix}billing`,
    });
    await isLongerThan(handle, 8);
    expect(await keep(env, 'maintenance', workflowId)).toBeGreaterThan(0);
    await handle.terminate('recorded');
  });
});

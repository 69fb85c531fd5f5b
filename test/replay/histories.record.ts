import { describe, expect, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import {
  lateChargeWorkflowId,
  paymentWorkflowId,
  refundWorkflowId,
  setupMethodWorkflowId,
} from '../../workflows/one-off-orders/messages.ts';
import { maintenanceWorkflowId } from '../../workflows/maintenance/messages.ts';
import { webhookEndpointWorkflowId } from '../../workflows/webhook-endpoint/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { paymentsIn } from '../support/payments.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  decline,
  keep,
  keepSubscription,
  pay,
  recorderOn,
  send,
  sleeps,
  spoilMethod,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records workflow histories for the replay tests. This file has the paths that the first releases had; the other
 * `*.record.ts` files have newer paths.
 */

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
  record('checkout-then-sleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    await pay(env, ref);
    await sleeps(env, ref);
    expect(await keepSubscription(env, 'checkout-then-sleep', ref)).toBeGreaterThan(0);
  });

  record('checkout-expired', async ({ env }) => {
    const { clock, ref } = await begin(env);
    await env.advance(clock, START + 25 * 3_600_000);
    expect(await keepSubscription(env, 'checkout-expired', ref)).toBeGreaterThan(0);
  });

  record('trial-to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, {
      cycleCount: 3,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(env, ref);
    await env.advance(clock, '2028-02-01T00:00:00Z');
    expect(await keepSubscription(env, 'trial-to-end', ref)).toBeGreaterThan(0);
  });

  record('dunning-to-recovery', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'manualRetry' });
    await env.advance(clock, '2027-02-28T05:00:00Z');
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(env, 'dunning-to-recovery', ref)).toBeGreaterThan(0);
  });

  record('edit-pause-cancel', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(env, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-04-16T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepSubscription(env, 'edit-pause-cancel', ref)).toBeGreaterThan(0);
  });

  record('unknown-outcome', async ({ env }) => {
    const { ref } = await unpaid(env);
    for (const fault of [
      { operation: 'charge', effect: 'none' },
      { operation: 'lookup', effect: 'done' },
    ]) {
      await env.control('POST', '/control/faults', {
        ...fault,
        fault: 'error_500',
        count: 1_000,
        match: {},
      });
    }
    await send(env, ref, { kind: 'manualRetry' });
    await env.control('DELETE', '/control/faults');
    await vi.waitFor(async () => expect((await env.state(ref)).openAttempt).toBeNull(), 40_000);
    expect(await keepSubscription(env, 'unknown-outcome', ref)).toBeGreaterThan(0);
  });

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
    const workflowId = lateChargeWorkflowId(attempt.id);
    await env.payments.watchLateCharge(watched);
    const handle = env.client.workflow.getHandle(workflowId);
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(10);
    }, 10_000);
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
    await handle.signal('poke');
    await handle.result();
    expect(await keep(env, 'late-charge', workflowId)).toBe(1);
  });

  record('payment-review', async ({ env }) => {
    const payments = paymentsIn(env);
    const ref = await payments.tokenised();
    await spoilMethod(env, (await payments.intent(ref)).paymentMethodId);
    const paying = env.payments.pay({ ...ref, token: null });
    const attempt = await inReview(env);
    await settle(env, attempt.id);
    await env.payments.wakePayment(ref);
    expect((await paying).kind).toBe('declined');
    expect(await keep(env, 'payment-review', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  record('operator', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', 'junk');
    await handle.signal('pause');
    await eventually(async () => expect((await env.state(ref)).status).toBe('PAUSED'));
    await handle.cancel();
    await handle.result();
    expect(await keepSubscription(env, 'operator', ref)).toBeGreaterThan(0);
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
    await env.payments.pay({ ...ref, token: await payments.card() });
    expect(await keep(env, 'payment', paymentWorkflowId(ref.intentId))).toBe(1);
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
    const paying = env.payments.pay({ ...ref, token: null });
    await vi.waitFor(async () => expect(await payments.attempts(ref)).toEqual(['1 UNKNOWN']), {
      timeout: 20_000,
      interval: 100,
    });
    await env.control('DELETE', '/control/faults');
    expect(await paying).toEqual({ kind: 'succeeded' });
    expect(await keep(env, 'payment-unknown', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  record('refund', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await env.payments.refund(ref);
    expect(await keep(env, 'refund', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('setup-method', async ({ env }) => {
    const payments = paymentsIn(env);
    const { customerId: _, ...ref } = await payments.setup();
    await env.payments.saveMethod({ ...ref, ...(await payments.card()) });
    expect(await keep(env, 'setup-method', setupMethodWorkflowId(ref.setupMethodId))).toBe(1);
  });

  record('maintenance', async ({ env }) => {
    const workflowId = maintenanceWorkflowId(env.taskQueuePrefix);
    const handle = await env.client.workflow.start('maintenance', {
      workflowId,
      taskQueue: `${env.taskQueuePrefix}billing`,
    });
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(8);
    }, 10_000);
    expect(await keep(env, 'maintenance', workflowId)).toBeGreaterThan(0);
    await handle.terminate('recorded');
  });
});

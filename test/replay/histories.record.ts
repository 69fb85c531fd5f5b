import { Client } from '@temporalio/client';
import { describe, expect, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { maintenanceWorkflowId } from '../../workflows/maintenance/messages.ts';
import { webhookEndpointWorkflowId } from '../../workflows/webhook-endpoint/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import {
  begin,
  decline,
  isFollowed,
  isLongerThan,
  keep,
  keepEnded,
  keepSubscription,
  pay,
  recorderOn,
  send,
  spoilMethod,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories without failures of activities: subscriptions, manual reviews, payments, refunds, saved cards,
 * webhooks and maintenance. In a path whose name contains `asleep`, the run waits in real time until a command or a
 * timer ends the wait.
 */

const record = recorderOn(onDevServer);

const reaches = (env: TestEnvironment, ref: SubscriptionRef, status: string) =>
  vi.waitFor(async () => expect((await env.state(ref)).status).toBe(status), 20_000);

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
  record('checkout-declined', async ({ env }) => {
    const { ref } = await begin(env, { cycleCount: 1 });
    await pay(env, ref, '4242424242424241');
    await pay(env, ref, '4000000000000002');
    await pay(env, ref);
    expect(await keepEnded(env, 'checkout-declined', ref)).toBe(1);
  });

  record('checkout-cancelled', async ({ env }) => {
    const { ref } = await begin(env);
    await send(env, ref, { kind: 'cancel', reason: 'checkout_cancelled' });
    expect(await keepEnded(env, 'checkout-cancelled', ref)).toBe(1);
  });

  record('checkout-expired', async ({ env }) => {
    const { clock, ref } = await begin(env);
    await env.advance(clock, START + 25 * 3_600_000);
    expect(await keepEnded(env, 'checkout-expired', ref)).toBe(1);
  });

  record('checkout-expired-asleep', async ({ env }) => {
    const createdAt = Date.now();
    const ref = await env.create({ createdAt, checkoutExpiresAt: createdAt + 3_000 });
    expect(await keepEnded(env, 'checkout-expired-asleep', ref)).toBe(1);
  });

  record('to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 4 });
    await pay(env, ref);
    await env.advance(clock, '2027-04-01T00:00:00Z');
    await env.advance(clock, '2027-06-01T00:00:00Z');
    expect(await keepEnded(env, 'to-end', ref)).toBe(1);
  });

  record('trial-to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, {
      cycleCount: 2,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(env, ref);
    await env.advance(clock, '2027-04-01T00:00:00Z');
    expect(await keepEnded(env, 'trial-to-end', ref)).toBe(1);
  });

  record('trial-asleep', async ({ env }) => {
    const trial = { interval: 'DAY', count: 7 } as const;
    const ref = await env.create({ createdAt: Date.now(), terms: { trial, cycleCount: 1 } });
    await pay(env, ref);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    expect(await keepEnded(env, 'trial-asleep', ref)).toBeGreaterThan(0);
  });

  record('asleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await pay(env, ref);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    await reaches(env, ref, 'UNPAID');
    await send(env, ref, { kind: 'manualRetry' });
    await env.workflows.recheck(ref);
    await send(env, ref, { kind: 'pause' });
    await send(env, ref, { kind: 'unpause', newNextPaymentAt: Date.now() + 86_400_000 });
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await send(env, ref, { kind: 'cancel', reason: 'cancelled', atPeriodEnd: true });
    await send(env, ref, { kind: 'resume' });
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' }, '2');
    expect(await keepEnded(env, 'asleep', ref)).toBeGreaterThan(0);
  });

  record('dunning-to-recovery', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'manualRetry' });
    await env.advance(clock, '2027-02-28T05:00:00Z');
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(env, 'dunning-to-recovery', ref)).toBe(1);
  });

  record('edit-pause-cancel', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(env, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-04-16T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'edit-pause-cancel', ref)).toBe(1);
  });

  record('pause-until-date', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await send(env, ref, { kind: 'pause', resumeAt: Date.parse('2027-03-15T00:00:00Z') });
    await env.advance(clock, '2027-03-16T00:00:00Z');
    expect(await keepEnded(env, 'pause-until-date', ref)).toBe(1);
  });

  record('cancelled-at-period-end', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled', atPeriodEnd: true });
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'cancelled-at-period-end', ref)).toBe(1);
  });

  record('command-after-advance', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    await env.stopWorkers();
    await env.sendClock(clock, Date.parse('2027-03-15T00:00:00Z'));
    const paused = send(env, ref, { kind: 'pause' });
    await env.startWorkers();
    await paused;
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'command-after-advance', ref)).toBe(1);
  });

  record('over-budget', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    // Longer than the 3 s of a local activity.
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 3_500,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'over-budget', ref)).toBe(1);
  });

  record('operator', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', 'junk');
    await handle.signal('pause');
    await reaches(env, ref, 'PAUSED');
    await handle.cancel();
    expect(await keepEnded(env, 'operator', ref)).toBe(1);
  });

  record('operator-signals', async ({ env }) => {
    const { ref } = await unpaid(env);
    // As the Web UI does: without a digest.
    const operator = new Client({ connection: env.client.connection });
    const handle = operator.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('edit', { newAmountMinor: 2_500 });
    await handle.signal('manualRetry');
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('unpause');
    await handle.signal('pause');
    await reaches(env, ref, 'PAUSED');
    await handle.signal('unpause', { newNextPaymentAt: START + 90 * 86_400_000 });
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('cancel');
    expect(await keepEnded(env, 'operator-signals', ref)).toBe(1);
  });

  record('full-while-asleep', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    const workflow = workflowOf(env, ref);
    const { runId } = await workflow.describe();
    await lengthenHistory(workflow, START, 400);
    await isFollowed(workflow, runId);
    await env.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(env, 'full-while-asleep', ref)).toBeGreaterThan(1);
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

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
import { paymentsIn } from '../support/payments.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import type { World } from '../support/world.ts';
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

/** The paths of the first releases. The other `*.record.ts` files have newer paths. */

const record = recorderOn(onDevServer());

async function inReview(world: World) {
  return vi.waitFor(async () => {
    const [attempt] = await world.db
      .select()
      .from(paymentAttempts)
      .where(eq(paymentAttempts.state, 'REVIEW'));
    if (!attempt) throw new Error('none in review yet');
    return attempt;
  }, 10_000);
}

const settle = (world: World, attemptId: string) =>
  decideReview(world.db, attemptId, {
    outcome: 'not_charged',
    gatewayId: null,
    code: null,
    by: 'Ada',
    note: 'nothing there',
  });

describe('record', () => {
  record('checkout-then-sleep', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    await pay(world, ref);
    await sleeps(world, ref);
    expect(await keepSubscription(world, 'checkout-then-sleep', ref)).toBeGreaterThan(0);
  });

  record('checkout-expired', async ({ world }) => {
    const { clock, ref } = await begin(world);
    await world.advance(clock, START + 25 * 3_600_000);
    expect(await keepSubscription(world, 'checkout-expired', ref)).toBeGreaterThan(0);
  });

  record('trial-to-end', async ({ world }) => {
    const { clock, ref } = await begin(world, {
      cycleCount: 3,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(world, ref);
    await world.advance(clock, '2028-02-01T00:00:00Z');
    expect(await keepSubscription(world, 'trial-to-end', ref)).toBeGreaterThan(0);
  });

  record('dunning-to-recovery', async ({ world }) => {
    const { clock, ref } = await unpaid(world);
    await decline(world, ref, 2);
    await send(world, ref, { kind: 'manualRetry' });
    await world.advance(clock, '2027-02-28T05:00:00Z');
    await world.workflows.execute(ref, newMethodCommand(await world.token()));
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(world, 'dunning-to-recovery', ref)).toBeGreaterThan(0);
  });

  record('edit-pause-cancel', async ({ world }) => {
    const { clock, ref } = await unpaid(world);
    await send(world, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(world, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(world, ref, { kind: 'unpause', newNextPaymentAt });
    await world.advance(clock, '2027-04-16T00:00:00Z');
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepSubscription(world, 'edit-pause-cancel', ref)).toBeGreaterThan(0);
  });

  record('unknown-outcome', async ({ world }) => {
    const { ref } = await unpaid(world);
    for (const fault of [
      { operation: 'charge', effect: 'none' },
      { operation: 'lookup', effect: 'done' },
    ]) {
      await world.control('POST', '/control/faults', {
        ...fault,
        fault: 'error_500',
        count: 1_000,
        match: {},
      });
    }
    await send(world, ref, { kind: 'manualRetry' });
    await world.control('DELETE', '/control/faults');
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), 40_000);
    expect(await keepSubscription(world, 'unknown-outcome', ref)).toBeGreaterThan(0);
  });

  record('review', async ({ world }) => {
    const { ref } = await unpaid(world);
    await spoilMethod(world, (await world.state(ref)).paymentMethodId);
    await send(world, ref, { kind: 'manualRetry' });
    const attempt = await inReview(world);
    await send(world, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await settle(world, attempt.id);
    await world.workflows.recheck(ref);
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), 10_000);
    expect(await keepSubscription(world, 'review', ref)).toBeGreaterThan(0);

    const watched = { merchantId: ref.merchantId, attemptId: attempt.id };
    const workflowId = lateChargeWorkflowId(attempt.id);
    await world.payments.watchLateCharge(watched);
    const handle = world.client.workflow.getHandle(workflowId);
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(10);
    }, 10_000);
    const { owed, paymentMethodId } = await world.state(ref);
    const card = await world.gateway.saveMethod({
      key: 'of-the-late-charge',
      token: await world.token(),
      session: checkoutCommand('').checkoutSessionId,
    });
    if (card.kind !== 'saved' || !owed) throw new Error('no card to charge');
    const { amountMinor, currency, gatewayKey: key } = attempt;
    await world.gateway.charge({
      key,
      gatewayMethodId: card.card.gatewayMethodId,
      amountMinor,
      currency,
      reference: { ...ref, intentId: owed.intentId, paymentMethodId: paymentMethodId ?? '' },
    });
    await handle.signal('poke');
    await handle.result();
    expect(await keep(world, 'late-charge', workflowId)).toBe(1);
  });

  record('payment-review', async ({ world }) => {
    const payments = paymentsIn(world);
    const ref = await payments.tokenised();
    await spoilMethod(world, (await payments.intent(ref)).paymentMethodId);
    const paying = world.payments.pay({ ...ref, token: null });
    const attempt = await inReview(world);
    await settle(world, attempt.id);
    await world.payments.wakePayment(ref);
    expect((await paying).kind).toBe('declined');
    expect(await keep(world, 'payment-review', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  record('operator', async ({ world }) => {
    const { ref } = await unpaid(world);
    const handle = workflowOf(world, ref);
    await handle.signal('edit', 'junk');
    await handle.signal('pause');
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'));
    await handle.cancel();
    await handle.result();
    expect(await keepSubscription(world, 'operator', ref)).toBeGreaterThan(0);
  });

  record('webhook-endpoint', async ({ world }) => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    receiver.answerNext({ status: 500 });
    const configId = await world.subscribe(receiver.url, 'a-secret-of-the-merchant');
    await begin(world);
    await receiver.waitFor(3);
    const workflowId = webhookEndpointWorkflowId(configId);
    await world.client.workflow.getHandle(workflowId).result();
    expect(await keep(world, 'webhook-endpoint', workflowId)).toBeGreaterThan(0);
    await receiver.close();
  });

  record('payment', async ({ world }) => {
    const payments = paymentsIn(world);
    const ref = await payments.payment('hosted');
    await world.payments.pay({ ...ref, token: await payments.card() });
    expect(await keep(world, 'payment', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  record('payment-unknown', async ({ world }) => {
    const payments = paymentsIn(world);
    const ref = await payments.tokenised();
    const fault = { match: {}, count: 1_000 };
    await world.control('POST', '/control/faults', {
      ...fault,
      operation: 'charge',
      fault: 'lose_answer',
    });
    await world.control('POST', '/control/faults', {
      ...fault,
      operation: 'lookup',
      fault: 'error_500',
    });
    const paying = world.payments.pay({ ...ref, token: null });
    await vi.waitFor(async () => expect(await payments.attempts(ref)).toEqual(['1 UNKNOWN']), {
      timeout: 20_000,
      interval: 100,
    });
    await world.control('DELETE', '/control/faults');
    expect(await paying).toEqual({ kind: 'succeeded' });
    expect(await keep(world, 'payment-unknown', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  record('refund', async ({ world }) => {
    const payments = paymentsIn(world);
    const { ref } = await payments.refund(await payments.paid());
    await world.payments.refund(ref);
    expect(await keep(world, 'refund', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('setup-method', async ({ world }) => {
    const payments = paymentsIn(world);
    const { customerId: _, ...ref } = await payments.setup();
    await world.payments.saveMethod({ ...ref, ...(await payments.card()) });
    expect(await keep(world, 'setup-method', setupMethodWorkflowId(ref.setupMethodId))).toBe(1);
  });

  record('maintenance', async ({ world }) => {
    const workflowId = maintenanceWorkflowId(world.taskQueuePrefix);
    const handle = await world.client.workflow.start('maintenance', {
      workflowId,
      taskQueue: `${world.taskQueuePrefix}billing`,
    });
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(8);
    }, 10_000);
    expect(await keep(world, 'maintenance', workflowId)).toBeGreaterThan(0);
    await handle.terminate('recorded');
  });
});

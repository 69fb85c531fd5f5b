import { mkdir, writeFile } from 'node:fs/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { decideReview } from '../../db/repositories/reviews.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { lateChargeWorkflowId } from '../../workflows/late-charge/messages.ts';
import { maintenanceWorkflowId } from '../../workflows/maintenance/messages.ts';
import { paymentWorkflowId } from '../../workflows/payment/messages.ts';
import { refundWorkflowId } from '../../workflows/refund/messages.ts';
import { setupMethodWorkflowId } from '../../workflows/setup-method/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { webhookStreamWorkflowId } from '../../workflows/webhook-stream/messages.ts';
import { paymentsIn } from '../support/payments.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import {
  checkoutCommand,
  connectDevServer,
  createWorld,
  newMethodCommand,
} from '../support/world.ts';
import type { NewLife, World } from '../support/world.ts';

/**
 * Lives one path after the other on a real server and keeps every run's history. Run it when a
 * release has a path that the files do not have yet; never to make a failing replay pass.
 */
const FOLDER = 'test/replay/histories';

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;

beforeAll(async () => {
  await mkdir(FOLDER, { recursive: true });
  server = await connectDevServer();
  world = await createWorld(server);
});

afterAll(async () => {
  await world.close();
  await server.close();
});

/** Writes the history of every run of a workflow: `<name>-<n>.json`. How many there were. */
async function keep(name: string, workflowId: string): Promise<number> {
  const runIds: string[] = [];
  await vi.waitFor(
    async () => {
      runIds.length = 0;
      const runs = world.client.workflow.list({ query: `WorkflowId = '${workflowId}'` });
      for await (const run of runs) runIds.push(run.runId);
      expect(runIds.length).toBeGreaterThan(0);
    },
    { timeout: 20_000, interval: 200 },
  );
  for (const [index, runId] of runIds.toReversed().entries()) {
    const history = await world.client.workflow.getHandle(workflowId, runId).fetchHistory();
    await writeFile(
      `${FOLDER}/${name}-${index + 1}.json`,
      withoutThisMachine(historyToJSON(history)),
    );
  }
  return runIds.length;
}

/** Stack traces and process names say where it was recorded, which is nobody's business. */
function withoutThisMachine(json: string): string {
  const kept: unknown = JSON.parse(json, (key, value: unknown) => {
    if (key === 'stackTrace') return '';
    if (key === 'identity') return 'worker';
    // A sticky task queue is named after the process and its host.
    return typeof value === 'string' && /^\d+@/.test(value) ? 'worker-sticky' : value;
  });
  return `${JSON.stringify(kept)}\n`;
}

const keepSubscription = (name: string, ref: SubscriptionRef) =>
  keep(name, subscriptionWorkflowId(ref.subscriptionId));

const START = Date.parse('2027-01-31T00:00:00Z');

async function begin(terms: NewLife['terms'] = {}) {
  const clock = await world.createClock(START);
  const ref = await world.create({ createdAt: START, testClockId: clock, terms });
  return { clock, ref };
}

async function pay(ref: SubscriptionRef): Promise<void> {
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
}

const send = (ref: SubscriptionRef, command: Omit<Command, 'commandId'>) =>
  world.workflows.execute(ref, {
    ...command,
    commandId: `${command.kind}:${ref.subscriptionId}`,
  } as Command);

async function unpaid() {
  const { clock, ref } = await begin({ cycleCount: 3 });
  await pay(ref);
  const { subscriptionId } = ref;
  const decline = { subscriptionId, code: 'card_declined', count: 1 };
  await world.control('POST', '/control/declines', decline);
  await world.advance(clock, '2027-02-28T00:00:00Z');
  return { clock, ref };
}

/** The gateway refuses a request without a method as such. One at a time has that name. */
async function spoilMethod(id: string | null): Promise<void> {
  await world.db
    .update(paymentMethods)
    .set({ gatewayMethodId: 'gone' })
    .where(eq(paymentMethods.gatewayMethodId, ''));
  await world.db
    .update(paymentMethods)
    .set({ gatewayMethodId: '' })
    .where(eq(paymentMethods.id, id ?? ''));
}

async function inReview() {
  return vi.waitFor(async () => {
    const [attempt] = await world.db
      .select()
      .from(paymentAttempts)
      .where(eq(paymentAttempts.state, 'REVIEW'));
    if (!attempt) throw new Error('none in review yet');
    return attempt;
  }, 10_000);
}

const settle = (attemptId: string) =>
  decideReview(world.db, attemptId, {
    outcome: 'not_charged',
    gatewayId: null,
    code: null,
    by: 'Ada',
    note: 'nothing there',
  });

describe('record', () => {
  test('in real time: checkout, sleep, renewal', async () => {
    const ref = await world.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    await pay(ref);
    // The sleeping run.
    await vi.waitFor(async () => {
      const { historyLength } = await world.client.workflow
        .getHandle(subscriptionWorkflowId(ref.subscriptionId))
        .describe();
      expect(historyLength).toBeLessThanOrEqual(6);
    }, 10_000);
    expect(await keepSubscription('checkout-then-sleep', ref)).toBeGreaterThan(0);
  });

  test('an unpaid checkout', async () => {
    const { clock, ref } = await begin();
    await world.advance(clock, START + 25 * 3_600_000);
    expect(await keepSubscription('checkout-expired', ref)).toBeGreaterThan(0);
  });

  test('a trial, a year, the end', async () => {
    const { clock, ref } = await begin({ cycleCount: 3, trial: { interval: 'DAY', count: 7 } });
    await pay(ref);
    await world.advance(clock, '2028-02-01T00:00:00Z');
    expect(await keepSubscription('trial-to-end', ref)).toBeGreaterThan(0);
  });

  test('decline, automatic retry, manual retry, new method', async () => {
    const { clock, ref } = await unpaid();
    await world.control('POST', '/control/declines', {
      subscriptionId: ref.subscriptionId,
      code: 'card_declined',
      count: 2,
    });
    await send(ref, { kind: 'manualRetry' });
    await world.advance(clock, '2027-02-28T05:00:00Z');
    await world.workflows.execute(ref, newMethodCommand(await world.token()));
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription('dunning-to-recovery', ref)).toBeGreaterThan(0);
  });

  test('edit, pause, unpause, cancel', async () => {
    const { clock, ref } = await unpaid();
    await send(ref, { kind: 'edit', newAmountMinor: 2_500 } as Command);
    await send(ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(ref, { kind: 'unpause', newNextPaymentAt } as Command);
    await world.advance(clock, '2027-04-16T00:00:00Z');
    await send(ref, { kind: 'cancel', reason: 'cancelled' } as Command);
    expect(await keepSubscription('edit-pause-cancel', ref)).toBeGreaterThan(0);
  });

  test('an unknown outcome that is settled later', async () => {
    const { ref } = await unpaid();
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
    await send(ref, { kind: 'manualRetry' });
    await world.control('DELETE', '/control/faults');
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), 40_000);
    expect(await keepSubscription('unknown-outcome', ref)).toBeGreaterThan(0);
  });

  test('an outcome that a person settles, and a charge that comes to light later', async () => {
    const { ref } = await unpaid();
    await spoilMethod((await world.state(ref)).paymentMethodId);
    await send(ref, { kind: 'manualRetry' });
    const attempt = await inReview();
    await send(ref, { kind: 'edit', newAmountMinor: 2_500 } as Command);
    await settle(attempt.id);
    await world.workflows.revive(ref);
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), 10_000);
    expect(await keepSubscription('review', ref)).toBeGreaterThan(0);

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
    expect(await keep('late-charge', workflowId)).toBe(1);
  });

  test('a payment that a person settles', async () => {
    const payments = paymentsIn(world);
    const ref = await payments.tokenised();
    await spoilMethod((await payments.intent(ref)).paymentMethodId);
    const paying = world.payments.pay({ ...ref, token: null });
    const attempt = await inReview();
    await settle(attempt.id);
    await world.payments.wakePayment(ref);
    expect((await paying).kind).toBe('declined');
    expect(await keep('payment-review', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  test('signals of an operator, and the cancel button', async () => {
    const { ref } = await unpaid();
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('edit', 'junk');
    await handle.signal('pause');
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'));
    await handle.cancel();
    await handle.result();
    expect(await keepSubscription('operator', ref)).toBeGreaterThan(0);
  });

  test('a webhook stream with a failing receiver', async () => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    receiver.answerNext({ status: 500 });
    await world.subscribe(receiver.url, 'a-secret-of-the-merchant');
    const { ref } = await begin();
    await receiver.waitFor(3);
    const workflowId = webhookStreamWorkflowId(ref.subscriptionId);
    await world.client.workflow.getHandle(workflowId).result();
    expect(await keep('webhook-stream', workflowId)).toBeGreaterThan(0);
    await receiver.close();
  });

  test('a payment with a card', async () => {
    const payments = paymentsIn(world);
    const ref = await payments.payment('hosted');
    await world.payments.pay({ ...ref, token: await payments.card() });
    expect(await keep('payment', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  test('a payment whose outcome is unknown for a while', async () => {
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
    expect(await keep('payment-unknown', paymentWorkflowId(ref.intentId))).toBe(1);
  });

  test('a refund', async () => {
    const payments = paymentsIn(world);
    const { ref } = await payments.refund(await payments.paid());
    await world.payments.refund(ref);
    expect(await keep('refund', refundWorkflowId(ref.refundId))).toBe(1);
  });

  test('a card saved in a setup session', async () => {
    const payments = paymentsIn(world);
    const { customerId: _, ...ref } = await payments.setup();
    await world.payments.saveMethod({ ...ref, ...(await payments.card()) });
    expect(await keep('setup-method', setupMethodWorkflowId(ref.setupMethodId))).toBe(1);
  });

  test('maintenance', async () => {
    const workflowId = maintenanceWorkflowId(world.taskQueuePrefix);
    const handle = await world.client.workflow.start('maintenance', {
      workflowId,
      taskQueue: `${world.taskQueuePrefix}billing`,
    });
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(8);
    }, 10_000);
    expect(await keep('maintenance', workflowId)).toBeGreaterThan(0);
    await handle.terminate('recorded');
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import { paymentReviews } from '../../db/schema/payment-reviews.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { cycleAt } from '../../domain/calendar.ts';
import { DomainError } from '../../domain/errors.ts';
import { poke, stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import {
  checkoutCommand,
  connectDevServer,
  createWorld,
  newMethodCommand,
} from '../support/world.ts';
import type { World } from '../support/world.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhook-configs.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';

const HOUR = 3_600_000;

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
});

afterAll(async () => {
  await world.close();
  await server.close();
});

const handleOf = (ref: SubscriptionRef) =>
  world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));

const eventTypes = async (ref: SubscriptionRef) =>
  (await world.events(ref)).map((event) => event['eventType']);

/** A subscription on a clock of its own whose second cycle was just declined. */
async function unpaid(code = 'card_declined') {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await world.createClock(createdAt);
  const ref = await world.create({ createdAt, testClockId: clock, terms: { cycleCount: 3 } });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const { subscriptionId } = ref;
  await world.control('POST', '/control/declines', { subscriptionId, code, count: 1 });
  await world.advance(clock, '2027-02-10T00:00:00Z');
  expect((await world.state(ref)).status).toBe('UNPAID');
  return { ref, clock };
}

describe('two manual retries at the same moment', () => {
  test('make one attempt, and the next cycle is not charged early [D-31, D-32]', async () => {
    const { ref } = await unpaid();
    const retry = async () => {
      const command = { kind: 'manualRetry', commandId: `retry:${randomUUID()}` } as const;
      const send = () => world.workflows.execute(ref, command);
      // A worker that takes longer than 5 s to be there again: sent again, as a merchant would.
      return send().catch(send);
    };
    // Both wait at the server, so that one workflow task accepts both: each passes the validator.
    await world.stopWorkers();
    const sent = [retry(), retry()];
    await world.startWorkers();
    const answers = await Promise.all(sent);
    const kinds = answers.map((answer) => answer.kind).toSorted();
    expect(kinds).toEqual(['refused', 'result']);
    expect(answers.find((answer) => answer.kind === 'refused')).toMatchObject({
      code: expect.stringMatching(/^(operation_not_allowed|payment_outcome_pending)$/) as string,
    });
    expect((await world.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });

  test('with one command id are one command, repeated after it ended too [D-32]', async () => {
    const { ref } = await unpaid();
    const command = { kind: 'manualRetry', commandId: `retry:${randomUUID()}` } as const;
    const answers = await Promise.all([1, 2, 3].map(() => world.workflows.execute(ref, command)));
    answers.push(await world.workflows.execute(ref, command));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]).toMatchObject({ result: { success: true, status: 'ACTIVE' } });
    expect(await world.book(ref)).toHaveLength(3);
  });
});

describe('a command that arrives', () => {
  test('while a payment is on its way is served right after it, and changes nothing of it [D-15]', async () => {
    const { ref } = await unpaid();
    await world.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 1_000,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    const retried = world.workflows.execute(ref, {
      kind: 'manualRetry',
      commandId: `retry:${randomUUID()}`,
    });
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).not.toBeNull());
    const edited = await world.workflows.execute(ref, {
      kind: 'edit',
      commandId: `edit:${randomUUID()}`,
      newAmountMinor: 9_900,
    });
    expect(edited).toEqual({ kind: 'result', result: { kind: 'done' } });
    expect(await retried).toMatchObject({ result: { success: true } });
    expect((await world.book(ref)).at(-1)?.amountMinor).toBe(1_999);
    expect((await world.state(ref)).terms.amountMinor).toBe(9_900);
  });

  test('while webhooks are being delivered does not wait for them [design §5]', async () => {
    const { ref } = await unpaid();
    const receiver = await startWebhookReceiver({ secrets: ['whsec_c2VjcmV0'] });
    receiver.answerWith('hang');
    const configId = await world.subscribe(receiver.url, 'whsec_c2VjcmV0');
    const edit = (newAmountMinor: number) =>
      world.workflows.execute(ref, { kind: 'edit', commandId: randomUUID(), newAmountMinor });
    await world.workflows.execute(ref, { kind: 'pause', commandId: randomUUID() });
    await receiver.waitFor(1);
    // The first event hangs at its receiver; commands are served all the same.
    expect(await edit(300)).toMatchObject({ kind: 'result' });
    expect(await edit(400)).toMatchObject({ kind: 'result' });
    expect((await world.state(ref)).terms.amountMinor).toBe(400);
    expect(receiver.received.map(({ event }) => event.eventType)).toEqual(['subscription.paused']);
    await deleteWebhookConfig(world.db, { merchantId: world.merchantId, configId, at: Date.now() });
    await receiver.close();
  });

  test('as a signal while the run ends is not dropped, and one with junk harms nothing [D-32]', async () => {
    const { ref } = await unpaid();
    const handle = handleOf(ref);
    await handle.signal('edit', 'not an object');
    await handle.signal('edit', { newAmountMinor: 'much' });
    await handle.signal('unpause', null);
    await handle.signal('pause');
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'));
    expect((await world.state(ref)).terms.amountMinor).toBe(1_999);
    expect((await handle.describe()).status.name).toBe('RUNNING');
  });

  test('as a signal or an update with junk from the Web UI leaves the subscription alive [design §3]', async () => {
    const { ref, clock } = await unpaid();
    const handle = handleOf(ref);
    await handle.signal('advanceClock');
    await handle.signal('advanceClock', { targetAt: 1e300 });
    await handle.signal('advanceClock', { targetAt: '7000000000000' });
    await world.workflows.execute(ref, { kind: 'pause', commandId: randomUUID() });
    await handle.signal('unpause', { newNextPaymentAt: Number.MAX_SAFE_INTEGER });
    await handle.signal('unpause', { newNextPaymentAt: Date.UTC(2250, 0, 1) });
    expect(await handle.query('upcoming')).toEqual([]);
    expect((await world.state(ref)).status).toBe('PAUSED');
    // An operator's update has no command id; it is carried out all the same.
    const newNextPaymentAt = Date.parse('2027-03-15T00:00:00Z');
    expect(await handle.executeUpdate('unpause', { args: [{ newNextPaymentAt }] })).toEqual({
      kind: 'done',
    });
    await world.advance(clock, '2027-03-15T00:00:00Z');
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(await handle.executeUpdate('cancel')).toEqual({ kind: 'done' });
    expect(await world.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
  });

  test('again and again makes runs at most one a second, and none is lost', async () => {
    const { ref } = await unpaid();
    for (let amount = 201; amount <= 212; amount += 1) {
      const answer = await world.workflows.execute(ref, {
        kind: 'edit',
        commandId: `edit:${randomUUID()}`,
        newAmountMinor: amount,
      });
      expect(answer.kind).toBe('result');
    }
    expect((await world.state(ref)).terms.amountMinor).toBe(212);
  });

  test('after the end is refused by the rules, not by a missing workflow [D-§4]', async () => {
    const { ref } = await unpaid();
    const cancel = {
      kind: 'cancel',
      commandId: `cancel:${randomUUID()}`,
      reason: 'cancelled',
    } as const;
    expect(await world.workflows.execute(ref, cancel)).toMatchObject({ kind: 'result' });
    await handleOf(ref).result();
    expect(await world.workflows.execute(ref, cancel)).toMatchObject({ kind: 'result' });
    expect(
      await world.workflows.execute(ref, { ...cancel, commandId: `cancel:${randomUUID()}` }),
    ).toEqual({
      kind: 'refused',
      code: 'operation_not_allowed',
      message: 'A subscription that is ENDED cannot be cancelled.',
    });
  });
});

describe('the Web UI', () => {
  test('cancelling the workflow is the cancel command [D-§4]', async () => {
    const { ref } = await unpaid();
    const handle = handleOf(ref);
    await handle.cancel();
    await handle.result();
    expect(await world.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect((await eventTypes(ref)).at(-1)).toBe('subscription.ended');
  });

  test('terminating it loses nothing: it goes on from its row [design §3]', async () => {
    const { ref, clock } = await unpaid();
    await handleOf(ref).terminate('somebody clicked');
    await vi.waitFor(
      async () => expect(await world.workflows.lostSince(Date.now() - HOUR)).toContainEqual(ref),
      { timeout: 20_000, interval: 200 },
    );
    await world.workflows.restore(ref);
    expect(await handleOf(ref).query(stateQuery)).toEqual(await world.state(ref));
    await world.advance(clock, '2027-02-10T04:00:00Z');
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect((await world.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
  });

  test('terminating it in the middle of a charge charges once [D-32]', async () => {
    const { ref } = await unpaid();
    await world.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 1_500,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    const command = { kind: 'manualRetry', commandId: `retry:${randomUUID()}` } as const;
    const answer = world.workflows.execute(ref, command).catch((error: unknown) => error);
    await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).not.toBeNull());
    await handleOf(ref).terminate('somebody clicked');
    await answer;
    await world.workflows.restore(ref);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ACTIVE'), 30_000);
    expect((await world.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
    expect(await world.workflows.execute(ref, command)).toMatchObject({
      kind: 'result',
      result: { success: true, status: 'ACTIVE' },
    });
    expect((await eventTypes(ref)).slice(-3)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
  });
});

describe('a gateway', () => {
  test('that charges and loses its answer has charged once [D-40]', async () => {
    const { ref } = await unpaid();
    const match = { subscriptionId: ref.subscriptionId };
    const lose = { operation: 'charge', fault: 'lose_answer', count: 1, match };
    await world.control('POST', '/control/faults', lose);
    const answer = await world.workflows.execute(ref, {
      kind: 'manualRetry',
      commandId: `retry:${randomUUID()}`,
    });
    expect(answer).toMatchObject({ result: { success: true, status: 'ACTIVE' } });
    const book = await world.book(ref);
    expect(book.map((charge) => [charge.outcome, charge.sentCount])).toEqual([
      ['succeeded', 1],
      ['declined', 1],
      ['succeeded', 1],
    ]);
  });

  test.each([
    {
      what: 'had the charge: its late success is booked and told',
      effect: 'done',
      cyclesCharged: 2,
      told: ['subscription.ended', 'intent.success', 'subscription.cycle_charged'],
      result: { success: true, errorCode: null },
      booked: ['succeeded', 'declined', 'succeeded'],
    },
    {
      what: 'had not got it: it does not get it any more',
      effect: 'none',
      cyclesCharged: 1,
      told: ['subscription.unpaid', 'subscription.ended', 'intent.failed'],
      result: { success: false, errorCode: 'processing_error' },
      booked: ['succeeded', 'declined'],
    },
  ])(
    'that is away leaves the subscription open to commands; when it ended meanwhile and the gateway $what [D-31, D-§4]',
    async ({ effect, cyclesCharged, told, result, booked }) => {
      const { ref } = await unpaid();
      const match = { subscriptionId: ref.subscriptionId };
      for (const operation of ['charge', 'lookup']) {
        await world.control('POST', '/control/faults', {
          operation,
          fault: 'error_500',
          ...(operation === 'charge' ? { effect } : {}),
          count: 1_000,
          match: operation === 'charge' ? match : {},
        });
      }
      const command = { kind: 'manualRetry', commandId: `retry:${randomUUID()}` } as const;
      expect(await world.workflows.execute(ref, command)).toEqual({ kind: 'pending' });
      // The state says so, the same command stays pending, another is refused, cancel is served.
      expect((await world.state(ref)).openAttempt?.lookups).toBe(1);
      expect(await world.workflows.execute(ref, command)).toEqual({ kind: 'pending' });
      const other = { ...command, commandId: `retry:${randomUUID()}` };
      expect(await world.workflows.execute(ref, other)).toMatchObject({
        code: 'payment_outcome_pending',
      });
      const cancel = { kind: 'cancel', commandId: randomUUID(), reason: 'cancelled' } as const;
      expect(await world.workflows.execute(ref, cancel)).toMatchObject({ kind: 'result' });
      expect(await world.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 1 });

      await world.control('DELETE', '/control/faults');
      await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), {
        timeout: 40_000,
        interval: 100,
      });
      expect(await world.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged });
      expect((await eventTypes(ref)).slice(-3)).toEqual(told);
      expect((await world.book(ref)).map(({ outcome }) => outcome)).toEqual(booked);
      // What did not arrive may still be on its way: the gateway is watched for it.
      const watched = await world.db.select({ by: paymentReviews.decidedBy }).from(paymentReviews);
      expect(watched).toEqual(result.success ? [] : [{ by: 'perennial' }]);
      expect(await world.workflows.execute(ref, command)).toMatchObject({
        kind: 'result',
        result: { ...result, status: 'ENDED', minManualRetryAt: null },
      });
      await handleOf(ref).result();
    },
  );
});

describe('a card token', () => {
  test('that was used in one checkout pays no other, whoever comes with it [D-21, D-36]', async () => {
    const payment = checkoutCommand(await world.token());
    const first = await world.create({ createdAt: Date.now() });
    expect(await world.workflows.execute(first, payment)).toMatchObject({
      result: { outcome: 'paid' },
    });
    const second = await world.create({ createdAt: Date.now() });
    const refused = { kind: 'checkout', outcome: 'declined', errorCode: 'processing_error' };
    // The same session, another customer; and another session.
    for (const checkoutSessionId of [payment.checkoutSessionId, 'cs_another']) {
      expect(
        await world.workflows.execute(second, { ...payment, checkoutSessionId }),
      ).toMatchObject({ kind: 'result', result: refused });
    }
    expect(await world.state(second)).toMatchObject({ status: 'CREATED', cyclesCharged: 0 });
    expect(await world.book(second)).toEqual([]);
  });
});

describe('a new payment method', () => {
  test('given while UNPAID charges the owed cycle at once, one that is declined is kept [D-30, D-33]', async () => {
    const { ref } = await unpaid('stolen_card');
    expect((await world.state(ref)).owed?.retriesStopped).toBe(true);
    const declined = await world.token('4000000000000341');
    expect(await world.workflows.execute(ref, newMethodCommand(declined))).toEqual({
      kind: 'result',
      result: { kind: 'checkout', outcome: 'declined', errorCode: 'card_declined' },
    });
    expect((await world.state(ref)).owed).toMatchObject({ retriesStopped: false, attempts: 2 });
    expect(await world.workflows.execute(ref, newMethodCommand(await world.token()))).toEqual({
      kind: 'result',
      result: { kind: 'checkout', outcome: 'paid', errorCode: null },
    });
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    const methods = await world.db
      .select({ status: paymentMethods.status })
      .from(paymentMethods)
      .where(eq(paymentMethods.customerId, (await world.state(ref)).customerId))
      .orderBy(paymentMethods.createdAt, paymentMethods.id);
    expect(methods.map(({ status }) => status).toSorted()).toEqual(['DELETED', 'DELETED', 'LIVE']);
  });
});

describe('workers that are away', () => {
  test('at the creation: nothing is lost, and billing starts when they are back [design §5]', async () => {
    await world.stopWorkers();
    const ref = await world.create({ createdAt: Date.now() });
    const payment = checkoutCommand(await world.token());
    const paying = world.workflows.execute(ref, payment);
    await expect(paying).rejects.toThrow(new DomainError('service_unavailable'));
    await world.startWorkers();
    const again = await world.workflows.execute(ref, payment);
    expect(again).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('or a workflow that was never started: any command starts it [design §5]', async () => {
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    const paid = await world.workflows.execute(ref, checkoutCommand(await world.token()));
    expect(paid).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    await handleOf(ref).signal(poke);
    expect((await handleOf(ref).describe()).status.name).toBe('RUNNING');
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('for two months: both cycles are charged, in order, each with its own due date [D-05]', async () => {
    const ref = await world.create({ createdAt: Date.now(), terms: { cycleCount: 5 } });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    await handleOf(ref).terminate('everything is down');
    // Everything was down for 65 days: the same row, with its anchor that much earlier.
    const state = await world.state(ref);
    const anchorAt = Number(state.anchorAt) - 65 * 24 * HOUR;
    await world.db
      .update(subscriptions)
      .set({ state: { ...state, anchorAt } })
      .where(eq(subscriptions.id, ref.subscriptionId));
    await world.workflows.restore(ref);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(3), 20_000);
    const intents = await world.db
      .select({ cycleNumber: paymentIntents.cycleNumber, dueAt: paymentIntents.dueAt })
      .from(paymentIntents)
      .where(eq(paymentIntents.subscriptionId, ref.subscriptionId))
      .orderBy(paymentIntents.cycleNumber);
    expect(intents.slice(1)).toEqual([
      { cycleNumber: 2, dueAt: cycleAt(anchorAt, 'MONTH', 1, 1) },
      { cycleNumber: 3, dueAt: cycleAt(anchorAt, 'MONTH', 1, 2) },
    ]);
    expect((await world.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'succeeded',
      'succeeded',
    ]);
    await vi.waitFor(async () => {
      const { cyclesCharged, openAttempt } = await handleOf(ref).query(stateQuery);
      expect({ cyclesCharged, openAttempt }).toEqual({ cyclesCharged: 3, openAttempt: null });
    });
    expect(await world.book(ref)).toHaveLength(3);
  });
});

import { randomUUID } from 'node:crypto';
import { describe, expect, vi } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import { paymentReviews } from '../../db/schema/payment-reviews.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { cycleAt } from '../../domain/calendar.ts';
import { DomainError } from '../../domain/errors.ts';
import { lateChargeWorkflowId } from '../../workflows/one-off-orders/messages.ts';
import { poke, stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import { unpaidIn } from '../support/unpaid.ts';
import type { World } from '../support/world.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';

const HOUR = 3_600_000;

const test = onDevServer();

const handleOf = (world: World, ref: SubscriptionRef) =>
  world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));

const eventTypes = async (world: World, ref: SubscriptionRef) =>
  (await world.events(ref)).map((event) => event['eventType']);

describe('a charge', () => {
  test('is made once when the gateway’s answer is lost [D-40]', async ({ world }) => {
    const { ref } = await unpaidIn(world);
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

  test.for([
    [
      'is booked as paid when cancelled meanwhile and the gateway had made it',
      {
        order: { kind: 'cancel', reason: 'cancelled' } as const,
        status: 'ENDED',
        effect: 'done',
        cyclesCharged: 2,
        lastEvents: ['subscription.ended', 'intent.success', 'subscription.cycle_charged'],
        result: { success: true, errorCode: null, status: 'ENDED', minManualRetryAt: null },
        booked: ['succeeded', 'declined', 'succeeded'],
      },
    ],
    [
      'is never sent again when cancelled meanwhile and the gateway had not received it',
      {
        order: { kind: 'cancel', reason: 'cancelled' } as const,
        status: 'ENDED',
        effect: 'none',
        cyclesCharged: 1,
        lastEvents: ['subscription.unpaid', 'subscription.ended', 'intent.failed'],
        result: {
          success: false,
          errorCode: 'processing_error',
          status: 'ENDED',
          minManualRetryAt: null,
        },
        booked: ['succeeded', 'declined'],
      },
    ],
    [
      'is never sent again when paused meanwhile and the gateway had not received it',
      {
        order: { kind: 'pause' } as const,
        status: 'PAUSED',
        effect: 'none',
        cyclesCharged: 1,
        lastEvents: ['subscription.unpaid', 'subscription.paused', 'intent.failed'],
        result: { success: false, errorCode: 'processing_error', status: 'UNPAID' },
        booked: ['succeeded', 'declined'],
      },
    ],
  ] as const)(
    'lets commands through while its outcome is unknown, and %s [D-31, D-§4]',
    async (
      [_what, { order, status, effect, cyclesCharged, lastEvents, result, booked }],
      { world },
    ) => {
      const { ref, clock } = await unpaidIn(world);
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
      // The same command stays pending, another manual retry is refused, cancel or pause is executed.
      expect((await world.state(ref)).openAttempt?.lookups).toBe(1);
      expect(await world.workflows.execute(ref, command)).toEqual({ kind: 'pending' });
      const other = { ...command, commandId: `retry:${randomUUID()}` };
      expect(await world.workflows.execute(ref, other)).toMatchObject({
        code: 'payment_outcome_pending',
      });
      expect(
        await world.workflows.execute(ref, { ...order, commandId: randomUUID() }),
      ).toMatchObject({ kind: 'result' });
      expect(await world.state(ref)).toMatchObject({ status, cyclesCharged: 1 });

      await world.control('DELETE', '/control/faults');
      await vi.waitFor(async () => expect((await world.state(ref)).openAttempt).toBeNull(), {
        timeout: 40_000,
        interval: 100,
      });
      expect(await world.state(ref)).toMatchObject({ status, cyclesCharged });
      expect((await eventTypes(world, ref)).slice(-3)).toEqual(lastEvents);
      expect((await world.book(ref)).map(({ outcome }) => outcome)).toEqual(booked);
      // A request that the gateway has not received may still arrive: a late-charge watch covers it.
      const watched = await world.db
        .select({ attemptId: paymentAttempts.id, decidedBy: paymentReviews.decidedBy })
        .from(paymentReviews)
        .innerJoin(paymentAttempts, eq(paymentAttempts.id, paymentReviews.subjectId))
        .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
        .where(eq(paymentIntents.subscriptionId, ref.subscriptionId));
      expect(watched.map(({ decidedBy }) => decidedBy)).toEqual(
        result.success ? [] : ['perennial'],
      );
      expect(await world.workflows.execute(ref, command)).toMatchObject({
        kind: 'result',
        result,
      });
      for (const { attemptId } of watched) {
        const watch = world.client.workflow.getHandle(lateChargeWorkflowId(attemptId));
        await vi.waitFor(async () => expect((await watch.describe()).status.name).toBe('RUNNING'));
      }
      await world.advance(clock, '2027-04-10T00:00:00Z');
      expect((await world.book(ref)).map(({ outcome }) => outcome)).toEqual(booked);
      expect((await eventTypes(world, ref)).slice(-3)).toEqual(lastEvents);
    },
  );
});

describe('a card token', () => {
  test('pays no other subscription when one checkout has used it [D-21, D-36]', async ({
    world,
  }) => {
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
  test('charges the owed cycle while UNPAID, and is kept when declined [D-30, D-33]', async ({
    world,
  }) => {
    const { ref } = await unpaidIn(world, 'stolen_card');
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

describe('a subscription', () => {
  test('is billed when workers start after its creation', async ({ world }) => {
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

  test('gets its workflow from any command when none was started', async ({ world }) => {
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    const paid = await world.workflows.execute(ref, checkoutCommand(await world.token()));
    expect(paid).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    await handleOf(world, ref).signal(poke);
    expect((await handleOf(world, ref).describe()).status.name).toBe('RUNNING');
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('is charged two cycles in order after two months of outage [D-05]', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now(), terms: { cycleCount: 5 } });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    await handleOf(world, ref).terminate('everything is down');
    // Everything was down for 65 days: the same row, with its anchor that much earlier.
    const state = await world.state(ref);
    const anchorAt = Number(state.anchorAt) - 65 * 24 * HOUR;
    await world.db
      .update(subscriptions)
      .set({ state: { ...state, anchorAt } })
      .where(eq(subscriptions.id, ref.subscriptionId));
    await world.workflows.ensureRunning(ref);
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
      const { cyclesCharged, openAttempt } = await handleOf(world, ref).query(stateQuery);
      expect({ cyclesCharged, openAttempt }).toEqual({ cyclesCharged: 3, openAttempt: null });
    });
    expect(await world.book(ref)).toHaveLength(3);
  });
});

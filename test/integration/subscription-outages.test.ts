import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentAttempts, paymentIntents, paymentReviews } from '../../db/schema/payments.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { unpaidIn } from '../support/unpaid.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';

const eventTypes = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.events(ref)).map((event) => event['eventType']);

describe('a charge', () => {
  test.for([
    [
      'is settled as paid after a cancel when the gateway had made it',
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
      'is never sent again after a cancel when the gateway had not received it',
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
  ] as const)(
    'blocks no cancel while its outcome is unknown, and %s [D-31, D-§4]',
    async (
      [_what, { order, status, effect, cyclesCharged, lastEvents, result, booked }],
      { env },
    ) => {
      const { ref, clock } = await unpaidIn(env);
      const match = { subscriptionId: ref.subscriptionId };
      for (const operation of ['charge', 'lookup']) {
        await env.control('POST', '/control/faults', {
          operation,
          fault: 'error_500',
          ...(operation === 'charge' ? { effect } : {}),
          count: 1_000,
          match: operation === 'charge' ? match : {},
        });
      }
      const command = { kind: 'manualRetry', commandId: `retry:${randomUUID()}` } as const;
      expect(await env.execute(ref, command)).toEqual({ kind: 'pending' });
      // The same command stays pending, another manual retry is refused, cancel is executed.
      // The outcome is recorded as unknown. A look-up follows after 10 s, so there may be more than one.
      await expect.poll(async () => (await env.state(ref)).openAttempt?.lookups).toBeGreaterThan(0);
      expect(await env.execute(ref, command)).toEqual({ kind: 'pending' });
      const other = { ...command, commandId: `retry:${randomUUID()}` };
      expect(await env.execute(ref, other)).toMatchObject({
        code: 'payment_outcome_pending',
      });
      expect(await env.execute(ref, { ...order, commandId: randomUUID() })).toMatchObject({
        kind: 'result',
      });
      expect(await env.state(ref)).toMatchObject({ status, cyclesCharged: 1 });

      await env.control('DELETE', '/control/faults');
      // The interval between look-ups grows to a minute or more. The recheck causes a look-up at once.
      await env.workflows.recheck(ref);
      await expect.poll(async () => (await env.state(ref)).openAttempt).toBeNull();
      expect(await env.state(ref)).toMatchObject({ status, cyclesCharged });
      expect((await eventTypes(env, ref)).slice(-3)).toEqual(lastEvents);
      expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(booked);
      // A request that the gateway has not received may still arrive: a late-charge watch covers it.
      const watched = await env.db
        .select({ attemptId: paymentAttempts.id, decidedBy: paymentReviews.decidedBy })
        .from(paymentReviews)
        .innerJoin(paymentAttempts, eq(paymentAttempts.id, paymentReviews.subjectId))
        .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
        .where(eq(paymentIntents.subscriptionId, ref.subscriptionId));
      expect(watched.map(({ decidedBy }) => decidedBy)).toEqual(
        result.success ? [] : ['perennial'],
      );
      expect(await env.execute(ref, command)).toMatchObject({
        kind: 'result',
        result,
      });
      for (const { attemptId } of watched) {
        const watch = env.client.workflow.getHandle(orderWorkflowId('lateCharge', attemptId));
        await expect.poll(async () => (await watch.describe()).status.name).toBe('RUNNING');
      }
      await env.advance(clock, '2027-04-10T00:00:00Z');
      expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(booked);
      expect((await eventTypes(env, ref)).slice(-3)).toEqual(lastEvents);
    },
  );
});

describe('a card token', () => {
  test('pays no other subscription when one checkout has used it [D-21, D-36]', async ({ env }) => {
    const payment = checkoutCommand(await env.token());
    const first = await env.create({ createdAt: Date.now() });
    expect(await env.execute(first, payment)).toMatchObject({
      result: { outcome: 'paid' },
    });
    const second = await env.create({ createdAt: Date.now() });
    const refused = { kind: 'checkout', outcome: 'declined', errorCode: 'processing_error' };
    // The second subscription has another customer. This customer tries the token with the same and with
    // another session.
    for (const checkoutSessionId of [payment.checkoutSessionId, 'cs_another']) {
      expect(await env.execute(second, { ...payment, checkoutSessionId })).toMatchObject({
        kind: 'result',
        result: refused,
      });
    }
    expect(await env.state(second)).toMatchObject({ status: 'CREATED', cyclesCharged: 0 });
    expect(await env.book(second)).toEqual([]);
  });
});

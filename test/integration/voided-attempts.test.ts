import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Command } from '../../domain/subscription/commands.ts';
import { onDevServer as test } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const FEBRUARY = '2027-02-10T00:00:00Z';
const MARCH = '2027-03-10T00:00:00Z';
const at = (date: string): number => Date.parse(date);

/**
 * Creates a subscription of 19.99 USD a month from 10 January 2027, three cycles, on its own test clock. The request of
 * the second charge never reaches the gateway, and its look-ups fail until `heal` is called.
 */
async function undecidedIn(env: TestEnvironment) {
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z', { cycleCount: 3 });
  await env.gatewayAway('none', { subscriptionId: ref.subscriptionId });
  await env.sendClock(clock, at(FEBRUARY));
  await expect.poll(async () => (await env.state(ref)).openAttempt?.lookups).toBeGreaterThan(0);
  expect(await env.book(ref)).toMatchObject([{ outcome: 'succeeded' }]);
  const heardAtFirst = (await env.events(ref)).length;
  return {
    ref,
    order: async (command: Command) =>
      expect(await env.execute(ref, command)).toMatchObject({ kind: 'result' }),
    heal: async () => {
      await env.gatewayBack();
      await env.workflows.recheck(ref);
      await expect.poll(async () => (await env.state(ref)).openAttempt).toBeNull();
    },
    advance: (date: string) => env.advance(clock, date),
    booked: async () =>
      (await env.book(ref)).map(({ outcome, amountMinor, sentCount }) => [
        outcome,
        amountMinor,
        sentCount,
      ]),
    /** The types of the events since the second charge was sent. */
    events: async () =>
      (await env.events(ref)).slice(heardAtFirst).map((event) => event['eventType']),
  };
}

const PAID = ['succeeded', 1_999, 1];

test('a charge that the gateway has not received is not sent after a cancellation at the period’s end [D-§4]', async ({
  env,
}) => {
  const { ref, order, heal, advance, booked, events } = await undecidedIn(env);
  const commandId = randomUUID();
  await order({ kind: 'cancel', reason: 'cancelled', atPeriodEnd: true, commandId });
  await heal();
  await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
  expect(await env.state(ref)).toMatchObject({
    endReason: 'cancelled',
    cyclesCharged: 1,
    currentPeriodEndAt: at(FEBRUARY),
  });
  await advance('2028-01-10T00:00:00Z');
  expect(await booked()).toEqual([PAID]);
  expect(await events()).toEqual([
    'subscription.cancel_scheduled',
    'intent.failed',
    'subscription.ended',
  ]);
});

test('a charge that the gateway has not received is not sent before the date of an unpause [D-§4]', async ({
  env,
}) => {
  const { ref, order, heal, advance, booked, events } = await undecidedIn(env);
  await order({ kind: 'pause', commandId: randomUUID() });
  await order({ kind: 'unpause', newNextPaymentAt: at(MARCH), commandId: randomUUID() });
  await heal();
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
  await advance('2027-03-09T23:59:59Z');
  expect(await booked()).toEqual([PAID]);
  await advance(MARCH);
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await booked()).toEqual([PAID, PAID]);
  await advance('2028-01-10T00:00:00Z');
  expect(await booked()).toEqual([PAID, PAID, PAID]);
  expect(await events()).toEqual([
    'subscription.paused',
    'subscription.active',
    'intent.failed',
    'intent.success',
    'subscription.cycle_charged',
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.ended',
  ]);
});

test('a charge that the gateway has not received is made with the new payment method when the payer replaces it [D-33]', async ({
  env,
}) => {
  const { ref, order, heal, advance, booked, events } = await undecidedIn(env);
  const { paymentMethodId: replaced } = await env.state(ref);
  await order(newMethodCommand(await env.token('5555555555554444')));
  await heal();
  await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
  const { status, paymentMethodId } = await env.state(ref);
  expect(status).toBe('ACTIVE');
  expect(paymentMethodId).not.toBe(replaced);
  expect((await env.book(ref)).map(({ reference }) => reference.paymentMethodId)).toEqual([
    replaced,
    paymentMethodId,
  ]);
  await advance('2028-01-10T00:00:00Z');
  expect(await booked()).toEqual([PAID, PAID, PAID]);
  expect(await events()).toEqual([
    'intent.failed',
    'intent.success',
    'subscription.cycle_charged',
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.ended',
  ]);
});

import { eventually } from '../support/eventually.ts';
import { describe, expect } from 'vitest';
import type { IntentRef } from '../../domain/payment-intent.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { onDevServer } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const test = onDevServer;

test.afterEach(async ({ env }) => {
  await env.control('DELETE', '/control/faults');
});

const fault = (env: TestEnvironment, what: object) =>
  env.control('POST', '/control/faults', { operation: 'charge', count: 1, match: {}, ...what });

const direct = (ref: IntentRef) => ({ ...ref, token: null });
const handleOf = (env: TestEnvironment, ref: IntentRef) =>
  env.client.workflow.getHandle(orderWorkflowId('payment', ref.intentId));

const PAID_ONCE = ['intent.created CREATED', 'intent.success SUCCESS'];

async function expectPaidOnce(
  payments: Payments,
  ref: IntentRef,
  book = ['succeeded 5000 x1'],
): Promise<void> {
  expect(await payments.book(ref)).toEqual(book);
  expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
  expect(await payments.intent(ref)).toMatchObject({ status: 'SUCCESS', errorCode: null });
  expect(await payments.story(ref.intentId)).toEqual(PAID_ONCE);
}

describe('concurrent requests', () => {
  test('lead to one charge and one answer when 100 ask for the same charge [D-36, D-40]', async ({
    payments,
  }) => {
    const ref = await payments.tokenised();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () => payments.pay(direct(ref))),
    );
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['succeeded']));
    await expectPaidOnce(payments, ref);
  });

  test('charge exactly one card, once, when 100 requests pay one hosted page with ten cards [D-40]', async ({
    payments,
  }) => {
    const ref = await payments.payment('hosted');
    const cards = await Promise.all(Array.from({ length: 10 }, () => payments.card()));
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const token = cards[index % 10] ?? null;
        const outcome = await payments.pay({ ...ref, token });
        return { token, outcome };
      }),
    );
    const successful = outcomes.filter(({ outcome }) => outcome.kind === 'succeeded');
    expect(new Set(successful.map(({ token }) => token)).size).toBe(1);
    expect(successful).toHaveLength(10);
    const others = outcomes.filter(({ outcome }) => outcome.kind !== 'succeeded');
    expect(new Set(others.map(({ outcome }) => outcome.kind))).toEqual(new Set(['refused']));
    await expectPaidOnce(payments, ref);
  });

  test('make one charge when ten activities of one attempt run without a workflow [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    await fault(env, { fault: 'delay', delayMs: 300, count: 10 });
    const input = { ...direct(ref), nowAt: Date.now() };
    // Each call is repeated while it is pending, as a workflow repeats it.
    const settled = async () => {
      let outcome = await env.activities.chargePayment(input);
      while (outcome.kind === 'pending') outcome = await env.activities.chargePayment(input);
      return outcome.kind;
    };
    const outcomes = await Promise.all(Array.from({ length: 10 }, settled));
    expect(new Set(outcomes)).toEqual(new Set(['succeeded']));
    const [line] = await payments.book(ref);
    expect(line).toMatch(/^succeeded 5000 x\d+$/);
    await expectPaidOnce(payments, ref, [String(line)]);
  });
});

describe('a lost answer of the gateway', () => {
  test.for([
    ['the gateway charged and the connection broke', { fault: 'lose_answer' }],
    ['the gateway answered 500 and did not charge', { fault: 'error_500', effect: 'none' }],
  ] as const)('leads to one charge when %s [D-40]', async ([, what], { env, payments }) => {
    const ref = await payments.tokenised();
    await fault(env, what);
    expect(await payments.pay(direct(ref))).toEqual({ kind: 'succeeded' });
    await expectPaidOnce(payments, ref);
  });

  test('leaves the card token usable when the answer to its redemption was lost [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.payment('hosted');
    await fault(env, { operation: 'methods', fault: 'lose_answer' });
    const order = { ...ref, token: await payments.card() };
    expect(await payments.pay(order)).toEqual({ kind: 'succeeded' });
    await expectPaidOnce(payments, ref);
    expect(await payments.methodsOf((await payments.intent(ref)).customerId)).toHaveLength(1);
  });
});

describe('an unknown outcome', () => {
  test('blocks other cards until the gateway reports the success, which is recorded once [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.payment('hosted');
    await fault(env, { fault: 'lose_answer' });
    await fault(env, { operation: 'lookup', fault: 'error_500', count: 1_000 });
    const order = { ...ref, token: await payments.card() };
    const paying = payments.pay(order);
    await expect.poll(() => payments.attempts(ref)).toEqual(['1 UNKNOWN']);
    expect(await payments.intent(ref)).toMatchObject({ status: 'PENDING' });
    const other = { ...ref, token: await payments.card() };
    expect(await payments.pay(other)).toEqual({
      kind: 'refused',
      code: 'payment_outcome_pending',
      message: 'The outcome of another try is not known yet.',
    });
    // A request to cancel the workflow does not lose the charge that was sent.
    await handleOf(env, ref).cancel();
    await env.control('DELETE', '/control/faults');
    // The next look-up may be due only after the 25 s for which `pay` waits.
    await env.orders.recheck('payment', { ...ref, token: null });
    expect(await paying).toEqual({ kind: 'succeeded' });
    expect(await payments.pay(other)).toMatchObject({ code: 'operation_not_allowed' });
    await expectPaidOnce(payments, ref);
  });

  test('is resolved by the sweep when the workflow was terminated [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.payment('hosted');
    await fault(env, { fault: 'lose_answer' });
    await fault(env, { operation: 'lookup', fault: 'error_500', count: 1_000 });
    const paying = env.orders.execute('payment', { ...ref, token: await payments.card() });
    await expect.poll(() => payments.attempts(ref)).toEqual(['1 UNKNOWN']);
    // The local activity timed out after 3 s. The activity on the queue must have ended, too.
    await eventually(async () => {
      const { raw } = await handleOf(env, ref).describe();
      expect([raw.pendingActivities, raw.pendingWorkflowTask ?? null]).toEqual([[], null]);
    });
    await handleOf(env, ref).terminate('somebody clicked');
    expect(await paying).toEqual({ kind: 'pending' });
    expect(await env.sweep()).toMatchObject({ openPayments: 0 });
    await env.age('payment_intent', ref.intentId);
    expect(await env.sweep()).toMatchObject({ openPayments: 1, failed: 0 });
    expect(await env.sweep()).toMatchObject({ openPayments: 0 });
    await env.control('DELETE', '/control/faults');
    await env.orders.recheck('payment', { ...ref, token: null });
    expect(await handleOf(env, ref).result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    await expectPaidOnce(payments, ref);
  });
});

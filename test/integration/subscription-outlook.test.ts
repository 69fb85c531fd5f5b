import { Client, Connection } from '@temporalio/client';
import { describe, expect } from 'vitest';
import { subscriptionRows } from '../../db/repositories/subscriptions/transitions.ts';
import { DomainError } from '../../domain/errors.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscription-workflows.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { Shop } from '../support/shop.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** The next charges and the timeline, from workflows on a real Temporal server. */

const JAN_10 = Date.parse('2027-01-10T00:00:00Z');

/** Creates a subscription of three cycles that is ACTIVE since 10 January 2027, with one cycle paid. */
async function active(env: TestEnvironment, shop: Shop) {
  const clock = await env.createClock(JAN_10);
  const ref = await env.create({
    createdAt: JAN_10,
    testClockId: clock,
    terms: { cycleCount: 3 },
  });
  await payCheckout(env, ref);
  const { subscriptionId } = ref;
  return {
    ref,
    clock,
    subscriptionId,
    upcoming: () => shop.merchant.get<object>(`/subscription/upcoming/${subscriptionId}`),
    timeline: () => shop.merchant.get<object>(`/subscription/timeline/${subscriptionId}`),
    workflow: env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId)),
  };
}

const CHARGES = {
  data: [
    { date: Date.parse('2027-02-10T00:00:00Z'), cycleNumber: 2, amount: 1_999, currency: 'USD' },
    { date: Date.parse('2027-03-10T00:00:00Z'), cycleNumber: 3, amount: 1_999, currency: 'USD' },
  ],
};
const HISTORY = {
  data: [
    { date: JAN_10, what: 'created', why: 'the merchant asked for it', actor: 'merchant' },
    {
      date: JAN_10,
      what: 'cycle 1 paid, 19.99 USD',
      why: 'the payer paid in the checkout (attempt 1)',
      actor: 'payer',
    },
  ],
};

test('the next charges and the timeline show an edit as soon as the edit is answered [D-§7]', async ({
  env,
  shop,
}) => {
  const subscription = await active(env, shop);
  expect(await subscription.upcoming()).toEqual(CHARGES);
  expect(await subscription.timeline()).toEqual(HISTORY);
  const { subscriptionId } = subscription;
  await shop.merchant.post('/subscription/edit', { subscriptionId, newAmount: 2_500 });
  expect(await subscription.upcoming()).toEqual({
    data: CHARGES.data.map((charge) => ({ ...charge, amount: 2_500 })),
  });
  expect(await subscription.timeline()).toEqual({
    data: [
      ...HISTORY.data,
      {
        date: JAN_10,
        what: 'edited: amount 2500',
        why: 'the merchant asked for it',
        actor: 'merchant',
      },
    ],
  });
});

describe('the next charges and the timeline', () => {
  test('are answered 503 without a worker unless the subscription has ended [D-§7, D-§8]', async ({
    env,
    shop,
  }) => {
    const running = await active(env, shop);
    const ended = await active(env, shop);
    await env.advance(ended.clock, '2027-04-01T00:00:00Z');
    await ended.workflow.result();
    await env.stopWorkers();
    try {
      const read = (kind: string) =>
        shop.impatientMerchant.get(`/subscription/${kind}/${running.subscriptionId}`);
      const answers = await Promise.allSettled([read('upcoming'), read('timeline')]);
      for (const answer of answers) {
        expect(answer).toMatchObject({
          status: 'rejected',
          reason: { message: expect.stringMatching(/status 503$/) as string },
        });
      }
      expect(await ended.upcoming()).toEqual({ data: [] });
      expect(await ended.timeline()).toEqual({
        data: [
          ...HISTORY.data,
          ...['2027-02-10', '2027-03-10'].map((day, at) => ({
            date: Date.parse(`${day}T00:00:00Z`),
            what: `cycle ${at + 2} paid, 19.99 USD`,
            why: 'its date had come (attempt 1)',
            actor: 'schedule',
          })),
        ],
      });
    } finally {
      await env.startWorkers();
    }
    expect(await running.upcoming()).toEqual(CHARGES);
  });
});

test('the next charges and the timeline come from the row when there is no workflow [D-§7]', async ({
  env,
  shop,
}) => {
  const ref = await env.createRowOnly({ createdAt: JAN_10 });
  const { subscriptionId } = ref;
  expect(await env.workflows.timeline(ref)).toBeNull();
  expect(await env.workflows.upcoming(ref, 12, JAN_10)).toBeNull();
  expect(await shop.merchant.get(`/subscription/timeline/${subscriptionId}`)).toEqual({
    data: HISTORY.data.slice(0, 1),
  });
  expect(await shop.merchant.get(`/subscription/upcoming/${subscriptionId}`)).toEqual({ data: [] });
});

test.for([
  ['refuses connections', '127.0.0.1:1'],
  ['accepts connections and never answers', null],
] as const)(
  'the next charges and the timeline are service_unavailable when Temporal %s [D-§8]',
  async ([, address], { env, shop, silentAddress }) => {
    const subscription = await active(env, shop);
    const connection = Connection.lazy({ address: address ?? silentAddress });
    const away = createSubscriptionWorkflows({
      client: new Client({ connection }),
      rows: subscriptionRows(env.db),
      taskQueuePrefix: env.taskQueuePrefix,
      logger: createLogger({ name: 'away', level: 'silent' }),
    });
    const unavailable = new DomainError('service_unavailable');
    const reads = [away.upcoming(subscription.ref, 12, JAN_10), away.timeline(subscription.ref)];
    const answers = await Promise.allSettled<unknown>(reads);
    expect(answers).toEqual(reads.map(() => ({ status: 'rejected', reason: unavailable })));
    await connection.close();
  },
);

import { eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  createSubscription,
  declineNext,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';
import { expectError } from '../../support/answers.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

/** The upcoming charges and the timeline of a subscription, over HTTP. */

const PAID = 'cycle 1 paid, 19.99 USD';
const JAN_31 = Date.UTC(2027, 0, 31, 12);

/** A subscription that is ACTIVE since noon of 31 January 2027. */
async function activeSinceJanuary(
  api: ApiEnvironment,
  changes: Record<string, unknown> = {},
): Promise<CreatedSubscription> {
  return subscriptionIn(api, 'ACTIVE', { testClockId: await createClock(api, JAN_31), ...changes });
}

const upcoming = (
  api: ApiEnvironment,
  { subscriptionId }: { subscriptionId: string },
  query = '',
) => api.call('GET', `/subscription/upcoming/${subscriptionId}${query}`);
const timeline = (
  api: ApiEnvironment,
  { subscriptionId }: { subscriptionId: string },
  query = '',
) => api.call('GET', `/subscription/timeline/${subscriptionId}${query}`);
const charges = (api: ApiEnvironment, { subscriptionId }: { subscriptionId: string }, query = '') =>
  api.call('GET', `/subscription/charges/${subscriptionId}${query}`);

const rows = ({ json }: { json: unknown }) => (json as { data: Record<string, unknown>[] }).data;
const charge = (date: number | null, cycleNumber: number, amount = 1_999) => ({
  date,
  cycleNumber,
  amount,
  currency: 'USD',
});

describe('the upcoming charges', () => {
  test('list date, cycle and amount of every remaining cycle [D-§7, D-05]', async ({ api }) => {
    const subscription = await activeSinceJanuary(api, { cycleCount: 5, upfrontAmount: 500 });
    const answer = await upcoming(api, subscription);
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        data: [
          charge(Date.UTC(2027, 1, 28, 12), 2),
          charge(Date.UTC(2027, 2, 31, 12), 3),
          charge(Date.UTC(2027, 3, 30, 12), 4),
          charge(Date.UTC(2027, 4, 31, 12), 5),
        ],
      },
    ]);
    expect(Object.keys(rows(answer)[0]!)).toEqual(['date', 'cycleNumber', 'amount', 'currency']);
  });

  test('have the time in which the charge is made if it is made after its date [D-59]', async ({
    api,
  }) => {
    const jittered = await activeSinceJanuary(api, { cycleCount: 3 });
    const { subscriptionId: id } = jittered;
    const february = Date.UTC(2027, 1, 28, 12);
    const delayed = { jitterMs: 90_000, jitterFor: february };
    await api.db
      .update(subscriptions)
      .set({ state: sql`state::jsonb || ${sql.param(delayed)}::jsonb` })
      .where(eq(subscriptions.id, id));
    expect(rows(await upcoming(api, jittered))).toEqual([
      { ...charge(february, 2), chargeFrom: february, chargeUntil: february + 90_000 },
      charge(Date.UTC(2027, 2, 31, 12), 3),
    ]);
    const { json } = await api.call('GET', `/subscription/get-subscription/${id}`);
    expect(json).toMatchObject({ nextPaymentDate: february });
  });

  test('have the events that will tell of them [D-63]', async ({ api }) => {
    const yearly = await activeSinceJanuary(api, { interval: 'YEAR', cycleCount: 3 });
    const [second, third] = [Date.UTC(2028, 0, 31, 12), Date.UTC(2029, 0, 31, 12)];
    const eventType = 'subscription.renewal_upcoming';
    // What the worker plans with the payment of the first cycle, of which one notice is given.
    const planned = { notice: eventType, dueAt: Date.UTC(2028, 0, 21, 12) };
    const notices = { chargeAt: second, amountMinor: 1_999, pending: [planned] };
    await api.db
      .update(subscriptions)
      .set({ state: sql`state::jsonb || ${sql.param({ notices })}::jsonb` })
      .where(eq(subscriptions.id, yearly.subscriptionId));
    expect(rows(await upcoming(api, yearly))).toEqual([
      { ...charge(second, 2), notices: [{ eventType, date: Date.UTC(2028, 0, 21, 12) }] },
      {
        ...charge(third, 3),
        notices: [
          { eventType, date: Date.UTC(2028, 11, 22, 12) },
          { eventType, date: Date.UTC(2029, 0, 21, 12) },
        ],
      },
    ]);
  });

  test('are 12 by default, or as many as the limit says, up to 100 [D-§7]', async ({ api }) => {
    const subscription = await activeSinceJanuary(api, { cycleCount: 300 });
    const lengths = [];
    for (const query of ['', '?limit=1', '?limit=100']) {
      lengths.push(rows(await upcoming(api, subscription, query)).length);
    }
    expect(lengths).toEqual([12, 1, 100]);
  });

  test.for(['0', '101', '-1', '1.5', '1e1', '', 'ten', '007', '5&limit=6'])(
    'cannot be read with limit=%s [D-§7, D-10]',
    async (limit, { api }) => {
      const answer = await upcoming(api, await createSubscription(api), `?limit=${limit}`);
      expectError(answer, 400, 'bad_request', 'limit: must be an integer from 1 to 100');
    },
  );

  test('start at the end of a trial [D-§7]', async ({ api }) => {
    const subscription = await subscriptionIn(api, 'TRIALING');
    const read = await api.call(
      'GET',
      `/subscription/get-subscription/${subscription.subscriptionId}`,
    );
    const { nextPaymentDate } = read.json as { nextPaymentDate: number };
    expect(rows(await upcoming(api, subscription, '?limit=1'))).toEqual([
      charge(nextPaymentDate, 1),
    ]);
  });

  test('start with the next retry of an owed cycle, at the owed amount [D-§7, D-15]', async ({
    api,
  }) => {
    const subscription = await activeSinceJanuary(api);
    await declineNext(api, subscription, 'card_declined');
    const body = { subscriptionId: subscription.subscriptionId, newAmount: 2_500 };
    await api.call('POST', '/subscription/edit', { body });
    expect(rows(await upcoming(api, subscription, '?limit=2'))).toEqual([
      charge(Date.UTC(2027, 1, 28, 16), 2),
      charge(Date.UTC(2027, 2, 31, 12), 3, 2_500),
    ]);
  });

  test('have no date for an owed cycle without a planned retry [D-§7, D-30]', async ({ api }) => {
    const subscription = await activeSinceJanuary(api);
    await declineNext(api, subscription, 'stolen_card');
    expect(rows(await upcoming(api, subscription, '?limit=1'))).toEqual([charge(null, 2)]);
  });

  test.for(['CREATED', 'PAUSED', 'ENDED'] as const)(
    'are empty while the subscription is %s [D-§7]',
    async (status, { api }) => {
      const answer = await upcoming(api, await subscriptionIn(api, status));
      expect([answer.status, answer.text]).toEqual([200, '{"data":[]}']);
    },
  );
});

describe('the timeline of a subscription', () => {
  test('shows the actor of each entry [D-34]', async ({ api }) => {
    const entries = rows(await timeline(api, await subscriptionIn(api, 'ENDED')));
    expect(entries.map(({ actor }) => actor)).toEqual(['merchant', 'payer', 'merchant']);
  });

  test('lists every change with date and reason, oldest first [D-§7]', async ({ api }) => {
    const subscription = await activeSinceJanuary(api);
    await declineNext(api, subscription, 'card_declined');
    const answer = await timeline(api, subscription);
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        data: [
          {
            date: JAN_31,
            what: 'created',
            why: 'the merchant asked for it',
            status: 'CREATED',
            actor: 'merchant',
          },
          {
            date: JAN_31,
            what: PAID,
            why: 'the payer gave a card in the checkout (attempt 1)',
            status: 'ACTIVE',
            actor: 'payer',
          },
          {
            date: Date.UTC(2027, 1, 28, 12),
            what: 'cycle 2 declined (card_declined)',
            why: 'its date had come (attempt 1)',
            status: 'UNPAID',
            actor: 'schedule',
          },
        ],
        metadata: {},
      },
    ]);
  });
});

describe.each([
  { name: 'upcoming', get: upcoming, count: 11 },
  { name: 'timeline', get: timeline, count: 2 },
  { name: 'charges', get: charges, count: 1 },
])('GET /subscription/$name/{subscriptionId}', ({ get, count }) => {
  test('reads the row and makes no call to Temporal [D-§7, D-§8]', async ({ api }) => {
    const subscription = await subscriptionIn(api, 'ACTIVE');
    const before = api.workflows.calls.length;
    api.workflows.faults.isDown = true;
    const answer = await get(api, subscription);
    api.workflows.faults.isDown = false;
    expect(answer.status).toBe(200);
    expect(rows(answer)).toHaveLength(count);
    expect(api.workflows.calls).toHaveLength(before);
  });
});

describe.each([
  { name: 'timeline', get: timeline, rest: 'cycle 2 declined (card_declined)' },
  { name: 'charges', get: charges, rest: 'FAILED' },
])('the pages of GET /subscription/$name', ({ get, rest }) => {
  test('end without an offset, and another offset or limit is refused [D-57, D-10]', async ({
    api,
  }) => {
    const subscription = await activeSinceJanuary(api);
    await declineNext(api, subscription, 'card_declined');
    const all = rows(await get(api, subscription));
    const limit = all.length - 1;
    const first = await get(api, subscription, `?limit=${limit}`);
    const { offset } = (first.json as { metadata: { offset: string } }).metadata;
    const last = await get(api, subscription, `?limit=${limit}&offset=${offset}`);
    expect([...rows(first), ...rows(last)]).toEqual(all);
    expect(Object.values(all.at(-1) ?? {})).toContain(rest);
    expect(last.json).toMatchObject({ metadata: {} });
    const behind = await get(api, subscription, '?offset=1000');
    expect(behind.json).toEqual({ data: [], metadata: {} });
    const refused = Object.entries({
      '?limit=0': 'limit: must be an integer from 1 to 100',
      '?limit=101': 'limit: must be an integer from 1 to 100',
      '?offset=0': 'offset: must be an integer from 1 to 999999999',
      '?offset=x': 'offset: must be an integer from 1 to 999999999',
      '?startTime=1': 'startTime: is not a parameter of this request',
    });
    for (const [query, message] of refused) {
      expectError(await get(api, subscription, query), 400, 'bad_request', message);
    }
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import {
  comparable,
  createSubscription,
  declineNext,
  subscriptionIn,
} from './subscription-fixtures.ts';
import type { CreatedSubscription } from './subscription-fixtures.ts';

/** The upcoming charges and the timeline of a subscription, over HTTP. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const PAID = 'cycle 1 paid, 19.99 USD';
const JAN_31 = Date.UTC(2027, 0, 31, 12);

async function onClock(now: number): Promise<string> {
  const clock = await world.call('POST', '/test-clock/create', { body: { now } });
  return (clock.json as { testClockId: string }).testClockId;
}

/** A subscription that is ACTIVE since noon of 31 January 2027. */
async function activeSinceJanuary(
  changes: Record<string, unknown> = {},
): Promise<CreatedSubscription> {
  return subscriptionIn(world, 'ACTIVE', { testClockId: await onClock(JAN_31), ...changes });
}

const upcoming = ({ subscriptionId }: { subscriptionId: string }, query = '') =>
  world.call('GET', `/subscription/upcoming/${subscriptionId}${query}`);
const timeline = ({ subscriptionId }: { subscriptionId: string }) =>
  world.call('GET', `/subscription/timeline/${subscriptionId}`);

const rows = ({ json }: { json: unknown }) => (json as { data: Record<string, unknown>[] }).data;
const charge = (date: number | null, cycleNumber: number, amount = 1_999) => ({
  date,
  cycleNumber,
  amount,
  currency: 'USD',
});

describe('the upcoming charges', () => {
  test('list date, cycle and amount of every remaining cycle [D-§7, D-05]', async () => {
    const subscription = await activeSinceJanuary({ cycleCount: 5, upfrontAmount: 500 });
    const answer = await upcoming(subscription);
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

  test('are 12 by default, or as many as the limit says, up to 100 [D-§7]', async () => {
    const subscription = await activeSinceJanuary({ cycleCount: 300 });
    const lengths = [];
    for (const query of ['', '?limit=1', '?limit=100']) {
      lengths.push(rows(await upcoming(subscription, query)).length);
    }
    expect(lengths).toEqual([12, 1, 100]);
  });

  test.each(['0', '101', '-1', '1.5', '1e1', '', 'ten', '007', '5&limit=6'])(
    'are refused with limit=%s [D-§7, D-10]',
    async (limit) => {
      const answer = await upcoming(await createSubscription(world), `?limit=${limit}`);
      expect([answer.status, answer.json]).toEqual([
        400,
        {
          errorCode: 'bad_request',
          errorDescription: 'limit: must be an integer from 1 to 100',
        },
      ]);
    },
  );

  test('start with the end of a trial [D-§7]', async () => {
    const subscription = await subscriptionIn(world, 'TRIALING');
    const read = await world.call(
      'GET',
      `/subscription/get-subscription/${subscription.subscriptionId}`,
    );
    const { nextPaymentDate } = read.json as { nextPaymentDate: number };
    expect(rows(await upcoming(subscription, '?limit=1'))).toEqual([charge(nextPaymentDate, 1)]);
  });

  test('start with the next retry of an owed cycle, at the owed amount [D-§7, D-15]', async () => {
    const subscription = await activeSinceJanuary();
    await declineNext(world, subscription, 'card_declined');
    const body = { subscriptionId: subscription.subscriptionId, newAmount: 2_500 };
    await world.call('POST', '/subscription/edit', { body });
    expect(rows(await upcoming(subscription, '?limit=2'))).toEqual([
      charge(Date.UTC(2027, 1, 28, 16), 2),
      charge(Date.UTC(2027, 2, 31, 12), 3, 2_500),
    ]);
  });

  test('have no date for an owed cycle without a planned retry [D-§7, D-30]', async () => {
    const subscription = await activeSinceJanuary();
    await declineNext(world, subscription, 'stolen_card');
    expect(rows(await upcoming(subscription, '?limit=1'))).toEqual([charge(null, 2)]);
  });

  test('all follow an edited date and interval [IF-4.6, D-15]', async () => {
    const subscription = await activeSinceJanuary({ cycleCount: 4 });
    const date = Date.UTC(2027, 2, 1, 8);
    const { subscriptionId } = subscription;
    const body = {
      subscriptionId,
      interval: 'WEEK',
      intervalCount: 2,
      newNextPaymentDate: date,
      newAmount: 700,
    };
    expect((await world.call('POST', '/subscription/edit', { body })).status).toBe(200);
    expect(rows(await upcoming(subscription))).toEqual([
      charge(date, 2, 700),
      charge(Date.UTC(2027, 2, 15, 8), 3, 700),
      charge(Date.UTC(2027, 2, 29, 8), 4, 700),
    ]);
  });

  test.each(['CREATED', 'PAUSED', 'ENDED'] as const)(
    'are empty while the subscription is %s [D-§7]',
    async (status) => {
      const answer = await upcoming(await subscriptionIn(world, status));
      expect([answer.status, answer.text]).toEqual([200, '{"data":[]}']);
    },
  );
});

describe('the timeline', () => {
  test('lists every change with date and reason, oldest first [D-§7]', async () => {
    const subscription = await activeSinceJanuary();
    await declineNext(world, subscription, 'card_declined');
    const answer = await timeline(subscription);
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        data: [
          { date: JAN_31, what: 'created', why: 'the merchant asked for it' },
          {
            date: JAN_31,
            what: PAID,
            why: 'the payer paid in the checkout (attempt 1)',
          },
          {
            date: Date.UTC(2027, 1, 28, 12),
            what: 'cycle 2 declined (card_declined)',
            why: 'its date had come (attempt 1)',
          },
        ],
      },
    ]);
  });
});

describe.each([
  { name: 'upcoming', get: upcoming, ofCancelled: [] },
  { name: 'timeline', get: timeline, ofCancelled: ['created', PAID, 'ended (cancelled)'] },
])('GET /subscription/$name/{subscriptionId}', ({ name, get, ofCancelled }) => {
  const queryCount = () =>
    world.workflows.calls.filter((call) => call.name.startsWith(name)).length;

  test('queries the workflow, and answers 503 when Temporal does not answer [D-§7, D-§8]', async () => {
    const subscription = await subscriptionIn(world, 'ACTIVE');
    const before = queryCount();
    expect((await get(subscription)).status).toBe(200);
    expect(queryCount()).toBe(before + 1);
    world.workflows.faults.isDown = true;
    const answer = await get(subscription);
    world.workflows.faults.isDown = false;
    expect([answer.status, answer.json]).toEqual([
      503,
      {
        errorCode: 'service_unavailable',
        errorDescription:
          'The service is not available at the moment. It is safe to repeat with the same key.',
      },
    ]);
  });

  test('reads the row of an ENDED subscription, also without Temporal [D-§7]', async () => {
    const subscription = await subscriptionIn(world, 'ENDED');
    const before = queryCount();
    world.workflows.faults.isDown = true;
    const answer = await get(subscription);
    world.workflows.faults.isDown = false;
    expect(answer.status).toBe(200);
    expect(rows(answer).map(({ what }) => what)).toEqual(ofCancelled);
    expect(queryCount()).toBe(before);
  });

  test('reads the row when Temporal has no workflow of the subscription [D-§7]', async () => {
    const subscription = await activeSinceJanuary();
    const fromWorkflow = await get(subscription);
    world.workflows.faults.isMissing = true;
    const fromRow = await get(subscription);
    world.workflows.faults.isMissing = false;
    expect([fromRow.status, fromRow.text]).toEqual([200, fromWorkflow.text]);
  });

  test('answers a foreign id exactly as an unknown one, without a query [D-21]', async () => {
    const theirs = await world.call('POST', '/subscription/create', {
      body: subscriptionBody(),
      as: world.other,
    });
    const before = queryCount();
    const foreign = await get(theirs.json as { subscriptionId: string });
    const unknown = await get({ subscriptionId: 'sub_0000000000000000000000' });
    const nonsense = await get({ subscriptionId: 'x%00y' });
    expect(comparable(foreign)).toEqual(comparable(unknown));
    expect(comparable(nonsense)).toEqual(comparable(unknown));
    expect([foreign.status, foreign.json]).toEqual([
      400,
      { errorCode: 'resource_not_found', errorDescription: 'There is no such subscription.' },
    ]);
    expect(queryCount()).toBe(before);
  });

  test('requires credentials and the GET method [IF-5, D-21]', async () => {
    const { subscriptionId } = await createSubscription(world);
    const path = `/subscription/${name}/${subscriptionId}`;
    expect((await world.call('GET', path, { as: null })).status).toBe(401);
    expect((await world.call('POST', path, { body: {} })).status).toBe(405);
  });
});

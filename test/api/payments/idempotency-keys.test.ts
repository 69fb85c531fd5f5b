import { describe, expect } from 'vitest';
import { untilAvailable } from '../../support/answers.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  UNAVAILABLE,
  intentBody,
  makeHosted,
  makePaid,
  UNKNOWN_IDS,
  outcome,
  saveCard,
  setupBody,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import { PAYMENT_LINK, paymentLinkBody } from '../../support/hosted-pages/links.ts';
import { createSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';

/** The effect of an Idempotency-Key on each route that writes, but for the commands: subscriptions/commands.test.ts. */

const IN_A_YEAR = Date.now() + 365 * 86_400_000;

interface Call {
  path: string;
  body: object;
}

interface KeyedRoute {
  route: string;
  rules: string;
  /** Prepares the records and returns a call that succeeds. */
  valid: (api: ApiEnvironment) => Promise<Call>;
  /** Returns a call that is refused because of the stored records: their state, or an unknown id. */
  refused: (api: ApiEnvironment) => Promise<Call>;
  /** The rows that one success adds to each table, without the row of the idempotency key. */
  rows: Record<string, number>;
  /** The simulated part of Temporal that the route needs. Null: the route succeeds without Temporal. */
  needs: 'orders' | 'workflows' | null;
  /** The number of charges and refunds that one success makes. */
  moves: number;
}

const TOKENISED = '/payments/charge-tokenised-pm';
const ONE_TIME = '/subscription/merchant/one-time-charge';
const oneTime = (subscriptionId: string): Call => ({
  path: ONE_TIME,
  body: { subscriptionId, amount: 700, currency: 'USD' },
});
const cancel = (id: string): Call => ({ path: `/payments/cancel/${id}`, body: { xIntentId: id } });
const refund = (xIntentId: string): Call => ({
  path: '/payments/merchant/refund',
  body: { xIntentId, amount: 900 },
});

async function firstIntentOf(api: ApiEnvironment): Promise<string> {
  const { subscriptionId } = await createSubscription(api);
  const list = await api.call('GET', '/payments?limit=1');
  const [intent] = (list.json as { data: { xIntentId: string; subscriptionId: string }[] }).data;
  expect(intent!.subscriptionId).toBe(subscriptionId);
  return intent!.xIntentId;
}

/** A route that writes rows only, and refuses an unknown customer. */
function rowsOnly(
  path: string,
  rules: string,
  bodyOf: (changes: Record<string, unknown>) => object,
  rows: Record<string, number>,
): KeyedRoute {
  return {
    route: path,
    rules,
    valid: async () => ({ path, body: bodyOf({}) }),
    refused: async () => ({ path, body: bodyOf({ customerId: UNKNOWN_IDS.customer }) }),
    rows,
    needs: null,
    moves: 0,
  };
}

const ROUTES: KeyedRoute[] = [
  {
    route: ONE_TIME,
    rules: 'IF-4.10, D-35',
    valid: async (api) => oneTime((await subscriptionIn(api, 'ACTIVE')).subscriptionId),
    refused: async (api) => oneTime((await createSubscription(api)).subscriptionId),
    rows: { feed_entry: 2, outbox_event: 2, payment_attempt: 1, payment_intent: 1 },
    needs: 'orders',
    moves: 1,
  },
  {
    route: TOKENISED,
    rules: 'IF-4.12, D-36',
    valid: async (api) => ({ path: TOKENISED, body: tokenisedBody(await saveCard(api)) }),
    refused: async (api) => ({
      path: TOKENISED,
      body: tokenisedBody(await saveCard(api), { pmId: UNKNOWN_IDS.method }),
    }),
    rows: {
      event_stream: 1,
      feed_entry: 2,
      outbox_event: 2,
      payment_attempt: 1,
      payment_intent: 1,
    },
    needs: 'orders',
    moves: 1,
  },
  {
    route: '/payments/merchant/refund',
    rules: 'D-§7',
    valid: async (api) => refund(await makePaid(api)),
    refused: async (api) => refund((await makeHosted(api)).xIntentId),
    rows: { feed_entry: 1, outbox_event: 1, refund: 1 },
    needs: 'orders',
    moves: 1,
  },
  {
    route: '/payments/cancel/{a hosted payment}',
    rules: 'IF-4.11, D-41',
    valid: async (api) => cancel((await makeHosted(api)).xIntentId),
    refused: async (api) => cancel(await makePaid(api)),
    rows: {},
    needs: null,
    moves: 0,
  },
  {
    route: '/payments/cancel/{the first payment of a subscription}',
    rules: 'IF-4.11, D-41',
    valid: async (api) => cancel(await firstIntentOf(api)),
    refused: async (api) => {
      const intentId = await firstIntentOf(api);
      await api.call('POST', `/payments/cancel/${intentId}`);
      return cancel(intentId);
    },
    rows: { feed_entry: 1, outbox_event: 1, subscription_command: 1, subscription_entry: 1 },
    needs: 'workflows',
    moves: 0,
  },
  rowsOnly('/payments/create-intent', 'D-§7', intentBody, {
    checkout_session: 1,
    customer: 1,
    event_stream: 1,
    feed_entry: 1,
    outbox_event: 1,
    payment_intent: 1,
  }),
  rowsOnly('/subscription/create', 'IF-4.3', subscriptionBody, {
    checkout_session: 1,
    customer: 1,
    event_stream: 1,
    feed_entry: 1,
    outbox_event: 2,
    payment_intent: 1,
    subscription: 1,
    subscription_entry: 1,
  }),
  rowsOnly(
    '/subscription/link/merchant/generate-link',
    'IF-4.4',
    (changes) => ({ ...subscriptionBody(changes), expiryDate: IN_A_YEAR }),
    { subscription_link: 1 },
  ),
  rowsOnly(
    PAYMENT_LINK,
    'D-§7',
    (changes) => paymentLinkBody({ expiryDate: IN_A_YEAR, ...changes }),
    { subscription_link: 1 },
  ),
  rowsOnly('/setup-method/create', 'IF-4.13', setupBody, {
    checkout_session: 1,
    customer: 1,
    setup_method: 1,
  }),
];

const moved = (api: ApiEnvironment): number =>
  api.orders.charges.length + api.orders.refunds.length;

function plus(counts: Record<string, number>, more: Record<string, number>) {
  const sums = { ...counts };
  for (const [table, n] of Object.entries(more)) sums[table] = (sums[table] ?? 0) + n;
  return sums;
}

const send = (api: ApiEnvironment, { path, body }: Call, key: string, changes: object = {}) =>
  api.call('POST', path, {
    body: { ...body, ...changes },
    key: `${path}:${key}`.replaceAll('/', ':'),
  });

describe.each(ROUTES)('POST $route', ({ rules, valid, refused, rows, moves }) => {
  test(`repeated with the same key returns the same bytes and has no further effect [${rules}, D-17]`, async ({
    api,
  }) => {
    const call = await valid(api);
    const before = [await api.countRows(), moved(api)] as const;
    const first = await send(api, call, 'twice');
    expect(first.status).toBe(200);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(await api.countRows()).toEqual(plus(before[0], { ...rows, idempotency_key: 1 }));
    expect(moved(api)).toBe(before[1] + moves);

    const second = await send(api, call, 'twice');
    expect([second.status, second.text]).toEqual([200, first.text]);
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(await api.countRows()).toEqual(plus(before[0], { ...rows, idempotency_key: 1 }));
    expect(moved(api)).toBe(before[1] + moves);
  });

  test(`replays the stored refusal for a repeated key [${rules}, D-17]`, async ({ api }) => {
    const call = await refused(api);
    const before = moved(api);
    const first = await send(api, call, 'refused');
    const second = await send(api, call, 'refused');
    expect(first.status).toBe(400);
    expect([second.status, second.text]).toEqual([400, first.text]);
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(moved(api)).toBe(before);
  });

  test(`refuses the same key with another body [${rules}, D-17]`, async ({ api }) => {
    const call = await valid(api);
    expect((await send(api, call, 'other')).status).toBe(200);
    const before = moved(api);
    expect(outcome(await send(api, call, 'other', { note: 'another' }))).toEqual([
      422,
      {
        errorCode: 'idempotency_key_reused',
        errorDescription: 'This Idempotency-Key was used before with a different request.',
      },
    ]);
    expect(moved(api)).toBe(before);
  });

  test(`has one effect and one successful answer in 30 parallel calls with one key [${rules}, D-17]`, async ({
    api,
  }) => {
    const call = await valid(api);
    const before = [await api.countRows(), moved(api)] as const;
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => untilAvailable(() => send(api, call, 'race'))),
    );
    const done = answers.filter(({ status }) => status === 200);
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true);
    expect(done.filter(({ headers }) => headers['idempotent-replayed'] !== 'true')).toHaveLength(1);
    // A call that was answered 409 while another call did the work gets the stored answer later.
    const last = await send(api, call, 'race');
    expect(new Set([...done, last].map(({ text }) => text)).size).toBe(1);
    expect(await api.countRows()).toEqual(plus(before[0], { ...rows, idempotency_key: 1 }));
    expect(moved(api)).toBe(before[1] + moves);
  });
});

describe.each(ROUTES.filter(({ needs }) => needs !== null))(
  'POST $route without Temporal',
  ({ rules, valid, rows, needs, moves }) => {
    test(`answers 503, and a later repeat has one effect [${rules}, D-17]`, async ({ api }) => {
      const call = await valid(api);
      const before = [await api.countRows(), moved(api)] as const;
      api[needs!].faults.isDown = true;
      expect(outcome(await send(api, call, 'away'))).toEqual(UNAVAILABLE);
      expect(outcome(await send(api, call, 'away'))).toEqual(UNAVAILABLE);
      expect(moved(api)).toBe(before[1]);
      api[needs!].faults.isDown = false;

      const back = await send(api, call, 'away');
      expect(back.status).toBe(200);
      expect(back.headers['idempotent-replayed']).toBeUndefined();
      expect((await send(api, call, 'away')).text).toBe(back.text);
      expect(await api.countRows()).toEqual(plus(before[0], { ...rows, idempotency_key: 1 }));
      expect(moved(api)).toBe(before[1] + moves);
    });
  },
);

describe.each(ROUTES.filter(({ needs }) => needs === null))(
  'POST $route without Temporal',
  ({ rules, valid }) => {
    test(`succeeds [${rules}]`, async ({ api }) => {
      const call = await valid(api);
      api.orders.faults.isDown = true;
      api.workflows.faults.isDown = true;
      expect((await send(api, call, 'away')).status).toBe(200);
    });
  },
);

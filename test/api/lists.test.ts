import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { intentBody } from './payment-fixtures.ts';

/** GET /customer, GET /subscription and GET /payments. */

let world: ApiWorld;

/** Ids of each list in the order of creation, oldest first. */
const ids = {} as Record<string, string[]>;

const START = Date.UTC(2026, 5, 1);
const MADE = 7;

interface List {
  path: string;
  idField: string;
  create: string;
  body: object;
  read: (id: string) => string;
  table: string;
}

const LISTS: List[] = [
  {
    path: '/customer',
    idField: 'customerId',
    create: '/customer/create',
    body: { customerDetails: { name: 'Ada' } },
    read: (id) => `/customer/${id}`,
    table: 'customer',
  },
  {
    path: '/subscription',
    idField: 'subscriptionId',
    create: '/subscription/create',
    // A subscription with a trial creates no intent yet.
    body: subscriptionBody({ trialPeriodCount: 7, trialPeriodInterval: 'DAY' }),
    read: (id) => `/subscription/get-subscription/${id}`,
    table: 'subscription',
  },
  {
    path: '/payments',
    idField: 'xIntentId',
    create: '/payments/create-intent',
    body: intentBody(),
    read: (id) => `/payments/v2/get-intent/${id}`,
    table: 'payment_intent',
  },
];

beforeAll(async () => {
  world = await createApiWorld();
  for (const list of LISTS) {
    const made: string[] = [];
    const customerId = ids['/customer']?.[0];
    for (let n = 0; n < MADE; n += 1) {
      const body = { ...list.body, ...(customerId === undefined ? {} : { customerId }) };
      const answer = await world.call('POST', list.create, { body });
      expect(answer.status).toBe(200);
      const id = (answer.json as Record<string, string>)[list.idField]!;
      // Two records of each list have the same instant. Their ids decide the order.
      const at = new Date(START + Math.min(n, MADE - 2) * 1_000).toISOString();
      await world.db.execute(`update ${list.table} set created_at = '${at}' where id = '${id}'`);
      made.push(id);
    }
    ids[list.path] = [...made.slice(0, -2), ...made.slice(-2).toSorted()];
  }
  // A record of another merchant lies between ours in time.
  const customer: { customerId?: string } = {};
  for (const { create, body, table } of LISTS) {
    const made = await world.call('POST', create, {
      body: { ...body, ...customer },
      as: world.other,
    });
    customer.customerId ??= (made.json as { customerId: string }).customerId;
    const at = new Date(START + 1_500).toISOString();
    await world.db.execute(
      `update ${table} set created_at = '${at}' where merchant_id = '${world.other.merchantId}'`,
    );
  }
});
afterAll(() => world.close());

interface Page {
  data: Record<string, unknown>[];
  metadata: { offset?: string };
}

describe.each(LISTS)('GET $path', ({ path, idField, read, create, body, table }) => {
  const get = async (query: string): Promise<Page> => {
    const answer = await world.call('GET', `${path}${query}`);
    expect(answer.status).toBe(200);
    return answer.json as Page;
  };
  const idsOf = ({ data }: Page) => data.map((record) => record[idField]);
  const newest = () => ids[path]!.toReversed();

  test('lists every record, newest first, as it is read, without an offset at the end [D-§7]', async () => {
    const page = await get('');
    expect(idsOf(page)).toEqual(newest());
    expect(page.metadata).toEqual({});
    for (const record of page.data) {
      const one = (await world.call('GET', read(String(record[idField])))).json;
      // Every answer has a new update link.
      expect({ ...record, updatePaymentMethodLink: null }).toEqual({
        ...(one as object),
        updatePaymentMethodLink: null,
      });
    }
  });

  test.each([1, 2, 3, 7])(
    'lists every record once and in order over pages of %i [D-§7]',
    async (limit) => {
      const seen: unknown[] = [];
      const sizes: number[] = [];
      let offset: string | undefined;
      do {
        const page = await get(`?limit=${limit}${offset === undefined ? '' : `&offset=${offset}`}`);
        seen.push(...idsOf(page));
        sizes.push(page.data.length);
        offset = page.metadata.offset;
      } while (offset !== undefined);
      expect(seen).toEqual(newest());
      expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
      expect(sizes).toHaveLength(Math.ceil(MADE / limit));
    },
  );

  test('lists later pages unchanged when a record is created meanwhile [D-§7]', async () => {
    const first = await get('?limit=3');
    const made = await world.call('POST', create, { body });
    const id = (made.json as Record<string, string>)[idField]!;
    const second = await get(`?limit=4&offset=${first.metadata.offset}`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(newest());
    // The new record becomes the oldest, as the other tests expect.
    await world.db.execute(`update ${table} set created_at = '2020-01-01' where id = '${id}'`);
    const early = await get(`?endTime=${START}`);
    expect(idsOf(early)).toEqual([id]);
    ids[path]!.unshift(id);
  });

  test('lists the records from startTime on and before endTime [D-§7]', async () => {
    const [, first, second, third] = ids[path]!.slice(-MADE);
    const times = (from: number, to: number) => `?startTime=${START + from}&endTime=${START + to}`;
    expect(idsOf(await get(times(1_000, 4_000)))).toEqual([third, second, first]);
    expect(idsOf(await get(times(1_001, 3_000)))).toEqual([second]);
    expect(idsOf(await get(times(3_000, 3_000)))).toEqual([]);
    const page = await get(`${times(1_000, 4_000)}&limit=2`);
    expect(idsOf(page)).toEqual([third, second]);
    const rest = await get(`${times(1_000, 4_000)}&limit=2&offset=${page.metadata.offset}`);
    expect([idsOf(rest), rest.metadata]).toEqual([[first], {}]);
  });

  test('lists no record of another merchant, also with that merchant’s offset [D-21]', async () => {
    const theirs = await world.call('GET', path, { as: world.other });
    const page = theirs.json as Page;
    expect(idsOf(page)).toHaveLength(1);
    expect(newest()).not.toContain(idsOf(page)[0]);
    const { offset } = (await get('?limit=2')).metadata;
    const crossed = await world.call('GET', `${path}?offset=${offset}`, { as: world.other });
    expect(idsOf(crossed.json as Page)).toEqual(idsOf(page));
  });

  test('is refused with an offset of another list or of no list [D-§7, D-10]', async () => {
    const elsewhere = LISTS.find((list) => list.path !== path)!;
    const other = await world.call('GET', `${elsewhere.path}?limit=1`);
    const { offset } = (other.json as Page).metadata;
    const forged = Buffer.from(`${START} ${newest()[0]!} `).toString('base64url');
    for (const wrong of [offset!, '', '0', '50', forged, 'a'.repeat(255), '%00']) {
      const answer = await world.call('GET', `${path}?offset=${wrong}`);
      expect([answer.status, answer.json]).toEqual([
        400,
        {
          errorCode: 'bad_request',
          errorDescription:
            wrong === '%00'
              ? 'offset: must be text without NUL characters'
              : 'offset: must be metadata.offset of this list',
        },
      ]);
    }
  });

  test.each([
    ['limit=0', 'limit: must be an integer from 1 to 100'],
    ['limit=101', 'limit: must be an integer from 1 to 100'],
    ['limit=1.5', 'limit: must be an integer from 1 to 100'],
    ['limit=ten', 'limit: must be an integer from 1 to 100'],
    ['limit=5&limit=6', 'limit: must be an integer from 1 to 100'],
    ['startTime=2026-06-01', 'startTime: must be epoch milliseconds before the year 2200'],
    ['startTime=-1', 'startTime: must be epoch milliseconds before the year 2200'],
    ['endTime=7258118400000', 'endTime: must be epoch milliseconds before the year 2200'],
    ['endTime=', 'endTime: must be epoch milliseconds before the year 2200'],
    ['offset=a&offset=b', 'offset: must be a string'],
  ])('is refused with %s [D-§7, D-10]', async (query, errorDescription) => {
    const answer = await world.call('GET', `${path}?${query}`);
    expect([answer.status, answer.json]).toEqual([
      400,
      { errorCode: 'bad_request', errorDescription },
    ]);
  });

  test('is refused without credentials [IF-5]', async () => {
    expect((await world.call('GET', path, { as: null })).status).toBe(401);
  });
});

test('a list has 50 records by default, or as many as its limit says [D-§7]', async () => {
  const body = { customerDetails: {} };
  for (let n = 0; n < 60; n += 1) await world.call('POST', '/customer/create', { body });
  const sizeOf = async (query: string) =>
    ((await world.call('GET', `/customer${query}`)).json as Page).data.length;
  expect(await sizeOf('')).toBe(50);
  expect(await sizeOf('?limit=55')).toBe(55);
});

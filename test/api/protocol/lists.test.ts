import { describe, expect } from 'vitest';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody } from '../../support/fixtures/payments.ts';
import { expectError } from '../../support/answers.ts';

/** Tests the lists: GET /customer, GET /subscription and GET /payments. */

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
    // A subscription with a trial creates no intent yet, so it adds nothing to the list of payments.
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

type Ids = Record<string, string[]>;

/** Creates the records of each list. Returns the ids of the records by the list's path, oldest first. */
const test = apiTest.extend('ids', { scope: 'file' }, async ({ api }) => {
  const ids: Ids = {};
  for (const list of LISTS) {
    const made: string[] = [];
    const customerId = ids['/customer']?.[0];
    for (let n = 0; n < MADE; n += 1) {
      const body = { ...list.body, ...(customerId === undefined ? {} : { customerId }) };
      const answer = await api.call('POST', list.create, { body });
      expect(answer.status).toBe(200);
      const id = (answer.json as Record<string, string>)[list.idField]!;
      // Two records of each list have the same createdAt, so the order of these two follows their ids.
      const at = new Date(START + Math.min(n, MADE - 2) * 1_000).toISOString();
      await api.db.execute(`update ${list.table} set created_at = '${at}' where id = '${id}'`);
      made.push(id);
    }
    ids[list.path] = [...made.slice(0, -2), ...made.slice(-2).toSorted()];
  }
  // The createdAt of another merchant's record lies between those of our records.
  const customer: { customerId?: string } = {};
  for (const { create, body, table } of LISTS) {
    const made = await api.call('POST', create, {
      body: { ...body, ...customer },
      as: api.other,
    });
    customer.customerId ??= (made.json as { customerId: string }).customerId;
    const at = new Date(START + 1_500).toISOString();
    await api.db.execute(
      `update ${table} set created_at = '${at}' where merchant_id = '${api.other.merchantId}'`,
    );
  }
  return ids;
});

interface Page {
  data: Record<string, unknown>[];
  metadata: { offset?: string };
}

describe.each(LISTS)('GET $path', ({ path, idField, read, create, body, table }) => {
  const get = async (api: ApiEnvironment, query: string): Promise<Page> => {
    const answer = await api.call('GET', `${path}${query}`);
    expect(answer.status).toBe(200);
    return answer.json as Page;
  };
  const idsOf = ({ data }: Page) => data.map((record) => record[idField]);
  const newest = (ids: Ids) => ids[path]!.toReversed();

  test('lists every record as a read returns the record, newest first, without an offset on the last page [D-§7]', async ({
    api,
    ids,
  }) => {
    const page = await get(api, '');
    expect(idsOf(page)).toEqual(newest(ids));
    expect(page.metadata).toEqual({});
    for (const record of page.data) {
      const one = (await api.call('GET', read(String(record[idField])))).json;
      // The update link depends on the day, so the comparison leaves the link out.
      expect({ ...record, updatePaymentMethodLink: null }).toEqual({
        ...(one as object),
        updatePaymentMethodLink: null,
      });
    }
  });

  test.for([1, 2, 3, 7])(
    'lists every record once and in order over pages of %i [D-§7]',
    async (limit, { api, ids }) => {
      const seen: unknown[] = [];
      const sizes: number[] = [];
      let offset: string | undefined;
      do {
        const page = await get(
          api,
          `?limit=${limit}${offset === undefined ? '' : `&offset=${offset}`}`,
        );
        seen.push(...idsOf(page));
        sizes.push(page.data.length);
        offset = page.metadata.offset;
      } while (offset !== undefined);
      expect(seen).toEqual(newest(ids));
      expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
      expect(sizes).toHaveLength(Math.ceil(MADE / limit));
    },
  );

  test('lists later pages unchanged when a record is created after the read of the first page [D-§7]', async ({
    api,
    ids,
  }) => {
    const first = await get(api, '?limit=3');
    const made = await api.call('POST', create, { body });
    const id = (made.json as Record<string, string>)[idField]!;
    const second = await get(api, `?limit=4&offset=${first.metadata.offset}`);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(newest(ids));
    // The new record becomes the oldest, as the other tests expect.
    await api.db.execute(`update ${table} set created_at = '2020-01-01' where id = '${id}'`);
    const early = await get(api, `?endTime=${START}`);
    expect(idsOf(early)).toEqual([id]);
    ids[path]!.unshift(id);
  });

  test('lists the records from startTime on and before endTime [D-§7]', async ({ api, ids }) => {
    const [, first, second, third] = ids[path]!.slice(-MADE);
    const times = (from: number, to: number) => `?startTime=${START + from}&endTime=${START + to}`;
    expect(idsOf(await get(api, times(1_000, 4_000)))).toEqual([third, second, first]);
    expect(idsOf(await get(api, times(1_001, 3_000)))).toEqual([second]);
    expect(idsOf(await get(api, times(3_000, 3_000)))).toEqual([]);
    const page = await get(api, `${times(1_000, 4_000)}&limit=2`);
    expect(idsOf(page)).toEqual([third, second]);
    const rest = await get(api, `${times(1_000, 4_000)}&limit=2&offset=${page.metadata.offset}`);
    expect([idsOf(rest), rest.metadata]).toEqual([[first], {}]);
  });

  test('lists no record of another merchant, also with that merchant’s offset [D-21]', async ({
    api,
    ids,
  }) => {
    const theirs = await api.call('GET', path, { as: api.other });
    const page = theirs.json as Page;
    expect(idsOf(page)).toHaveLength(1);
    expect(newest(ids)).not.toContain(idsOf(page)[0]);
    const { offset } = (await get(api, '?limit=2')).metadata;
    const crossed = await api.call('GET', `${path}?offset=${offset}`, { as: api.other });
    expect(idsOf(crossed.json as Page)).toEqual(idsOf(page));
  });

  test('is refused with the offset of another list or an invalid offset [D-§7, D-10]', async ({
    api,
    ids,
  }) => {
    const elsewhere = LISTS.find((list) => list.path !== path)!;
    const other = await api.call('GET', `${elsewhere.path}?limit=1`);
    const { offset } = (other.json as Page).metadata;
    const forged = Buffer.from(`${START} ${newest(ids)[0]!} `).toString('base64url');
    for (const wrong of [offset!, '', '0', '50', forged, 'a'.repeat(255), '%00']) {
      const answer = await api.call('GET', `${path}?offset=${wrong}`);
      expectError(
        answer,
        400,
        'bad_request',
        wrong === '%00'
          ? 'offset: must be text without NUL characters and unpaired surrogates'
          : 'offset: must be metadata.offset of this list',
      );
    }
  });

  test.for([
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
  ])('is refused with %s [D-§7, D-10]', async ([query, errorDescription], { api }) => {
    const answer = await api.call('GET', `${path}?${query}`);
    expect([answer.status, answer.json]).toEqual([
      400,
      { errorCode: 'bad_request', errorDescription },
    ]);
  });
});

test('a list has 50 records by default, or as many as its limit says [D-§7]', async ({ api }) => {
  const body = { customerDetails: {} };
  for (let n = 0; n < 60; n += 1) await api.call('POST', '/customer/create', { body });
  const sizeOf = async (query: string) =>
    ((await api.call('GET', `/customer${query}`)).json as Page).data.length;
  expect(await sizeOf('')).toBe(50);
  expect(await sizeOf('?limit=55')).toBe(55);
});

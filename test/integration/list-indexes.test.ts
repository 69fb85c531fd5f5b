import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  listCustomers,
  listIntents,
  listPaymentMethods,
  listRefunds,
  listSubscriptions,
} from '../../db/repositories/lists.ts';
import type { ListFilters, ListQuery } from '../../db/repositories/lists.ts';
import {
  takeBehindTheirClock,
  takeHeld,
  takeNeverStarted,
  takeOverdue,
} from '../../db/repositories/sweeps/queries.ts';
import type { Db } from '../../db/client.ts';
import { newSubscription } from '../../domain/subscription/state.ts';
import { createTestDatabase } from '../support/database.ts';

/** The lists of a merchant with many records. One record, the oldest, matches each filter. */

const RECORDS = 20_000;
/** A query with an index reads far fewer rows. A query without one reads all rows. */
const ROWS_MAX = 1_000;
const QUERY = { merchantId: 'mer_1', limit: 10 };

/** The state of every subscription. No list compares it. */
const STATE = newSubscription({
  subscriptionId: 'sub_1',
  merchantId: 'mer_1',
  customerId: 'cus_1',
  terms: {
    amountMinor: 100,
    currency: 'USD',
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    upfrontAmountMinor: null,
    trial: null,
  },
  createdAt: 0,
  checkoutExpiresAt: 0,
  testClockId: null,
});

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let client: postgres.Sql;
let db: Db;
let sent: { query: string; params: unknown[] }[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  client = postgres(database.url, { max: 1, onnotice: () => undefined });
  db = drizzle({
    client,
    logger: { logQuery: (query, params) => void sent.push({ query, params }) },
  });
  await client.unsafe(`
    insert into merchant (id, name, mode, settings, created_at)
      values ('mer_1', 'Shop', 'test', '{}', now());
    create temp table numbered as
      select n, 'mer_1' as merchant_id, now() - (${RECORDS} - n) * interval '1 second' as created_at,
        json_build_object('email', format('Payer-%s@example.com', n)) as details,
        format('payer-%s@example.com', n) as normal_email
      from generate_series(1, ${RECORDS}) n;
    insert into customer (merchant_id, id, details, normal_email, created_at)
      select merchant_id, 'cus_' || n, details, normal_email, created_at from numbered;
    insert into subscription (merchant_id, id, customer_id, status, version, last_transition_id, state,
        amount_minor, currency, presentment_currency, cycle_count, cycles_charged, customer_details, normal_email,
        receipt_id, phone_number_required, created_at, updated_at, workflow_started_at)
      select merchant_id, 'sub_' || n, 'cus_' || n, 'ACTIVE', 1, 'new', '${JSON.stringify(STATE)}', 100, 'USD', 'USD', 12, 0, details, normal_email,
        'receipt-' || n, false, created_at, created_at - interval '1 day', created_at from numbered;
    insert into payment_intent (merchant_id, id, customer_id, subscription_id, amount_minor, currency,
        presentment_currency, status, receipt_id, customer_details, normal_email, created_at, succeeded_at)
      select merchant_id, 'in_' || n, 'cus_' || n, 'sub_' || n, 100, 'USD', 'USD', 'SUCCESS', 'receipt-' || n,
        details, normal_email, created_at, to_timestamp(n) from numbered;
    insert into refund (merchant_id, id, intent_id, state, amount_minor, currency, gateway_key, gateway_charge_id,
        created_at, refunded_at)
      select merchant_id, 'rf_' || n, 'in_' || n, 'SUCCEEDED', 100, 'USD', 'refund:' || n, 'ch_' || n, created_at,
        to_timestamp(n) from numbered;
    insert into payment_method (merchant_id, id, customer_id, kind, gateway, gateway_method_id, brand,
        last_four_digit, expiry_month, expiry_year, status, created_at)
      select merchant_id, 'pmt_' || n, 'cus_' || n, 'CARD', 'sandbox', 'gm_' || n, 'visa', '4242', 7, 2031, 'LIVE',
        created_at from numbered;
    analyze`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** Returns the number of rows that the scans of a plan read. */
function rowsRead(plan: Plan): number {
  const ofPlans = (plan.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), 0);
  if (!plan['Node Type'].endsWith('Scan')) return ofPlans;
  const ofLoop = plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0);
  return ofPlans + ofLoop * plan['Actual Loops'];
}

type Filters = ListFilters & Pick<ListQuery, 'sort' | 'settledUntilAt'>;

const LISTS = {
  customers: (filters: Filters) => listCustomers(db, QUERY, filters),
  subscriptions: (filters: Filters) => listSubscriptions(db, QUERY, filters),
  payments: ({ sort, settledUntilAt, ...filters }: Filters) =>
    listIntents(db, { ...QUERY, sort, settledUntilAt }, filters, Date.now()),
  refunds: ({ sort, settledUntilAt }: Filters) =>
    listRefunds(db, { ...QUERY, sort, settledUntilAt }, {}),
  methods: () => listPaymentMethods(db, QUERY, { customerId: 'cus_1' }),
};

test.for<[list: keyof typeof LISTS, filters: Filters, id: string]>([
  ['payments', { sort: 'settledAt', settledUntilAt: 2_000 }, 'in_1'],
  ['refunds', { sort: 'settledAt', settledUntilAt: 2_000 }, 'rf_1'],
  ['methods', {}, 'pmt_1'],
  ['payments', { subscriptionId: 'sub_1' }, 'in_1'],
  ['payments', { receiptId: 'receipt-1' }, 'in_1'],
  ['payments', { email: 'payer-1@example.com' }, 'in_1'],
  ['subscriptions', { receiptId: 'receipt-1' }, 'sub_1'],
  ['subscriptions', { email: 'payer-1@example.com' }, 'sub_1'],
  ['customers', { email: 'payer-1@example.com' }, 'cus_1'],
])(
  'the list of %s with the filter %o reads only the matching rows of a merchant with many records [D-§7]',
  async ([list, filters, id]) => {
    sent = [];
    const listed = await LISTS[list](filters);
    expect(listed.map((record) => record.id)).toEqual([id]);
    expect(await rowsReadBySent()).toBeLessThan(ROWS_MAX);
  },
);

test.for([
  ['never started', takeNeverStarted],
  ['overdue', takeOverdue],
  ['behind their test clock', takeBehindTheirClock],
  ['held', takeHeld],
] as const)('the sweep of subscriptions that are %s reads only these [D-34]', async ([, take]) => {
  sent = [];
  expect(await take(db, 200)).toEqual([]);
  expect(await rowsReadBySent()).toBeLessThan(ROWS_MAX);
});

/** Executes the first statement of `sent` again, and returns the number of rows that it reads. */
async function rowsReadBySent(): Promise<number> {
  const [statement] = sent;
  const [row] = await client.unsafe<{ 'QUERY PLAN': { Plan: Plan }[] }[]>(
    `explain (analyze, format json) ${statement!.query}`,
    statement!.params as string[],
  );
  return rowsRead(row!['QUERY PLAN'][0]!.Plan);
}

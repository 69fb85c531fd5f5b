import { sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { describe, expect } from 'vitest';
import { customers } from '../../../db/schema/customers.ts';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { outcome, saveCard, tokenisedBody, UNAVAILABLE } from '../../support/fixtures/payments.ts';
import { eventually } from '../../support/eventually.ts';
import { gate } from '../../support/gate.ts';
import { makeLink, openLink, rowOf, soldBy } from '../../support/hosted-pages/links.ts';
import { headingOf } from '../../support/hosted-pages/visits.ts';

/**
 * The environment `api` answers 503 to a request that has no outcome after 1.5 s. On a busy machine this may be any
 * request, so the tests repeat every request whose outcome they need.
 */
const test = apiTest.extend('apiOptions', { scope: 'file' }, { deadlineMs: [1_000, 500] });

const CHARGE = '/payments/charge-tokenised-pm';

/**
 * Sends a request whose writes to `table` wait until the request is answered. Then waits until no statement
 * runs and no transaction is open.
 */
async function answerWhileLocked(
  api: ApiEnvironment,
  table: PgTable,
  send: () => Promise<Answer>,
): Promise<Answer> {
  const [locked, unlock] = [gate(), gate()];
  const holder = api.db.transaction(async (tx) => {
    await tx.execute(sql`lock table ${table} in share row exclusive mode`);
    locked.open();
    await unlock.isOpen;
  });
  await locked.isOpen;
  const answer = await send();
  unlock.open();
  await holder;
  await expect.poll(() => countBusy(api)).toBe(0);
  return answer;
}

/** The number of connections in a statement or a transaction, without the connection of this query. */
async function countBusy({ db }: ApiEnvironment): Promise<number> {
  const [row] = await db.execute<{ n: number }>(
    sql`select count(*)::int as n from pg_stat_activity where datname = current_database()
      and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()`,
  );
  return row!.n;
}

/** Repeats a request until its outcome is known. */
async function repeat(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send();
    if (answer.status !== 503 && answer.status !== 409) return answer;
  }
}

const countedIn = async ({ db }: ApiEnvironment, table: PgTable) => db.$count(table);

describe('after the 503 at the deadline', () => {
  test('an open transaction is rolled back, so a repeat with the key does the work once [D-17, D-§8]', async ({
    api,
  }) => {
    const create = () =>
      api.call('POST', '/subscription/create', { body: subscriptionBody(), key: 'late-create' });
    const before = await api.countRows();
    expect(outcome(await answerWhileLocked(api, customers, create))).toEqual(UNAVAILABLE);
    expect(await api.countRows()).toEqual(before);
    expect(api.workflows.calls).toEqual([]);

    const created = await repeat(create);
    expect([created.status, created.headers['idempotent-replayed']]).toEqual([200, undefined]);
    expect(await countedIn(api, subscriptions)).toBe(1);
    expect(api.workflows.calls.map(({ name }) => name)).toEqual(['start']);
    const again = await repeat(create);
    expect([again.headers['idempotent-replayed'], again.text]).toEqual(['true', created.text]);
    expect(await countedIn(api, subscriptions)).toBe(1);
  });

  test('a charge is not handed over to its workflow, so a repeat with the key charges once [D-17, D-§8]', async ({
    api,
  }) => {
    const method = await eventually(() => saveCard(api));
    const before = await countedIn(api, paymentIntents);
    const charge = () =>
      api.call('POST', CHARGE, { body: tokenisedBody(method), key: 'late-charge' });
    const answer = await answerWhileLocked(api, paymentIntents, charge);
    expect(outcome(answer)).toEqual(UNAVAILABLE);
    expect(await countedIn(api, paymentIntents)).toBe(before);
    expect([api.orders.calls, api.orders.charges]).toEqual([[], []]);

    const paid = await repeat(charge);
    expect(paid.json).toMatchObject({ status: 'SUCCESS' });
    expect((await repeat(charge)).text).toBe(paid.text);
    expect(await countedIn(api, paymentIntents)).toBe(before + 1);
    expect(api.orders.charges).toHaveLength(1);
  });

  test('the form of a link is not counted as a use, so a repeat of the form is counted as one use [D-37, D-§8]', async ({
    api,
  }) => {
    const path = await eventually(() => makeLink(api));
    const { submit } = await eventually(() => openLink(api, path));
    const late = await answerWhileLocked(api, customers, submit);
    expect([late.status, headingOf(late)]).toEqual([503, 'Just a moment']);
    expect((await rowOf(api, path)).uses).toBe(0);
    expect(await soldBy(api, path)).toEqual([]);

    expect((await repeat(submit)).status).toBe(303);
    expect(await soldBy(api, path)).toHaveLength(1);
    expect(api.logLines.filter(({ msg }) => msg === 'request failed')).toEqual([]);
  });
});

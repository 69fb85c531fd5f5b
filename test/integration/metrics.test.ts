import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { readFigures, readViolations } from '../../db/repositories/sweeps/figures.ts';
import { expect, onTestFinished } from 'vitest';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { liveMetrics } from '../../runtime/metrics.ts';
import type { METRICS } from '../../runtime/metrics.ts';
import { startProbes } from '../../runtime/probes.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { scrape } from '../../tools/scripts/client/scrape.ts';
import { apiProcesses } from '../support/api-process.ts';
import { command } from '../support/command.ts';
import { onDevServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { startOurProcess } from '../support/our-process.ts';
import { dashboardExpressions, metricsIn, rules } from '../support/ops.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { metricNames, probe, total } from '../support/scrape.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Each test has its own environment, without a worker. */
const test = onDevServerWith({}, 'test').extend('workerless', async ({ env }) => {
  await env.stopWorkers();
  return env;
});

/** Starts an API process and a worker process with metrics. */
async function startBoth(env: TestEnvironment) {
  const [apiPort, workerPort] = [await freePort(), await freePort()];
  const metricsOf = (port: number) => ({ METRICS_PORT: String(port) });
  const apis = await apiProcesses({
    ...env,
    variables: { ...env.variables, ...metricsOf(apiPort) },
  });
  const api = await apis.start();
  const worker = await startOurProcess('worker.ts', {
    ...env.variables,
    ...metricsOf(workerPort),
  });
  return { api, worker, apiPort, workerPort };
}

async function paid(env: TestEnvironment): Promise<SubscriptionRef> {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  return ref;
}

/** Makes the next cycle due in 2 s of real time. */
const makeDue = (env: TestEnvironment, ref: SubscriptionRef) =>
  env.execute(ref, command('edit', { newNextPaymentAt: Date.now() + 2_000 }));

test('a renewal, a decline, a recovery and an unknown outcome move the metrics of the worker, and rows those of the API', async ({
  workerless: env,
}) => {
  const { api, worker, apiPort, workerPort } = await startBoth(env);
  const fault = (operation: string, kind: string, count: number) =>
    env.control('POST', '/control/faults', { operation, fault: kind, count, match: {} });
  const outcomes = async (...labels: string[]) =>
    total(await scrape(workerPort), 'perennial_charge_outcomes_total', ...labels);
  const rows = (name: keyof typeof METRICS, ...labels: string[]) =>
    eventually(async () => {
      const page = await scrape(apiPort);
      expect(page.get('perennial_database_up')).toBe(1);
      const value = total(page, name, ...labels);
      expect(value).toBeGreaterThan(0);
      return value;
    });

  const ref = await paid(env);
  await makeDue(env, ref);
  await expect.poll(() => outcomes('scheduled', 'succeeded')).toBe(1);
  const lateness = await scrape(workerPort);
  expect(lateness.get('perennial_renewal_lateness_seconds_count')).toBe(1);
  expect(lateness.get('perennial_renewal_lateness_seconds_sum')).toBeLessThan(60);

  await fault('charge', 'decline', 1);
  await makeDue(env, ref);
  await expect.poll(() => outcomes('insufficient_funds')).toBe(1);
  await env.execute(ref, command('manualRetry'));
  expect(await outcomes('manual_retry', 'succeeded')).toBe(1);
  const recovered = await scrape(workerPort);
  const first = 'perennial_cycles_recovered_total{retry="1",code="insufficient_funds"}';
  expect(recovered.get(first)).toBe(1);
  expect(total(recovered, 'perennial_cycles_recovered_total')).toBe(1);

  expect((await scrape(apiPort)).get('perennial_outcomes_unknown{subject="charge"}')).toBe(0);
  await fault('charge', 'error_500', 100);
  await fault('lookup', 'error_500', 100);
  await makeDue(env, ref);
  expect(await rows('perennial_outcomes_unknown', 'charge')).toBe(1);
  expect(await rows('perennial_outcomes_unknown_oldest_seconds', 'charge')).toBeLessThan(60);
  expect(await outcomes('unknown')).toBe(1);
  // The gateway may decide a charge after days. Only the time without an answer counts.
  await env.db
    .update(paymentAttempts)
    .set({ sentAt: sql`array[now() - interval '3 days']` })
    .where(eq(paymentAttempts.state, 'UNKNOWN'));
  const ages = (await readFigures(env.db)).filter(
    ({ name }) => name === 'perennial_outcomes_unknown_oldest_seconds',
  );
  expect(Math.max(...ages.map(({ value }) => value))).toBeLessThan(60);
  const requests = total(
    await scrape(workerPort),
    'perennial_gateway_request_seconds_count',
    'gateway="sandbox"',
    'operation="lookup"',
    'outcome="unknown"',
  );
  expect(requests).toBeGreaterThan(0);

  await fetch(`${api.url}/no/such/path`);
  const http = await scrape(apiPort);
  expect(total(http, 'perennial_http_request_seconds_count', 'route="none"', '"404"')).toBe(1);
  expect(http.get('perennial_pool_connections{state="size"}')).toBe(20);

  // A workflow of an unknown type fails its task, again and again.
  const [taskQueue, workflowId] = [`${env.taskQueuePrefix}billing`, randomUUID()];
  const failing = await env.client.workflow.start('unknown', { taskQueue, workflowId });
  const named = metricsIn([...rules.map(({ expr }) => expr), ...dashboardExpressions]);
  await eventually(async () => {
    const shown = [...(await metricNames(apiPort)), ...(await metricNames(workerPort))];
    expect([...named].filter((name) => !shown.includes(name))).toEqual([]);
  });
  await failing.terminate();
  await api.stop();
  await worker.stop();
});

test('steps that are due without a worker count as overdue, but not those on a test clock, of a held subscription, with an open attempt or with a later place', async ({
  workerless: env,
}) => {
  const { api, worker, apiPort } = await startBoth(env);
  const clock = await env.createClock(Date.now());
  const onClock = await env.create({ createdAt: Date.now(), testClockId: clock });
  const [due, held, charged] = [await paid(env), await paid(env), await paid(env)];
  const later = await paid(env);
  await worker.stop();
  const change = (ref: SubscriptionRef, set: object) =>
    env.db.update(subscriptions).set(set).where(eq(subscriptions.id, ref.subscriptionId));
  const wakeAt = sql`now() - interval '2 minutes'`;
  await change(onClock, { wakeAt });
  await change(held, { wakeAt, heldAt: Date.now() });
  const openAttempt = sql`jsonb_set(state::jsonb, '{openAttempt}', '{}')`;
  await change(charged, { wakeAt, state: openAttempt });
  await change(later, { wakeAt: sql`now() + interval '10 minutes'` });
  const overdue = async () => {
    const page = await scrape(apiPort);
    return [
      page.get('perennial_renewals_overdue{step="charge"}'),
      page.get('perennial_renewals_overdue{step="other"}'),
      page.get('perennial_subscriptions_held'),
    ];
  };
  await expect.poll(overdue).toEqual([0, 0, 1]);
  await change(due, { wakeAt });
  await expect.poll(overdue).toEqual([1, 0, 1]);
  const page = await scrape(apiPort);
  const age = page.get('perennial_renewals_overdue_oldest_seconds{step="charge"}');
  expect(age).toBeGreaterThanOrEqual(120);
  await api.stop();
});

const failing = async (env: TestEnvironment) =>
  (await readFigures(env.db)).find(({ name }) => name === 'perennial_webhook_endpoints_failing')
    ?.value;

test('rows that need an operator, and endpoints in trouble, are counted with the age of the oldest', async ({
  workerless: env,
}) => {
  const secret = 'whsec_dGhlIHRlc3Qgc2hvcCBzaWducyB3aXRoIHRoaXM=';
  const receiver = await startWebhookReceiver({ secrets: [secret] });
  onTestFinished(() => receiver.close());
  await env.subscribe(receiver.url, secret);
  const { api, worker, apiPort } = await startBoth(env);
  const ref = await paid(env);
  await eventually(async () => {
    const pending = await env.db.execute(sql`select from webhook_delivery where state = 'PENDING'`);
    expect([...pending]).toEqual([]);
  });
  await worker.stop();
  const { merchantId } = ref;
  await env.db.execute(sql`
    insert into payment_review (merchant_id, subject_id, reason, since_at)
    values (${merchantId}, 'att_1', 'asked', now() - interval '1 hour')`);
  await env.db.execute(sql`
    insert into refund (merchant_id, id, intent_id, state, amount_minor, currency, gateway_key,
      gateway_charge_id, created_at, first_sent_at)
    select merchant_id, 'rf_1', id, 'UNKNOWN', 1, currency, 'key', 'charge', now(), now() - interval '2 hours'
    from payment_intent limit 1`);
  await env.db.execute(sql`insert into sweep_count values ('overdue', 3, now())`);
  // Of two deliveries of one stream, the second waits for the first, whose next attempt comes later.
  await env.db.execute(sql`
    update webhook_delivery set state = 'PENDING', settled_at = null, attempts = 1,
      next_attempt_at = now() + case sequence when 1 then interval '1 hour' else interval '-1 hour' end`);
  const page = () => scrape(apiPort);
  await expect
    .poll(async () => (await page()).get('perennial_repairs_total{kind="overdue"}'))
    .toBe(3);
  const first = await page();
  expect(first.get('perennial_repairs_total{kind="failed"}')).toBe(0);
  expect(first.get('perennial_reviews_open')).toBe(1);
  expect(first.get('perennial_reviews_open_oldest_seconds')).toBeGreaterThanOrEqual(3_600);
  expect(first.get('perennial_outcomes_unknown{subject="refund"}')).toBe(1);
  const refundAge = first.get('perennial_outcomes_unknown_oldest_seconds{subject="refund"}');
  expect(refundAge).toBeGreaterThanOrEqual(7_200);
  expect(first.get('perennial_webhook_oldest_due_seconds')).toBe(0);

  await env.db.execute(sql`
    update webhook_delivery set next_attempt_at = now() - interval '10 minutes' where sequence = 1`);
  await expect
    .poll(async () => (await page()).get('perennial_webhook_oldest_due_seconds'))
    .toBeGreaterThanOrEqual(600);
  await env.db.execute(sql`update webhook_config set consecutive_failures = 2`);
  expect(await failing(env)).toBe(0);
  await env.db.execute(sql`update webhook_config set consecutive_failures = 3`);
  expect(await failing(env)).toBe(1);
  await env.db.execute(sql`update webhook_config set consecutive_failures = 5`);
  await expect.poll(async () => (await page()).get('perennial_webhook_endpoints_failing')).toBe(1);
  // An open breaker is the endpoint's own trouble.
  expect((await page()).get('perennial_webhook_oldest_due_seconds')).toBe(0);
  await env.db.execute(
    sql`update webhook_config set is_active = false, deactivated_reason = 'endpoint_gone'`,
  );
  await expect.poll(async () => (await page()).get('perennial_webhook_endpoints_disabled')).toBe(1);
  expect((await page()).get('perennial_webhook_endpoints_failing')).toBe(0);
  await api.stop();
});

test('recent rows that contradict an invariant are counted by its number', async ({
  workerless: env,
}) => {
  const { api, worker, apiPort } = await startBoth(env);
  await paid(env);
  await worker.stop();
  const violated = async () => {
    const figures = await readViolations(env.db);
    return ['1', '4', '5', '8', '10'].map(
      (number) => figures.find(({ labels }) => labels.invariant === number)?.value,
    );
  };
  expect(await violated()).toEqual([0, 0, 0, 0, 0]);
  const page = await scrape(apiPort);
  expect(page.get('perennial_invariants_violated{invariant="10"}')).toBe(0);
  await env.db.execute(sql`update payment_attempt set amount_minor = amount_minor + 1`);
  expect(await violated()).toEqual([1, 0, 0, 0, 0]);
  await env.db.execute(sql`update subscription set cycles_charged = 2, status = 'PAUSED'`);
  expect(await violated()).toEqual([1, 1, 0, 1, 0]);
  // An event without the one before it, of a refund that no row has.
  await env.db.execute(sql`
    insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
    select merchant_id, 'evt_1', stream_id, 100, 'intent.refunded', body, occurred_at
    from outbox_event where type = 'intent.success'`);
  await env.db.execute(sql`update event_stream set last_sequence = 100`);
  await env.db.execute(sql`update payment_intent set refunded_minor = 5`);
  expect(await violated()).toEqual([1, 1, 1, 1, 1]);
  await env.db.execute(sql`update outbox_event set inserted_at = now() - interval '3 minutes'`);
  expect(await violated()).toEqual([0, 0, 0, 0, 0]);
  await api.stop();
});

test('the probes of API and worker name their state', async ({ workerless: env }) => {
  const { api, worker, apiPort, workerPort } = await startBoth(env);
  for (const port of [apiPort, workerPort]) {
    expect(await probe(port, '/live')).toEqual([200, 'live']);
    expect(await probe(port, '/ready')).toEqual([200, 'ready']);
    expect((await scrape(port)).get('perennial_temporal_up')).toBe(1);
  }
  const [, status] = await probe(workerPort, '/status');
  const { workers } = JSON.parse(status) as { workers: { queue: string; runState: string }[] };
  expect(workers.map(({ queue }) => queue.slice(env.taskQueuePrefix.length))).toEqual([
    'billing',
    'charges',
    'webhooks',
  ]);
  expect(new Set(workers.map(({ runState }) => runState))).toEqual(new Set(['RUNNING']));
  await Promise.all([api.stop(), worker.stop()]);
});

test('an API that Temporal does not answer is ready, and shows temporal_up 0', async ({
  workerless: env,
}) => {
  const port = await freePort();
  const variables = {
    ...env.variables,
    METRICS_PORT: String(port),
    TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
  };
  const api = await (await apiProcesses({ ...env, variables })).start();
  const page = await scrape(port);
  expect(page.get('perennial_temporal_up')).toBe(0);
  expect(page.get('perennial_database_up')).toBe(1);
  expect(await probe(port, '/ready')).toEqual([200, 'ready']);
  await api.stop();
});

test('credentials count as expiring in their last 7 days, while they are used over an hour after a rotation [D-20]', async ({
  workerless: env,
}) => {
  const expiring = async () =>
    (await readFigures(env.db)).find(({ name }) => name === 'perennial_credentials_expiring')
      ?.value;
  const set = (values: string) => env.db.execute(sql.raw(`update credential set ${values}`));
  const { merchantId } = await env.create({ createdAt: Date.now() });
  await env.db.execute(sql`delete from credential`);
  await env.db.execute(sql`
    insert into credential (key_id, merchant_id, secret_hash, pepper_id, created_at, last_used_at)
    values ('mk_test_1', ${merchantId}, '', '', now() - interval '1 year', now())`);
  expect(await expiring()).toBe(0);
  await set("expires_at = now() + interval '8 days'");
  expect(await expiring()).toBe(0);
  await set("expires_at = now() + interval '6 days'");
  expect(await expiring()).toBe(1);
  await set("last_used_at = now() - interval '8 days'");
  expect(await expiring()).toBe(0);
  await set(
    "replaced_at = now() - interval '2 hours', last_used_at = now() - interval '90 minutes'",
  );
  expect(await expiring()).toBe(0);
  await set('last_used_at = now()');
  expect(await expiring()).toBe(1);
  await set('revoked_at = now()');
  expect(await expiring()).toBe(0);
  await set('revoked_at = null, expires_at = now()');
  expect(await expiring()).toBe(0);
});

// As on a full disk, Postgres then gets no space for a file. Reads, and changes within a page, still succeed.
test.for([
  ['a read-only database', 'default_transaction_read_only = on'],
  ['a database without space for new pages', "temp_file_limit = '64kB'"],
] as const)(
  '%s makes API and worker unready, not dead, and database_up 0 without the other figures',
  async ([, setting], { workerless: env }) => {
    const { api, worker, apiPort, workerPort } = await startBoth(env);
    const database = sql.identifier(new URL(env.databaseUrl).pathname.slice(1));
    await env.db.execute(sql`alter database ${database} set ${sql.raw(setting)}`);
    await env.db.execute(sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`);
    for (const port of [apiPort, workerPort]) {
      await expect
        .poll(() => probe(port, '/ready'))
        .toEqual([503, 'the database accepts no writes']);
      expect(await probe(port, '/live')).toEqual([200, 'live']);
    }
    await eventually(async () => {
      const page = await scrape(apiPort);
      expect(page.get('perennial_database_up')).toBe(0);
      expect(total(page, 'perennial_renewals_overdue', 'charge')).toBe(0);
      expect(page.has('perennial_renewals_overdue{step="charge"}')).toBe(false);
      expect(total(page, 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
    });
    await Promise.all([api.stop(), worker.stop()]);
  },
);

test('rows that are not answered within 3 s are left out of the page, which is read by one reader at a time', async () => {
  let reads = 0;
  const page = liveMetrics('perennial_database_up', () => {
    reads += 1;
    return new Promise(() => undefined);
  });
  const texts = await Promise.all([page(), page()]);
  expect(texts).toEqual([texts[0], texts[0]]);
  expect(texts[0]).toContain('\nperennial_database_up 0\n');
  expect(texts[0]).not.toContain('perennial_reviews_open');
  expect(reads).toBe(1);
});

test('a process is unready before its start is complete and while it drains, and a page that fails leaves the others', async () => {
  const warnings: unknown[] = [];
  const port = await freePort();
  const probes = startProbes({
    host: '127.0.0.1',
    port,
    pages: [async () => 'one 1', () => Promise.reject(new Error('away')), async () => 'two 2'],
    checkDatabase: async () => undefined,
    status: () => ({}),
    logger: { info: () => undefined, warn: (details: unknown) => warnings.push(details) },
  });
  await expect.poll(() => probe(port, '/ready')).toEqual([503, 'starting']);
  probes.ready();
  expect(await probe(port, '/ready')).toEqual([200, 'ready']);
  expect(Object.fromEntries(await scrape(port))).toEqual({ one: 1, two: 2 });
  expect(warnings).toEqual([{ error: 'away' }]);
  probes.drain();
  expect(await probe(port, '/ready')).toEqual([503, 'draining']);
  expect(await probe(port, '/live')).toEqual([200, 'live']);
  expect((await probe(port, '/other'))[0]).toBe(404);
  probes.close();
});

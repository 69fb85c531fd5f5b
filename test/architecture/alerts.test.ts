import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { METRICS } from '../../runtime/metrics.ts';
import { runCommand } from '../../tools/embedded/run-command.ts';
import {
  ALERTS,
  dashboardExpressions,
  expected,
  metricsIn,
  rules,
  rulesCount,
} from '../support/ops.ts';
import { promtool } from '../support/operator-programs.ts';

/** Series in promtool's notation, one value for each 15 s: `0+2x20` are 0, 2, 4 … 40. */
type Series = Readonly<Record<string, string | null | undefined>>;

const gateway = (outcome: string) =>
  `perennial_gateway_request_seconds_count{gateway="stripe",operation="charge",outcome="${outcome}"}`;
const charges = (outcome: string) =>
  `perennial_charge_outcomes_total{trigger="scheduled",outcome="${outcome}",code=""}`;
const http = (status: number) =>
  `perennial_http_request_seconds_count{route="POST /subscription/create",status="${status}"}`;
const lateness = (le: string) => `perennial_renewal_lateness_seconds_bucket{le="${le}"}`;
const waiting = (le: string) =>
  `temporal_workflow_task_schedule_to_start_latency_seconds_bucket{task_queue="billing",le="${le}"}`;
const health = 'perennial_http_request_seconds_count{route="GET /health",status="200"}';
const slots = (instance: string) =>
  `temporal_worker_task_slots_available{task_queue="billing",worker_type="LocalActivityWorker",instance="${instance}"}`;
const instances = (process: string) => `perennial_instances_expected{process="${process}"}`;
const temporal = 'perennial_temporal_up{instance="w1"}';
const started = 'process_start_time_seconds{instance="w1"}';
const free = 'node_filesystem_avail_bytes{instance="db",mountpoint="/data",fstype="ext4"}';
const size = 'node_filesystem_size_bytes{instance="db",mountpoint="/data",fstype="ext4"}';
const backup = 'perennial_backup_completed_timestamp_seconds';
const overdue = 'perennial_renewals_overdue_oldest_seconds{step="charge"}';
const unknown = 'perennial_outcomes_unknown_oldest_seconds{subject="charge"}';
const unsent = 'perennial_charges_unsent_oldest_seconds{by="account"}';
const disabled = 'perennial_webhook_endpoints_disabled';
const repairs = 'perennial_repairs_total{kind="overdue"}';
const pool = 'perennial_pool_connections{state="waiting",instance="a1"}';
const eventLoop = 'nodejs_eventloop_lag_p99_seconds{instance="a1"}';
const violated = 'perennial_invariants_violated{invariant="1"}';
const failedTasks = 'temporal_workflow_task_execution_failed_total{workflow_type="subscription"}';

/**
 * A billing day: for 40 minutes 25 renewals a second, each a few seconds late, some declined. A worker is killed, another
 * takes over after 10 s, and the sweep repairs some cases. A request to the gateway is lost now and then.
 */
const BILLING_DAY: Series = {
  perennial_database_up: '1x280',
  [temporal]: '1x280',
  [instances('api')]: '1x280',
  [instances('worker')]: '2x280',
  [slots('w1')]: '40x20 0x10 30x250',
  [slots('w2')]: '40x280',
  [overdue]: '0x20 3x80 12x1 3x80 0x100',
  [unknown]: '0x50 30x4 0x230',
  [unsent]: '0x50 290x4 0x230',
  perennial_reviews_open: '0x280',
  perennial_subscriptions_held: '0x280',
  perennial_webhook_oldest_due_seconds: '0x50 377x1 20x2 0x228',
  perennial_webhook_endpoints_failing: '0x280',
  [disabled]: '3x280',
  [repairs]: '0x100 5x180',
  [lateness('15')]: '0+370x280',
  [lateness('60')]: '0+375x280',
  [lateness('+Inf')]: '0+375x280',
  [gateway('succeeded')]: '0+337x280',
  [gateway('declined')]: '0+38x280',
  [gateway('unknown')]: '0x50 5x230',
  [charges('succeeded')]: '0+337x280',
  [charges('declined')]: '0+38x280',
  [http(200)]: '0+60x280',
  [http(503)]: '0x100 2x180',
  // In one minute every task waits over a second.
  [waiting('1')]: '0+740x100 74000x5 74000+740x173',
  [waiting('5')]: '0+750x280',
  [waiting('+Inf')]: '0+750x280',
  [pool]: '0x20 4x150 0x110',
  [eventLoop]: '0.02x20 0.2x150 0.02x110',
  [violated]: '0x280',
  [failedTasks]: '0x280',
  perennial_credentials_expiring: '0x280',
  [started]: '0x280',
  [free]: '50x280',
  [size]: '100x280',
  [backup]: '0x280',
};

/** One value for each 15 s of 9 h, 1 more after each hour. `before`: values until the first event; `_` is no value. */
const hourly = (before: string) =>
  `${before}x239 ${[1, 2, 3, 4, 5, 6, 7, 8].map((count) => `${count}x239`).join(' ')}`;

/** A quiet installation: one renewal, one create and one call of the gateway an hour, all of them successful. */
const QUIET: Series = {
  ...Object.fromEntries(
    Object.entries(BILLING_DAY).map(([name, values]) => [name, values?.replace(/\d+$/, '2160')]),
  ),
  [slots('w1')]: '40x2160',
  [overdue]: '0x2160',
  [unknown]: '0x2160',
  [repairs]: '5x2160',
  [started]: '-100000x2160',
  [lateness('15')]: hourly('0'),
  [lateness('60')]: hourly('0'),
  [lateness('+Inf')]: hourly('0'),
  [gateway('succeeded')]: hourly('_'),
  [charges('succeeded')]: hourly('_'),
  [http(200)]: hourly('_'),
  [health]: '0+1x2160',
  [waiting('1')]: hourly('_'),
  [waiting('5')]: hourly('_'),
  [waiting('+Inf')]: hourly('_'),
  [gateway('declined')]: null,
  [gateway('unknown')]: null,
  [charges('declined')]: null,
  [http(503)]: null,
};

/** From the 20th minute on, the oldest overdue renewal becomes older: 15 s in each step of 15 s. */
const BACKLOG = '0x80 0+15x200';

/** For each alert: how the day differs, from its 20th minute if not said otherwise. Null removes a series. */
const TROUBLE: Readonly<Record<string, Series>> = {
  RenewalsOverdue: {
    [overdue]: BACKLOG,
    [charges('succeeded')]: '0+337x80 26960x200',
    [charges('declined')]: '0+38x80 3040x200',
  },
  // One of two workers is gone.
  InstanceMissing: { [slots('w2')]: '40x80 stale' },
  TemporalDown: { [temporal]: '1x80 0x200' },
  DatabaseDown: { perennial_database_up: '1x80 0x200' },
  RenewalsLate: {
    [lateness('60')]: '0+340x280',
    [lateness('15')]: '0+300x280',
    [lateness('120')]: '0+375x280',
  },
  OutcomesUnknown: { [unknown]: '0x80 0+15x200' },
  ChargesNotSent: { [unsent]: '0x80 0+15x200' },
  ReviewsOpen: { perennial_reviews_open: '0x80 1x200' },
  // It hangs: nothing is answered, and the first requests reach their limit after some seconds.
  GatewayFailing: {
    [gateway('succeeded')]: '0+337x80 26960x200',
    [gateway('declined')]: '0+38x80 3040x200',
    [gateway('unknown')]: '0x81 0+2x199',
  },
  DeclinesRising: { [charges('succeeded')]: '0+100x280', [charges('declined')]: '0+200x280' },
  WebhooksLate: { perennial_webhook_oldest_due_seconds: '0x80 301x200' },
  WebhookEndpointsFailing: { perennial_webhook_endpoints_failing: '0x80 1x200' },
  WebhookEndpointsDisabled: { [disabled]: '3x150 2x100 3x30' },
  RepairsRising: { [repairs]: '0x80 0+1x200' },
  SubscriptionsHeld: { perennial_subscriptions_held: '0x80 2x200' },
  InvariantViolated: { [violated]: '0x80 1x8 0x192' },
  WorkflowTasksFailing: { [failedTasks]: '0x80 0+1x200' },
  WorkflowTasksWaiting: { [waiting('1')]: '0+600x280' },
  SlotsUsedUp: { [slots('w1')]: '40x80 0x200', [slots('w2')]: '40x80 0x200' },
  PoolExhausted: { [pool]: '0x80 60x200' },
  EventLoopSlow: { [eventLoop]: '0.02x80 1.5x200' },
  ApiErrors: { [http(503)]: '0x80 0+20x200' },
  CredentialsExpiring: { perennial_credentials_expiring: '0x80 1x200' },
  DiskFilling: { [free]: '50x80 19x200' },
  BackupOld: { [backup]: '-93000x280' },
  Watchdog: {},
};

/** For the alerts about events, how the quiet installation differs. The other alerts see the same there as above. */
const QUIET_TROUBLE: typeof TROUBLE = {
  RenewalsOverdue: { [overdue]: BACKLOG },
  RenewalsLate: {
    [lateness('60')]: '0x2160',
    [lateness('15')]: '0x2160',
    [lateness('120')]: hourly('0'),
  },
  // One renewal hangs, 4 h after the first. Its look-ups fail, and each later renewal hangs, too.
  GatewayFailing: {
    [gateway('succeeded')]: '_x239 1x239 2x239 3x1440',
    [gateway('unknown')]: '_x960 1x1 2x2 3x4 4x16 5x18 6x1160',
  },
  DeclinesRising: { [charges('succeeded')]: null, [charges('declined')]: hourly('_') },
  RepairsRising: { [repairs]: hourly('0') },
  // A run whose history other code wrote: the server repeats its task after 10, 20, 40 … s.
  WorkflowTasksFailing: { [failedTasks]: '_x80 1x0 2x1 3x2 4x4 5x200' },
  WorkflowTasksWaiting: { [waiting('1')]: '0x2160' },
  ApiErrors: { [http(200)]: null, [http(503)]: hourly('_') },
};

/** The time at which each of these is found there. Of the third event of a kind, if that is an hour's only one. */
const QUIET_AT: Readonly<Record<string, string>> = {
  RenewalsLate: '1h5m',
  GatewayFailing: '5h5m',
  DeclinesRising: '5h5m',
  RepairsRising: '3h5m',
  WorkflowTasksWaiting: '2h10m',
  ApiErrors: '2h5m',
};

/** Within this time of their begin, in the 20th minute, these are found. All others: in the 65th minute. */
const WITHIN: Readonly<Record<string, string>> = {
  RenewalsOverdue: '22m',
  InstanceMissing: '22m',
  TemporalDown: '22m',
  DatabaseDown: '22m',
  OutcomesUnknown: '22m30s',
  GatewayFailing: '22m',
  WebhookEndpointsFailing: '22m',
  InvariantViolated: '22m',
  WorkflowTasksFailing: '22m',
  PoolExhausted: '22m',
  ApiErrors: '22m',
};

const folder = mkdtempSync(join(tmpdir(), 'perennial-alerts-'));
afterAll(() => rmSync(folder, { recursive: true }));

let tool: string | undefined;
beforeAll(async () => void (tool = await promtool()));

const runPromtool = (args: readonly string[]) =>
  runCommand(tool ?? '', args, { timeoutMs: 60_000 });

/** Evaluates the rules over the series. At `at` the expected alerts fire and no other, except Watchdog. */
function expectAlerts(name: string, series: Series, at: string, alerts: readonly string[]) {
  const file = join(folder, `${name}.yml`);
  const test = {
    name,
    interval: '15s',
    input_series: Object.entries(series).flatMap(([each, values]) =>
      typeof values === 'string' ? [{ series: each, values }] : [],
    ),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: at,
        exp_samples: [...new Set([...alerts, 'Watchdog'])].map((alert) => ({
          labels: `{alertname="${alert}"}`,
          value: 1,
        })),
      },
    ],
  };
  const rule_files = [resolve(ALERTS)];
  writeFileSync(file, stringify({ rule_files, evaluation_interval: '15s', tests: [test] }));
  return runPromtool(['test', 'rules', file]);
}

describe('the alerts', () => {
  it('name only metrics of the list, and so does the dashboard, which shows each of them', () => {
    const own = (names: Set<string>) => [...names].filter((name) => name.startsWith('perennial_'));
    const listed = Object.keys(METRICS);
    expect(
      own(metricsIn(rules.map(({ expr }) => expr))).filter((name) => !listed.includes(name)),
    ).toEqual([]);
    expect(own(metricsIn(dashboardExpressions)).toSorted()).toEqual(listed.toSorted());
  });

  it('each have one entry in docs/operations.md, and a scenario below', () => {
    const names = rules.map(({ alert }) => alert);
    const document = readFileSync('docs/operations.md', 'utf8');
    const entries = [...document.matchAll(/^\| `([A-Z]\w+)` \| (?:page|ticket|none) \|/gm)].map(
      ([, name]) => name,
    );
    expect(entries).toEqual(names);
    expect(Object.keys(TROUBLE)).toEqual(names);
    for (const { alert, labels } of rules) {
      expect(document).toContain(`| \`${alert}\` | ${labels['severity']} |`);
    }
  });

  it('are rules, and the example a configuration, that Prometheus accepts', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    expect(await runPromtool(['check', 'rules', ALERTS])).toContain(`${rulesCount} rules found`);
    expect(await runPromtool(['check', 'config', 'ops/prometheus/prometheus.yml'])).toContain(
      'SUCCESS',
    );
  });

  it('are silent on a billing day, and in a quiet installation', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    for (const at of ['10m', '13m', '20m', '26m', '30m45s', '40m', '65m']) {
      await expectAlerts(`day-${at}`, BILLING_DAY, at, []);
    }
    for (const at of ['1h1m', '4h1m', '6h30m']) await expectAlerts(`quiet-${at}`, QUIET, at, []);
  });

  it.for(Object.keys(TROUBLE))('%s fires under load, and no other', async (alert, { skip }) => {
    if (tool === undefined) skip('no promtool');
    const changed = { ...BILLING_DAY, ...TROUBLE[alert] };
    await expectAlerts(alert, changed, WITHIN[alert] ?? '65m', [alert]);
  });

  it.for(Object.keys(TROUBLE))(
    '%s fires at one event an hour, and no other',
    async (alert, { skip }) => {
      if (tool === undefined) skip('no promtool');
      const changed = { ...QUIET, ...(QUIET_TROUBLE[alert] ?? TROUBLE[alert]) };
      await expectAlerts(`quiet-${alert}`, changed, QUIET_AT[alert] ?? WITHIN[alert] ?? '65m', [
        alert,
      ]);
    },
  );

  it('RenewalsOverdue is silent for 15 minutes while renewals are charged', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    const wave = { ...BILLING_DAY, [overdue]: BACKLOG };
    await expectAlerts('wave', wave, '34m', []);
    await expectAlerts('long-wave', wave, '37m', ['RenewalsOverdue']);
  });

  it('InstanceMissing fires if no number of expected instances is loaded', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    const unknownNumbers = { [instances('api')]: null, [instances('worker')]: null };
    await expectAlerts('uncounted', { ...BILLING_DAY, ...unknownNumbers }, '10m', [
      'InstanceMissing',
    ]);
  });

  it('expect the instances that docker-compose.yml starts without settings', () => {
    const workers = /\$\{WORKERS:-(\d+)\}/.exec(readFileSync('docker-compose.yml', 'utf8'))?.[1];
    expect(expected.map(({ expr, labels }) => [labels['process'], expr])).toEqual([
      ['api', 'vector(1)'],
      ['worker', `vector(${workers})`],
    ]);
  });
});

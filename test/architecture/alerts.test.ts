import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { METRICS } from '../../runtime/metrics.ts';
import { runCommand } from '../../tools/embedded/commands.ts';
import { ALERTS, dashboardExpressions, metricsIn, rules } from '../support/ops.ts';
import { promtool } from '../support/operator-programs.ts';

/** Series in promtool's notation, one value for each 15 s: `0+2x20` are 0, 2, 4 … 40. */
type Series = Readonly<Record<string, string>>;

const gateway = (outcome: string) =>
  `perennial_gateway_request_seconds_count{gateway="stripe",operation="charge",outcome="${outcome}"}`;
const charges = (outcome: string) =>
  `perennial_charge_outcomes_total{trigger="scheduled",outcome="${outcome}",code=""}`;
const http = (status: number) =>
  `perennial_http_request_seconds_count{route="GET /health",status="${status}"}`;
const lateness = (le: string) => `perennial_renewal_lateness_seconds_bucket{le="${le}"}`;
const waiting = (le: string) =>
  `temporal_workflow_task_schedule_to_start_latency_seconds_bucket{task_queue="billing",le="${le}"}`;
const slots =
  'temporal_worker_task_slots_available{task_queue="billing",worker_type="WorkflowWorker",instance="w1"}';
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
  [slots]: '40x20 0x10 30x250',
  [overdue]: '0x20 3x80 12x1 3x80 0x100',
  [unknown]: '0x50 30x4 0x230',
  [unsent]: '0x50 290x4 0x230',
  perennial_reviews_open: '0x280',
  perennial_subscriptions_held: '0x280',
  perennial_webhook_oldest_due_seconds: '0x50 377x1 20x2 0x228',
  perennial_webhook_breakers_open: '0x280',
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
};

/** For each alert: how the day differs, from its 20th minute if not said otherwise. Null removes a series. */
const TROUBLE: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  RenewalsOverdue: { [overdue]: '0x80 0+15x200' },
  ApiNotScraped: { perennial_database_up: '1x80 stale' },
  WorkerNotScraped: { [slots]: '40x80 stale' },
  DatabaseDown: { perennial_database_up: '1x80 0x200' },
  RenewalsLate: {
    [lateness('60')]: '0+340x280',
    [lateness('15')]: '0+300x280',
    [lateness('120')]: '0+375x280',
  },
  OutcomesUnknown: { [unknown]: '0x80 3700x200' },
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
  WebhookBreakersOpen: { perennial_webhook_breakers_open: '0x80 1x200' },
  WebhookEndpointsDisabled: { [disabled]: '3x150 2x100 3x30' },
  RepairsRising: { [repairs]: '0x80 0+1x200' },
  SubscriptionsHeld: { perennial_subscriptions_held: '0x80 2x200' },
  InvariantViolated: { [violated]: '0x80 1x8 0x192' },
  WorkflowTasksFailing: { [failedTasks]: '0x80 0+1x200' },
  WorkflowTasksWaiting: { [waiting('1')]: '0+600x280' },
  SlotsUsedUp: { [slots]: '40x80 0x200' },
  PoolExhausted: { [pool]: '0x80 60x200' },
  EventLoopSlow: { [eventLoop]: '0.02x80 1.5x200' },
  ApiErrors: { [http(503)]: '0x80 0+20x200' },
};

/** After this time from its begin, each of these is found: the issue demands two minutes. */
const WITHIN: Readonly<Record<string, string>> = {
  RenewalsOverdue: '22m',
  ApiNotScraped: '22m',
  WorkerNotScraped: '22m',
  DatabaseDown: '22m',
  GatewayFailing: '22m',
  WebhookBreakersOpen: '22m',
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

/** Evaluates the rules over the series. The expected alerts fire at `at`, and no other. */
function expectAlerts(name: string, series: Series, at: string, alerts: readonly string[]) {
  const file = join(folder, `${name}.yml`);
  const test = {
    name,
    interval: '15s',
    input_series: Object.entries(series).map(([each, values]) => ({ series: each, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: at,
        exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
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
    const entries = [...document.matchAll(/^\| `([A-Z]\w+)` \| (?:page|ticket) \|/gm)].map(
      ([, name]) => name,
    );
    expect(entries).toEqual(names);
    expect(Object.keys(TROUBLE)).toEqual(names);
    for (const { alert, labels } of rules) {
      expect(document).toContain(`| \`${alert}\` | ${labels.severity} |`);
    }
  });

  it('are rules, and the example a configuration, that Prometheus accepts', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    expect(await runPromtool(['check', 'rules', ALERTS])).toContain(`${rules.length} rules found`);
    expect(await runPromtool(['check', 'config', 'ops/prometheus/prometheus.yml'])).toContain(
      'SUCCESS',
    );
  });

  it('are silent on a billing day', async ({ skip }) => {
    if (tool === undefined) skip('no promtool');
    for (const at of ['10m', '13m', '20m', '26m', '30m45s', '40m', '65m']) {
      await expectAlerts(`day-${at}`, BILLING_DAY, at, []);
    }
  });

  it.for(Object.keys(TROUBLE))('%s fires, and no other', async (alert, { skip }) => {
    if (tool === undefined) skip('no promtool');
    const changed = { ...BILLING_DAY, ...TROUBLE[alert] } as Series;
    await expectAlerts(alert, changed, WITHIN[alert] ?? '65m', [alert]);
  });
});

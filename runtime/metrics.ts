import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { within } from './time-limit.ts';

type Definitions = Readonly<Record<string, readonly [help: string, ...labels: string[]]>>;

/** Gauges, and counters `_total`, that are read at a scrape: the first by API and worker, the others by the API from rows. */
const ROWS = {
  perennial_temporal_up: [
    '1 if Temporal found the namespace in its database for this page within 3 s',
  ],
  perennial_database_up: ['1 if the database took a write and answered for this page within 3 s'],
  perennial_renewals_overdue: [
    'Subscriptions whose next step is due and that have no open attempt, at most 10,000. step: charge, or other (the end of a pause, of a cancelled period, of a checkout)',
    'step',
  ],
  perennial_renewals_overdue_oldest_seconds: [
    'Time since the oldest of perennial_renewals_overdue fell due, after the delay that spreads renewals',
    'step',
  ],
  perennial_subscriptions_held: ['Subscriptions whose workflow is newer than the database'],
  perennial_outcomes_unknown: [
    'Charges and refunds whose latest request the gateway did not answer',
    'subject',
  ],
  perennial_outcomes_unknown_oldest_seconds: [
    'Time since the first send of the oldest of perennial_outcomes_unknown',
    'subject',
  ],
  perennial_charges_unsent: [
    'Due charges that could not be sent. by: account (the gateway refuses the merchant’s account) or gateway (not reached, or too busy)',
    'by',
  ],
  perennial_charges_unsent_oldest_seconds: [
    'Time since the first send of the oldest of perennial_charges_unsent',
    'by',
  ],
  perennial_reviews_open: ['Charges and refunds in REVIEW that wait for an operator'],
  perennial_reviews_open_oldest_seconds: [
    'Time since the oldest perennial_reviews_open was opened',
  ],
  perennial_webhook_oldest_due_seconds: [
    'Time since the oldest delivery that nothing holds back fell due, without endpoints whose breaker is open',
  ],
  perennial_webhook_endpoints_failing: [
    'Active webhook endpoints that failed three times in a row',
  ],
  perennial_webhook_endpoints_disabled: ['Webhook endpoints that were deactivated for failures'],
  perennial_credentials_expiring: [
    'Credentials that end within 7 days, and were used in the last 7 days, and over an hour after their rotation',
  ],
  perennial_repairs_total: [
    'Cases that the sweep repaired since the database was created; failed: could not be repaired',
    'kind',
  ],
  perennial_invariants_violated: [
    'Records of the last two minutes that contradict an invariant, counted once a minute. invariant: its number in npm run verify',
    'invariant',
  ],
} as const satisfies Definitions;

/** Counters `_total` and histograms `_seconds` of a process. */
const API = {
  perennial_http_request_seconds: [
    'Duration of the requests to the API. route: the pattern, or none',
    'route',
    'status',
  ],
} as const satisfies Definitions;

const WORKER = {
  perennial_renewal_lateness_seconds: [
    'Time from the instant of a renewal, after the delay that spreads renewals, to the start of its charge',
  ],
  perennial_charge_outcomes_total: [
    'Recorded outcomes of charges of billing cycles. code: of a decline',
    'trigger',
    'outcome',
    'code',
  ],
  perennial_cycles_recovered_total: [
    'Billing cycles that were paid after a decline. retry: number of the paid attempt after the first. code: of the latest decline',
    'retry',
    'code',
  ],
} as const satisfies Definitions;

const BOTH = {
  perennial_gateway_request_seconds: [
    'Duration of the calls of a gateway. outcome: as in gateways/port.ts, rejected or error',
    'gateway',
    'operation',
    'outcome',
  ],
  perennial_gateway_rate_limited_total: ['Requests that a gateway answered with 429', 'gateway'],
  perennial_pool_connections: [
    'Statements and transactions at the database (used), those that wait for a connection (waiting), and the most connections (size)',
    'state',
  ],
} as const satisfies Definitions;

/** Every metric of our own. No label is a merchant, a customer or an id. Tests compare `ops/` with this list. */
export const METRICS = { ...ROWS, ...API, ...WORKER, ...BOTH };

const REQUEST_BUCKETS = [0.05, 0.25, 1, 5, 10, 30];
const LATENESS_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 900, 3_600];

type Name = keyof typeof METRICS;
type Labels<Each extends Name> = (typeof METRICS)[Each] extends readonly [string, ...infer Names]
  ? Readonly<Record<Extract<Names[number], string>, string>>
  : never;
type CounterName = Extract<Exclude<Name, keyof typeof ROWS>, `${string}_total`>;
type HistogramName = Extract<Exclude<Name, keyof typeof ROWS>, `${string}_seconds`>;

/** One value that was read from the database. */
export type Sample = {
  [Each in keyof typeof ROWS]: { name: Each; labels: Labels<Each>; value: number };
}[keyof typeof ROWS];

export interface Metrics {
  readonly count: <Each extends CounterName>(name: Each, labels: Labels<Each>) => void;
  readonly observe: <Each extends HistogramName>(
    name: Each,
    labels: Labels<Each>,
    seconds: number,
  ) => void;
  /** Returns the page of these metrics and of Node, in the text format of Prometheus. */
  readonly text: () => Promise<string>;
}

export interface MetricsOptions {
  readonly process: 'api' | 'worker';
  /** Read at each scrape. */
  readonly pool: () => { used: number; waiting: number; size: number };
  /** False: counts, but does not watch the event loop and the garbage collector of Node. */
  readonly isServed: boolean;
}

/** Creates the metrics of one process. A call takes about a microsecond. */
export function createMetrics({ process, pool, isServed }: MetricsOptions): Metrics {
  const registry = new Registry();
  if (isServed) collectDefaultMetrics({ register: registry });
  const counters = new Map<string, Counter>();
  const histograms = new Map<string, Histogram>();
  const own: Definitions = { ...(process === 'api' ? API : WORKER), ...BOTH };
  for (const [name, [help, ...labelNames]] of Object.entries(own)) {
    const options = { name, help, labelNames, registers: [] };
    if (name.endsWith('_total')) counters.set(name, new Counter(options));
    if (!name.endsWith('_seconds')) continue;
    const buckets = name.endsWith('lateness_seconds') ? LATENESS_BUCKETS : REQUEST_BUCKETS;
    histograms.set(name, new Histogram({ ...options, buckets }));
  }
  const [help, ...labelNames] = BOTH.perennial_pool_connections;
  const connections = new Gauge({
    name: 'perennial_pool_connections',
    help,
    labelNames,
    registers: [],
    collect() {
      for (const [state, value] of Object.entries(pool())) this.set({ state }, value);
    },
  });
  for (const metric of [...counters.values(), ...histograms.values(), connections]) {
    registry.registerMetric(metric);
  }
  return {
    count: (name, labels) => counters.get(name)?.inc(labels),
    observe: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
    text: () => registry.metrics(),
  };
}

/** For `gateways/measured.ts`. A gateway's name may have the merchant's account: `stripe:acct_…`. */
export function gatewayObserver({ observe, count }: Metrics) {
  const label = (name: string) => ({ gateway: name.split(':', 1)[0] ?? name });
  return {
    requested: (name: string, call: { operation: string; outcome: string }, seconds: number) =>
      observe('perennial_gateway_request_seconds', { ...label(name), ...call }, seconds),
    rateLimited: (name: string) => count('perennial_gateway_rate_limited_total', label(name)),
  };
}

/** Age in ms at which the rows are read again, and the longest wait for them. */
const FRESH_FOR_MS = 5_000;
const READ_WITHIN_MS = 3_000;
const AUDIT_EVERY_MS = 60_000;

/** Reads at most every `freshForMs`, one read at a time. A caller waits 3 s at most. */
function fresh(freshForMs: number, read: () => Promise<readonly Sample[]>) {
  let latest: { samples: Promise<readonly Sample[]>; readAt: number } | null = null;
  return () => {
    if (latest === null || performance.now() - latest.readAt > freshForMs) {
      const started = { samples: read(), readAt: Infinity };
      const ended = () => (started.readAt = performance.now());
      started.samples.then(ended, ended);
      latest = started;
    }
    return within(READ_WITHIN_MS, latest.samples);
  };
}

/**
 * Returns a page with `up` 1 and the samples. If `read` fails or takes 3 s, the page has only `up` 0, so that no old
 * value looks like a present one.
 */
export function liveMetrics(
  up: 'perennial_database_up' | 'perennial_temporal_up',
  read: () => Promise<readonly Sample[]>,
): () => Promise<string> {
  const latest = fresh(FRESH_FOR_MS, read);
  return async () => {
    const samples = await latest().catch(() => null);
    const value = samples === null ? 0 : 1;
    return samplesText([{ name: up, labels: {}, value }, ...(samples ?? [])]);
  };
}

/** Returns the page of metrics that are read once a minute, because they cost more. It rejects if `read` fails. */
export function auditMetrics(read: () => Promise<readonly Sample[]>): () => Promise<string> {
  const latest = fresh(AUDIT_EVERY_MS, read);
  return async () => samplesText(await latest());
}

function samplesText(samples: readonly Sample[]): Promise<string> {
  const registry = new Registry();
  for (const { name, labels, value } of samples) {
    const [help, ...labelNames] = ROWS[name];
    const Type = name.endsWith('_total') ? Counter : Gauge;
    const metric =
      registry.getSingleMetric(name) ?? new Type({ name, help, labelNames, registers: [registry] });
    (metric as Counter | Gauge).inc(labels, value);
  }
  return registry.metrics();
}

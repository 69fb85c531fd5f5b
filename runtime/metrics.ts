import { setTimeout as sleep } from 'node:timers/promises';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

interface Definition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** `rows`: the API reads the value from the database at a scrape. Else: the processes that count it. */
  readonly from: 'rows' | 'api' | 'worker' | 'both';
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

const REQUEST_BUCKETS = [0.05, 0.25, 1, 5, 10, 30];

/** Every metric of our own. No label is a merchant, a customer or an id. Tests compare `ops/` with this list. */
export const METRICS = {
  perennial_database_up: {
    type: 'gauge',
    help: '1 if the database accepted a write and answered the queries of this page within 3 s, else 0',
    labels: [],
    from: 'rows',
  },
  perennial_renewals_overdue: {
    type: 'gauge',
    help: 'Subscriptions whose next step is due and that have no open attempt. step: charge, or other (the end of a pause, of a cancelled period, of a checkout)',
    labels: ['step'],
    from: 'rows',
  },
  perennial_renewals_overdue_oldest_seconds: {
    type: 'gauge',
    help: 'Time since the oldest of perennial_renewals_overdue fell due, after the delay that spreads renewals',
    labels: ['step'],
    from: 'rows',
  },
  perennial_subscriptions_held: {
    type: 'gauge',
    help: 'Subscriptions whose workflow is newer than the database',
    labels: [],
    from: 'rows',
  },
  perennial_outcomes_unknown: {
    type: 'gauge',
    help: 'Charges and refunds whose latest request the gateway did not answer',
    labels: ['subject'],
    from: 'rows',
  },
  perennial_outcomes_unknown_oldest_seconds: {
    type: 'gauge',
    help: 'Time since the first send of the oldest of perennial_outcomes_unknown',
    labels: ['subject'],
    from: 'rows',
  },
  perennial_reviews_open: {
    type: 'gauge',
    help: 'Charges and refunds in REVIEW that wait for an operator',
    labels: [],
    from: 'rows',
  },
  perennial_reviews_open_oldest_seconds: {
    type: 'gauge',
    help: 'Time since the oldest of perennial_reviews_open was opened',
    labels: [],
    from: 'rows',
  },
  perennial_webhook_oldest_due_seconds: {
    type: 'gauge',
    help: 'Time since the oldest delivery that nothing holds back fell due, without endpoints whose breaker is open',
    labels: [],
    from: 'rows',
  },
  perennial_webhook_breakers_open: {
    type: 'gauge',
    help: 'Active webhook endpoints to which five or more attempts in a row failed',
    labels: [],
    from: 'rows',
  },
  perennial_webhook_endpoints_disabled: {
    type: 'gauge',
    help: 'Webhook endpoints that were deactivated because they failed too long',
    labels: [],
    from: 'rows',
  },
  perennial_repairs_total: {
    type: 'counter',
    help: 'Cases that the sweep repaired since the database was created; failed: could not be repaired',
    labels: ['kind'],
    from: 'rows',
  },
  perennial_renewal_lateness_seconds: {
    type: 'histogram',
    help: 'Time from the instant of a renewal, after the delay that spreads renewals, to the start of its charge',
    labels: [],
    from: 'worker',
    buckets: [1, 5, 15, 30, 60, 120, 300, 900, 3_600],
  },
  perennial_charge_outcomes_total: {
    type: 'counter',
    help: 'Recorded outcomes of charges of billing cycles. code: of a decline',
    labels: ['trigger', 'outcome', 'code'],
    from: 'worker',
  },
  perennial_gateway_request_seconds: {
    type: 'histogram',
    help: 'Duration of the calls of a gateway. outcome: as in gateways/port.ts, rejected or error',
    labels: ['gateway', 'operation', 'outcome'],
    from: 'both',
    buckets: REQUEST_BUCKETS,
  },
  perennial_gateway_rate_limited_total: {
    type: 'counter',
    help: 'Requests that a gateway answered with 429',
    labels: ['gateway'],
    from: 'both',
  },
  perennial_http_request_seconds: {
    type: 'histogram',
    help: 'Duration of the requests to the API. route: the pattern, or none',
    labels: ['route', 'status'],
    from: 'api',
    buckets: REQUEST_BUCKETS,
  },
  perennial_pool_connections: {
    type: 'gauge',
    help: 'Statements and transactions at the database (used), those that wait for a connection (waiting), and the most connections (size)',
    labels: ['state'],
    from: 'both',
  },
} as const satisfies Record<string, Definition>;

type Name = keyof typeof METRICS;
type NameOf<Key extends keyof Definition, Value> = {
  [Each in Name]: (typeof METRICS)[Each] extends Readonly<Record<Key, Value>> ? Each : never;
}[Name];
type Labels<Each extends Name> = Readonly<Record<(typeof METRICS)[Each]['labels'][number], string>>;

/** One value that was read from the database. */
export type Sample = {
  [Each in NameOf<'from', 'rows'>]: { name: Each; labels: Labels<Each>; value: number };
}[NameOf<'from', 'rows'>];

export interface Metrics {
  readonly count: <Each extends NameOf<'type', 'counter'>>(
    name: Each,
    labels: Labels<Each>,
  ) => void;
  readonly observe: <Each extends NameOf<'type', 'histogram'>>(
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
  for (const [name, definition] of Object.entries<Definition>(METRICS)) {
    const { type, from, help, labels, buckets = [] } = definition;
    if (from !== process && from !== 'both') continue;
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (type === 'counter') counters.set(name, new Counter(options));
    if (type === 'histogram') {
      histograms.set(name, new Histogram({ ...options, buckets: [...buckets] }));
    }
  }
  const { help, labels } = METRICS.perennial_pool_connections;
  const connections = new Gauge({
    name: 'perennial_pool_connections',
    help,
    labelNames: labels,
    registers: [],
    collect() {
      for (const [state, value] of Object.entries<number>(pool())) this.set({ state }, value);
    },
  });
  registry.registerMetric(connections);
  return {
    count: (name, of) => counters.get(name)?.inc(of),
    observe: (name, of, seconds) => histograms.get(name)?.observe(of, seconds),
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

/**
 * Returns the page of the metrics from the rows: read at most every 5 s, by one reader at a time. If `read` fails or takes
 * 3 s, the page has only `perennial_database_up 0`, so that no old value looks like a present one.
 */
export function rowMetrics(read: () => Promise<readonly Sample[]>): () => Promise<string> {
  let latest: { samples: Promise<readonly Sample[]>; readAt: number } | null = null;
  return async () => {
    if (latest === null || performance.now() - latest.readAt > FRESH_FOR_MS) {
      const started = { samples: read(), readAt: Infinity };
      const ended = () => (started.readAt = performance.now());
      started.samples.then(ended, ended);
      latest = started;
    }
    const samples = await within(READ_WITHIN_MS, latest.samples).catch(() => []);
    const up = {
      name: 'perennial_database_up',
      labels: {},
      value: samples.length > 0 ? 1 : 0,
    } as const;
    return samplesText([up, ...samples]);
  };
}

function samplesText(samples: readonly Sample[]): Promise<string> {
  const registry = new Registry();
  for (const { name, labels, value } of samples) {
    const { type, help, labels: labelNames }: Definition = METRICS[name];
    const options = { name, help, labelNames: [...labelNames], registers: [registry] };
    const known = registry.getSingleMetric(name);
    const metric = known ?? (type === 'counter' ? new Counter(options) : new Gauge(options));
    (metric as Counter | Gauge).inc(labels, value);
  }
  return registry.metrics();
}

/** Rejects if `work` takes longer. */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`no answer within ${timeoutMs / 1_000} s`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
}

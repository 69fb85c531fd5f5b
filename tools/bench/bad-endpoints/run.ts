import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../embedded/ports.ts';
import { startBackgroundLoad } from '../day/background-load.ts';
import { settledDeliveries } from '../day/healthy-merchant.ts';
import { countOpen, readRenewals } from '../day/renewals.ts';
import { createAll, createOne, payOne, Troubles } from '../day/set-up.ts';
import { inParallel } from '../measure/parallel.ts';
import { distributionOf } from '../measure/percentiles.ts';
import { cpuPercentOver } from '../measure/quiet.ts';
import { startMeasuredStack } from '../stack/measured-stack.ts';
import type { ClientOf, MeasuredStack, TemporalKind } from '../stack/measured-stack.ts';
import type { OwnRun } from '../stack/own-run.ts';
import { startReceiver } from '../stack/receiver.ts';
import type { Receiver } from '../stack/receiver.ts';

/** `closed`: a port without a listener. `silent`: accepts connections and never answers. */
export const BAD_ENDPOINTS = ['closed', 'silent'] as const;
export type BadEndpoint = (typeof BAD_ENDPOINTS)[number];

export interface EndpointOptions {
  /** Number of subscriptions whose first event waits for the bad endpoint. */
  readonly streams: number;
  readonly seconds: number;
  readonly temporal: TemporalKind;
}

export type Health = Awaited<ReturnType<typeof measureHealth>>;
export type EndpointFigures = Awaited<ReturnType<typeof runBadEndpoint>>;

export const HEALTHY_PATH = '/healthy';
const EVENTS = ['subscription.created', 'subscription.cycle_charged'];
const RENEWALS = 6;
const DUE_AFTER_MS = 4_000;
const RENEWED_WITHIN_MS = 180_000;
const LOOK_MS = 250;
/** Wait in ms after the last create request. At its end every first delivery attempt has failed or hangs. */
const REST_MS = 10_000;

/** Adds the functions that stop the stack to `closers`. */
export async function runBadEndpoint(
  endpoint: BadEndpoint,
  options: EndpointOptions,
  { dataDir, closers, say }: OwnRun,
) {
  say(`${endpoint} endpoint: starting a separate stack (Temporal: ${options.temporal})`);
  const stack = await startMeasuredStack(dataDir, options.temporal, closers);
  const receiver = await startReceiver(closers);
  const healthy = await stack.addMerchant('Healthy merchant');
  const healthyConfigId = await receiver.subscribe(healthy(), HEALTHY_PATH, EVENTS);
  const setting = { stack, receiver, healthy, healthyConfigId, seconds: options.seconds };

  say(`${endpoint} endpoint: measuring the stack without the endpoint, 2 × ${options.seconds} s`);
  const before = await measureHealth(setting);
  const closedUrl = `http://127.0.0.1:${await freePort()}/`;
  const url = endpoint === 'silent' ? receiver.silentUrl : closedUrl;
  const badConfigId = await receiver.subscribe(stack.merchant(), '', EVENTS, url);

  say(`${endpoint} endpoint: creating ${options.streams} subscriptions`);
  const { throughput: create } = await createAll(stack, options.streams);
  await sleep(REST_MS);
  const first = await deliveriesTo(stack, badConfigId);
  say(
    `${endpoint} endpoint: ${first.pending} deliveries wait; measuring, 2 × ${options.seconds} s`,
  );
  const meanwhile = await measureHealth(setting);
  const last = await deliveriesTo(stack, badConfigId);

  say(
    `${endpoint} endpoint: renewals due ${DUE_AFTER_MS / 1_000} s after an event for the endpoint`,
  );
  const { renewals, missing } = await measureRenewals(stack);
  const problems = [
    ...problemsOf('before', before),
    ...problemsOf('meanwhile', meanwhile),
    ...(missing === 0 ? [] : [`${missing} of ${RENEWALS} renewals were not charged once`]),
    ...(first.pending < options.streams * 0.9
      ? [`only ${first.pending} of ${options.streams} deliveries were waiting`]
      : []),
  ];
  return {
    endpoint,
    before,
    /** Measured while the events of the subscriptions wait for the bad endpoint. */
    meanwhile,
    create,
    /** Number of pending deliveries to the bad endpoint, at the start and at the end of the measurement. */
    pending: { first: first.pending, last: last.pending },
    attemptsRecorded: last.attempts - first.attempts,
    /** Renewals that fall due 4 s after an event for the bad endpoint: seconds late, and ms of the edit before. */
    renewals,
    problems: problems.map((problem) => `${endpoint} endpoint: ${problem}`),
  };
}

interface HealthSetting {
  readonly stack: MeasuredStack;
  readonly receiver: Receiver;
  readonly healthy: ClientOf;
  readonly healthyConfigId: string;
  readonly seconds: number;
}

async function measureHealth(setting: HealthSetting) {
  const idleCpu = await cpuPercentOver(setting.stack, setting.seconds * 1_000);
  return { /** CPU use without requests. */ idleCpu, ...(await measureLoad(setting)) };
}

/** Makes the healthy merchant's calls, and waits for the deliveries of their events. */
export async function measureLoad(setting: HealthSetting) {
  const { stack, receiver, healthy, healthyConfigId, seconds } = setting;
  const since = Date.now();
  const running = startBackgroundLoad(healthy);
  await sleep(seconds * 1_000);
  const load = await running.end();
  const deliveries = await settledDeliveries(stack, receiver, HEALTHY_PATH, healthyConfigId, since);
  return { load, deliveries };
}

async function deliveriesTo(
  { sql }: MeasuredStack,
  configId: string,
): Promise<{ pending: number; attempts: number }> {
  const [row] = await sql<{ pending: number; attempts: number }[]>`
    select (count(*) filter (where state = 'PENDING'))::int as pending,
      coalesce(sum(attempts), 0)::int as attempts
    from webhook_delivery where config_id = ${configId}`;
  return row ?? { pending: 0, attempts: 0 };
}

/** Pays 6 subscriptions, each with events for the bad endpoint, and edits each to fall due 4 s later. */
async function measureRenewals(stack: MeasuredStack) {
  const merchant = stack.merchant();
  const editMs: number[] = [];
  const outcomes = await inParallel(Array.from({ length: RENEWALS }), 2, async () => {
    const { subscriptionId, fwdUrl } = await createOne(merchant);
    await payOne(fwdUrl, new Troubles());
    const editedAt = performance.now();
    const dueAt = Date.now() + DUE_AFTER_MS;
    await merchant.post('/subscription/edit', { subscriptionId, newNextPaymentDate: dueAt });
    editMs.push(performance.now() - editedAt);
    const giveUpAt = dueAt + RENEWED_WITHIN_MS;
    while (Date.now() < giveUpAt) {
      if ((await countOpen(stack, [subscriptionId], dueAt)).unsettled === 0) break;
      await sleep(LOOK_MS);
    }
    const [renewal] = await readRenewals(stack, [subscriptionId], dueAt, []);
    const isRight = renewal?.charges === 1 && renewal.settledAt !== null;
    return { late: isRight ? ((renewal.settledAt ?? 0) - dueAt) / 1_000 : null };
  });
  const late = outcomes.flatMap(({ late: seconds }) => (seconds === null ? [] : [seconds]));
  return {
    renewals: { lateSeconds: distributionOf(late), editMs: distributionOf(editMs) },
    missing: RENEWALS - late.length,
  };
}

function problemsOf(when: string, { load, deliveries }: Health): string[] {
  return [
    ...load.failures.map((failure) => `${when}: ${failure}`),
    ...(deliveries.undelivered === 0
      ? []
      : [`${when}: ${deliveries.undelivered} events of the healthy merchant were not delivered`]),
  ];
}

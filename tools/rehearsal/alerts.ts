import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common';
import proto from '@temporalio/proto';
import { parse, stringify } from 'yaml';
import { createMerchantClient } from '../scripts/client/merchant-client.ts';
import { MONTHLY, subscribe } from '../scripts/client/monthly.ts';
import { startLoad } from './kills.ts';
import { LOOPBACK, secondsSince } from './rehearsal.ts';
import type { Merchant, Rehearsal } from './rehearsal.ts';

const ADDRESS = '127.77.99.1:9090';
const QUIET_MS = 120_000;
const FIRES_WITHIN_MS = 300_000;
const SILENT_WITHIN_MS = 600_000;
const POLL_MS = 500;
const REAL_TIME_SUBSCRIPTIONS = 5;
const CALLERS = 60;
const STUCK = { taskQueue: 'billing', workflowId: 'stuck' };
const MAX_POLLS = 500;
const POLL_WITHIN_MS = 30_000;

interface Drill {
  readonly title: string;
  /** The alert that an operator must see. */
  readonly alert: string;
  readonly harm: () => Promise<unknown>;
  readonly mend: () => Promise<unknown>;
}

/** Starts Prometheus with the committed rules, breaks one part after another, and times the first alerts. */
export async function alertDrills(rehearsal: Rehearsal, merchant: Merchant): Promise<void> {
  const { say } = rehearsal;
  await rehearsal.restart(['api', 'worker'], LOOPBACK);
  await startPrometheus(rehearsal);
  const stopLoad = await startLoad(rehearsal, merchant);
  const drills = [
    ...(await outerDrills(rehearsal, merchant)),
    ...(await databaseDrills(rehearsal, merchant)),
  ];
  await sleep(QUIET_MS);
  const wrong = [...(await firing())].map((alert) => `${alert} fired under load alone`);
  say(`under load for ${QUIET_MS / 1_000} s: ${wrong.join(', ') || 'no alert'}`);
  for (const { title, alert, harm, mend } of drills) {
    const from = performance.now();
    // Those of the drills before: some rules look at many minutes.
    const old = await firing();
    const seen = new Map<string, string>();
    await harm();
    await poll(FIRES_WITHIN_MS, async () => {
      for (const name of await firing()) {
        if (!old.has(name) && !seen.has(name)) seen.set(name, secondsSince(from));
      }
      return seen.has(alert);
    });
    const told = [...seen].map(([name, seconds]) => `${name} after ${seconds} s`);
    say(`${title}: ${told.join(', ') || 'no alert'}`);
    if (!seen.has(alert)) wrong.push(`${alert} did not fire`);
    await mend();
    const mended = performance.now();
    const isSilent = await poll(SILENT_WITHIN_MS, async () => !(await firing()).has(alert));
    if (!isSilent) wrong.push(`an alert still fired after the end of: ${title}`);
    say(isSilent ? `mended, silent after ${secondsSince(mended)} s` : 'mended, but not silent');
  }
  await stopLoad();
  if (wrong.length > 0) throw new Error(wrong.join('; '));
  await rehearsal.expectRight();
}

async function poll(withinMs: number, isDone: () => Promise<boolean>): Promise<boolean> {
  const giveUpAt = performance.now() + withinMs;
  while (performance.now() < giveUpAt) {
    if (await isDone()) return true;
    await sleep(POLL_MS);
  }
  return false;
}

/** Without Watchdog, which fires always. */
async function firing(): Promise<Set<string>> {
  const response = await fetch(`http://${ADDRESS}/api/v1/alerts`);
  const { data } = (await response.json()) as {
    data: { alerts: { state: string; labels: { alertname: string } }[] };
  };
  const names = data.alerts.flatMap(({ state, labels }) =>
    state === 'firing' && labels.alertname !== 'Watchdog' ? [labels.alertname] : [],
  );
  return new Set(names);
}

/** The example of ops/prometheus, with the addresses of this machine in place of names. */
async function startPrometheus(rehearsal: Rehearsal): Promise<void> {
  const { folder, containers } = rehearsal;
  const example = parse(readFileSync('ops/prometheus/prometheus.yml', 'utf8')) as object;
  const ours = containers.filter(({ name }) => /^(api|worker)/.test(name));
  const targets = ours.map(({ address }) => `${address}:9464`);
  const config = join(folder, 'prometheus.yml');
  const installation = readFileSync('ops/prometheus/installation.yml', 'utf8');
  const counted = installation.replaceAll(
    /process: (\w+) }, expr: vector\(1\)/g,
    (_, name: string) => {
      const count = ours.filter((one) => one.name.startsWith(name)).length;
      return `process: ${name} }, expr: vector(${count})`;
    },
  );
  writeFileSync(join(folder, 'installation.yml'), counted);
  const changed = {
    ...example,
    rule_files: [resolve('ops/prometheus/alerts.yml'), 'installation.yml'],
    scrape_configs: [{ job_name: 'perennial', static_configs: [{ targets }] }],
  };
  writeFileSync(config, stringify(changed));
  const [address = '', port = ''] = ADDRESS.split(':');
  const options = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'prometheus')}`,
    `--web.listen-address=${ADDRESS}`,
  ];
  await rehearsal.add({
    name: 'prometheus',
    service: { image: 'prometheus', environment: {} },
    address,
    folder,
    environment: {},
    command: ['prometheus', ...options],
    healthcheck: ['nc', '-z', address, port],
    mounts: [],
  });
}

async function outerDrills(rehearsal: Rehearsal, merchant: Merchant): Promise<Drill[]> {
  const client = createMerchantClient({ ...merchant, patienceMs: 60_000 });
  const connection = await Connection.connect({ address: rehearsal.given('TEMPORAL_ADDRESS') });
  const { workflow } = new Client({ connection });
  const signal = async (name: string, kind: NodeJS.Signals) => {
    for (const one of rehearsal.containers) {
      if (one.name === name) rehearsal.machine.signal(one, kind);
    }
  };
  const ids: string[] = [];
  for (let n = 0; n < REAL_TIME_SUBSCRIPTIONS; n += 1) {
    ids.push(await subscribe(client));
  }
  let dead = '';
  return [
    {
      title: 'an endpoint that refuses connections',
      alert: 'WebhookEndpointsFailing',
      harm: async () => {
        const made = await client.post<{ webhookConfigId: string }>('/webhook', {
          endpoint: 'http://127.0.0.1:9/',
          eventSigner: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
          subscribedEventTypes: ['intent.success'],
        });
        dead = made.webhookConfigId;
      },
      mend: () => client.delete(`/webhook/${dead}`),
    },
    {
      title: 'a gateway that accepts connections and does not answer',
      alert: 'GatewayFailing',
      harm: () => signal('sandbox-gateway', 'SIGSTOP'),
      mend: () => signal('sandbox-gateway', 'SIGCONT'),
    },
    {
      title: 'one of two workers gone',
      alert: 'InstanceMissing',
      harm: () => rehearsal.machine.stop('worker-2'),
      mend: () => rehearsal.up('worker', { variables: LOOPBACK }),
    },
    {
      title: 'a Temporal that accepts connections and does not answer',
      alert: 'TemporalDown',
      harm: () => signal('temporal', 'SIGSTOP'),
      mend: () => signal('temporal', 'SIGCONT'),
    },
    {
      title: `no worker of billing, ${REAL_TIME_SUBSCRIPTIONS} renewals due`,
      alert: 'RenewalsOverdue',
      harm: async () => {
        for (const subscriptionId of ids) {
          const newNextPaymentDate = Date.now() + 2_000;
          await client.post('/subscription/edit', { subscriptionId, newNextPaymentDate });
        }
        await rehearsal.restart(['worker'], { ...LOOPBACK, WORKER_QUEUES: 'charges,webhooks' });
        // For the next drill: only while no other worker polls can the first task be taken here.
        await workflow.start('maintenance', STUCK);
        await startTimer(connection, STUCK);
      },
      mend: () => rehearsal.restart(['worker'], LOOPBACK),
    },
    {
      title: 'a run whose history other code wrote',
      alert: 'WorkflowTasksFailing',
      harm: () => workflow.getHandle(STUCK.workflowId).signal('wake'),
      mend: () => workflow.getHandle(STUCK.workflowId).terminate(),
    },
  ];
}

/** Completes the first task of the run as workflow code would that begins with a timer. */
async function startTimer(connection: Connection, run: typeof STUCK): Promise<void> {
  const { workflowService } = connection;
  const worker = { namespace: 'default', identity: 'other code' };
  const startTimerCommandAttributes = { timerId: '1', startToFireTimeout: msToTs('1 hour') };
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    // The server refuses a poll without a deadline.
    const { taskToken, workflowExecution } = await connection.withDeadline(
      Date.now() + POLL_WITHIN_MS,
      () =>
        workflowService.pollWorkflowTaskQueue({ ...worker, taskQueue: { name: run.taskQueue } }),
    );
    // The tasks of other runs time out after 10 s. Then a worker gets them.
    if (workflowExecution?.workflowId !== run.workflowId) continue;
    const { COMMAND_TYPE_START_TIMER: commandType } = proto.temporal.api.enums.v1.CommandType;
    const commands = [{ commandType, startTimerCommandAttributes }];
    await workflowService.respondWorkflowTaskCompleted({ ...worker, taskToken, commands });
    return;
  }
  throw new Error(`no task of ${run.workflowId} in ${MAX_POLLS} polls`);
}

async function databaseDrills(rehearsal: Rehearsal, merchant: Merchant): Promise<Drill[]> {
  const client = createMerchantClient(merchant);
  const superuser = rehearsal.sql('postgres');
  const locking = await rehearsal.sql('perennial').reserve();
  const enough = new AbortController();
  const keepCalling = async (): Promise<void> => {
    while (!enough.signal.aborted) {
      await client.post('/subscription/create', MONTHLY).catch(() => sleep(POLL_MS));
    }
  };
  const makeReadOnly = async (value: 'on' | 'off') => {
    await superuser.unsafe(`alter database perennial set default_transaction_read_only = ${value}`);
    await superuser`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'perennial'`;
  };
  return [
    {
      title: `a locked table, ${CALLERS} callers`,
      alert: 'PoolExhausted',
      harm: async () => {
        await locking`begin`;
        await locking`lock table outbox_event in access exclusive mode`;
        for (let n = 0; n < CALLERS; n += 1) void keepCalling();
      },
      mend: async () => {
        enough.abort();
        await locking`rollback`;
        locking.release();
      },
    },
    {
      title: 'a read-only database',
      alert: 'DatabaseDown',
      harm: () => makeReadOnly('on'),
      mend: () => makeReadOnly('off'),
    },
  ];
}

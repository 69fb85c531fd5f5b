import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { eq, sql } from 'drizzle-orm';
import { beforeEach, expect, inject } from 'vitest';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { sweepCounts } from '../../db/schema/sweeps.ts';
import { keepMaintenanceRunning } from '../../temporal/maintenance.ts';
import { maintenanceWorkflowId } from '../../workflows/maintenance/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { eventually } from '../support/eventually.ts';

const CHECK_EVERY_MS = 300;
let ends: (() => Promise<void>)[];
let failures: string[];

const test = onDevServerWith({}, 'test');

beforeEach(() => {
  ends = [];
  failures = [];
});

test.afterEach(async ({ env }) => {
  await Promise.all(ends.map((end) => end()));
  await maintenance(env).terminate('the test is over');
});

const maintenance = (env: TestEnvironment) =>
  env.client.workflow.getHandle(maintenanceWorkflowId(env.taskQueuePrefix));

/**
 * Starts the repeated check by which a worker keeps the maintenance workflow running. `checks` counts the checks
 * that found or started the workflow.
 */
function keepRunning(env: TestEnvironment, connection = env.client.connection) {
  let checks = 0;
  let isChecking = false;
  const client = new Client({
    connection,
    interceptors: {
      workflow: [
        {
          startWithDetails: async (input, next) => {
            isChecking = true;
            const started = await next(input).finally(() => (isChecking = false));
            checks += 1;
            return started;
          },
        },
      ],
    },
  });
  const end = keepMaintenanceRunning({
    client,
    taskQueuePrefix: env.taskQueuePrefix,
    checkEveryMs: CHECK_EVERY_MS,
    logger: { warn: (_: unknown, message?: string) => void failures.push(String(message)) },
  });
  ends.push(end);
  return { end, checks: () => checks, isChecking: () => isChecking };
}

/**
 * Inserts a subscription without a workflow and dates it back by ten minutes, so that a sweep has to start the
 * workflow.
 */
async function neverStarted(env: TestEnvironment): Promise<string> {
  const { subscriptionId } = await env.createRowOnly({ createdAt: Date.now() });
  await env.db
    .update(subscriptions)
    .set({ insertedAt: sql`now() - interval '10 minutes'` })
    .where(eq(subscriptions.id, subscriptionId));
  return subscriptionId;
}

const repairs = (env: TestEnvironment) =>
  env.db
    .select({ kind: sweepCounts.kind, repaired: sweepCounts.repaired })
    .from(sweepCounts)
    .orderBy(sweepCounts.kind);

const statusOf = async (env: TestEnvironment, workflowId: string) =>
  (await env.client.workflow.getHandle(workflowId).describe()).status.name;

/** The statuses of all runs of the maintenance workflow, oldest first. */
async function runs(env: TestEnvironment): Promise<string[]> {
  const found: { at: number; status: string }[] = [];
  const query = `WorkflowId = '${maintenanceWorkflowId(env.taskQueuePrefix)}'`;
  for await (const { startTime, status } of env.client.workflow.list({ query })) {
    found.push({ at: startTime.getTime(), status: status.name });
  }
  return found.toSorted((a, b) => a.at - b.at).map(({ status }) => status);
}

test('the maintenance workflow runs once when several workers check it, and gets exactly one new run after an operator terminated it', async ({
  env,
}) => {
  const keepers = [keepRunning(env), keepRunning(env)];
  const checked = (times: number) => {
    const before = keepers.map(({ checks }) => checks());
    return eventually(() =>
      keepers.forEach(({ checks }, n) =>
        expect(checks()).toBeGreaterThanOrEqual((before[n] ?? 0) + times),
      ),
    );
  };
  await checked(4);
  await expect.poll(() => runs(env)).toEqual(['RUNNING']);
  const { runId } = await maintenance(env).describe();
  // Without workers no sweep can run, so the repair below must come from the second run.
  await env.stopWorkers();
  await maintenance(env).terminate('terminated by an operator');
  const subscriptionId = await neverStarted(env);
  await eventually(async () => {
    const { status, runId: nextRunId } = await maintenance(env).describe();
    expect(status.name).toBe('RUNNING');
    expect(nextRunId).not.toBe(runId);
  });
  await env.startWorkers();
  await expect.poll(() => repairs(env)).toEqual([{ kind: 'neverStarted', repaired: 1 }]);
  expect(await statusOf(env, subscriptionWorkflowId(subscriptionId))).toBe('RUNNING');

  // Further checks start nothing.
  await checked(3);
  await expect.poll(() => runs(env)).toEqual(['TERMINATED', 'RUNNING']);
  expect(await repairs(env)).toEqual([{ kind: 'neverStarted', repaired: 1 }]);
  expect(failures).toEqual([]);
});

/** Starts a TCP relay to the Temporal server. The test can cut the relay's connections. */
async function openRelay() {
  const [host, port] = inject('temporalAddress').split(':');
  const sockets = new Set<Socket>();
  let isCut = false;
  const relay = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const onwards = connect(Number(port), host);
    for (const end of [socket, onwards]) {
      sockets.add(end);
      end.on('error', () => undefined);
      end.on('close', () => (socket.destroy(), onwards.destroy()));
    }
    socket.pipe(onwards).pipe(socket);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return {
    address: `127.0.0.1:${(relay.address() as AddressInfo).port}`,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend: () => (isCut = false),
    close: () => relay.close(),
  };
}

test('a failed start of the maintenance workflow is logged and repeated when Temporal is back', async ({
  env,
}) => {
  const relay = await openRelay();
  const [first, second] = [relay.address, relay.address].map((address) => {
    // By default a lost connection is opened again after up to 20 s.
    const channelArgs = { 'grpc.max_reconnect_backoff_ms': 200 };
    const connection = Connection.lazy({ address, channelArgs });
    return { connection, ...keepRunning(env, connection) };
  });
  if (!first || !second) throw new Error('two were started');
  await expect.poll(() => Math.min(first.checks(), second.checks())).toBeGreaterThan(0);
  relay.cut();
  await maintenance(env).terminate('terminated by an operator');
  await expect.poll(() => new Set(failures).size).toBe(1);
  expect(failures[0]).toBe('the maintenance workflow was not started');

  // One process ends during a check. The process waits for the check before it closes its connection.
  await expect.poll(() => first.isChecking()).toBe(true);
  await first.end();
  await first.connection.close();

  relay.mend();
  await expect.poll(() => runs(env)).toEqual(['TERMINATED', 'RUNNING']);
  const made = second.checks();
  await expect.poll(() => second.checks()).toBeGreaterThan(made + 1);
  expect(await runs(env)).toEqual(['TERMINATED', 'RUNNING']);
  await second.end();
  await second.connection.close();
  relay.close();
});

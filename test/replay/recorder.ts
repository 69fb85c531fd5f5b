import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';
import { eq } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import type { TestAPI, TestFunction } from 'vitest';
import { paymentMethods } from '../../db/schema/customers.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { NewSubscription } from '../support/subscriptions.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const HISTORIES = 'test/replay/histories';
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
/** Each release has a folder for the paths that it added. */
const FOLDER = `${HISTORIES}/${version}`;
mkdirSync(FOLDER, { recursive: true });

/**
 * Returns a function that declares the recording of a path's workflow histories on real servers. The recording is
 * skipped if a release has recorded the path, because its runs may still be asleep.
 */
export function recorderOn<Fixtures>(test: TestAPI<Fixtures>) {
  return (path: string, run: TestFunction<Fixtures>): void => {
    const isRecorded = readdirSync(HISTORIES).some((folder) =>
      existsSync(`${HISTORIES}/${folder}/${path}-1.json`),
    );
    // oxlint-disable-next-line vitest/valid-title, vitest/expect-expect -- the caller has both
    test.skipIf(isRecorded)(`the history of the path ${path}`, run);
  };
}

/** Writes the history of every run of a workflow to `<path>-<n>.json`. Returns the number of runs. */
export async function keep(
  { client }: Pick<TestEnvironment, 'client'>,
  path: string,
  workflowId: string,
): Promise<number> {
  const historyOf = (runId?: string) => client.workflow.getHandle(workflowId, runId).fetchHistory();
  const latest = await historyOf();
  const started = latest.events?.[0]?.workflowExecutionStartedEventAttributes;
  let runId = started?.firstExecutionRunId;
  let count = 0;
  while (runId) {
    const history = await historyOf(runId);
    count += 1;
    await writeFile(`${FOLDER}/${path}-${count}.json`, withoutThisMachine(historyToJSON(history)), {
      flag: 'wx',
    });
    const end = history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    runId = end?.newExecutionRunId;
  }
  return count;
}

/** Removes stack traces and process names, because they identify the recording machine. */
function withoutThisMachine(json: string): string {
  const kept: unknown = JSON.parse(json, (key, value: unknown) => {
    if (key === 'stackTrace') return '';
    if (key === 'identity') return 'worker';
    // The name of a sticky task queue contains the process and its host.
    return typeof value === 'string' && /^\d+@/.test(value) ? 'worker-sticky' : value;
  });
  return `${JSON.stringify(kept)}\n`;
}

export const START = Date.parse('2027-01-31T00:00:00Z');

/** Creates a subscription on a test clock at START. */
export async function begin(env: TestEnvironment, terms: NewSubscription['terms'] = {}) {
  const clock = await env.createClock(START);
  const ref = await env.create({ createdAt: START, testClockId: clock, terms });
  return { clock, ref };
}

export async function pay(
  env: TestEnvironment,
  ref: SubscriptionRef,
  card?: string,
): Promise<void> {
  await env.workflows.execute(ref, checkoutCommand(await env.token(card)));
}

/**
 * Sends a command. The id of the command consists of kind and subscription; `nth` makes the id of a further
 * command different.
 */
export const send = (
  { workflows }: TestEnvironment,
  ref: SubscriptionRef,
  command: Omit<Command, 'commandId'> & Record<string, unknown>,
  nth = '',
) =>
  workflows.execute(ref, {
    ...command,
    commandId: `${command.kind}:${ref.subscriptionId}${nth}`,
  } as Command);

export const decline = (
  { control }: TestEnvironment,
  { subscriptionId }: SubscriptionRef,
  count: number,
) => control('POST', '/control/declines', { subscriptionId, code: 'card_declined', count });

/** Creates a subscription whose second cycle is declined. */
export async function unpaid(env: TestEnvironment) {
  const { clock, ref } = await begin(env, { cycleCount: 3 });
  await pay(env, ref);
  await decline(env, ref, 1);
  await env.advance(clock, '2027-02-28T00:00:00Z');
  return { clock, ref };
}

/**
 * Gives one payment method an empty gateway id, which the gateway rejects. A method that had the empty id
 * gets the id `gone`.
 */
export async function spoilMethod({ db }: TestEnvironment, id: string | null): Promise<void> {
  await db
    .update(paymentMethods)
    .set({ gatewayMethodId: 'gone' })
    .where(eq(paymentMethods.gatewayMethodId, ''));
  await db
    .update(paymentMethods)
    .set({ gatewayMethodId: '' })
    .where(eq(paymentMethods.id, id ?? ''));
}

export function workflowOf({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) {
  return client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
}

export const keepSubscription = (env: TestEnvironment, path: string, ref: SubscriptionRef) =>
  keep(env, path, subscriptionWorkflowId(ref.subscriptionId));

/** As {@link keepSubscription}, after the end of the subscription’s workflow. */
export async function keepEnded(
  env: TestEnvironment,
  path: string,
  ref: SubscriptionRef,
): Promise<number> {
  await workflowOf(env, ref).result();
  return keepSubscription(env, path, ref);
}

/** Waits until a workflow’s current run has more than `events` events. */
export const isLongerThan = (
  handle: Pick<WorkflowHandle, 'describe'>,
  events: number,
  withinMs = 20_000,
): Promise<void> =>
  vi.waitFor(
    async () => expect((await handle.describe()).historyLength).toBeGreaterThan(events),
    withinMs,
  );

/** Waits until another run has followed `runId`, which has continued as new. */
export const isFollowed = (
  handle: Pick<WorkflowHandle, 'describe'>,
  runId: string,
): Promise<void> =>
  vi.waitFor(async () => expect((await handle.describe()).runId).not.toBe(runId), 60_000);

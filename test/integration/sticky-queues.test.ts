import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { releaseStickyQueue } from '../../runtime/sticky-queues.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { startOurProcess } from '../support/our-process.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
});

afterAll(async () => {
  await world.close();
  await server.close();
});

test("a renewal that waits for a killed worker's cache is made by another, long before the queue's limit [D-32]", async () => {
  await world.stopWorkers();
  const doomed = await startOurProcess('worker.ts', world.environment);
  const ref = await world.create({ createdAt: Date.now(), terms: { cycleCount: 2 } });
  const workflowId = subscriptionWorkflowId(ref.subscriptionId);
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const dueAt = Date.now() + 1_500;
  await world.workflows.execute(ref, {
    kind: 'edit',
    commandId: `edit:${randomUUID()}`,
    newNextPaymentAt: dueAt,
  });
  // Its worker is alive: there is nothing to release.
  expect(await releaseStickyQueue(world.client, workflowId)).toBe(0);
  doomed.kill();
  await doomed.gone;

  // The timer fires, and the task goes to the dead worker's queue.
  await vi.waitFor(async () => expect(await releaseStickyQueue(world.client, workflowId)).toBe(1), {
    timeout: 60_000,
    interval: 250,
  });
  await world.startWorkers();
  await vi.waitFor(
    async () => expect(await world.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 2 }),
    { timeout: 30_000 },
  );
  const { history } = await world.client.workflowService.getWorkflowExecutionHistory({
    namespace: 'default',
    execution: { workflowId },
  });
  const failures = (history?.events ?? []).flatMap(
    (event) => event.workflowTaskFailedEventAttributes?.identity ?? [],
  );
  expect(failures).toEqual(['perennial: sticky queue release']);
  expect((await world.book(ref)).map(({ outcome, sentCount }) => [outcome, sentCount])).toEqual([
    ['succeeded', 1],
    ['succeeded', 1],
  ]);
  expect(await releaseStickyQueue(world.client, workflowId)).toBe(0);
});

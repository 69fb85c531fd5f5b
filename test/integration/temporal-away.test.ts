import { Client, Connection } from '@temporalio/client';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { subscriptionRows } from '../../db/repositories/subscriptions.ts';
import { DomainError } from '../../domain/errors.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createSubscriptionWorkflows } from '../../runtime/subscription-workflows.ts';
import type { SubscriptionWorkflows } from '../../runtime/subscription-workflows.ts';
import { checkoutCommand, connectDevServer, createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;
/** Takes connections and never says anything: worse than one that is down. */
const silent = createServer();

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
});

afterAll(async () => {
  silent.close();
  await world.close();
  await server.close();
});

function portOf(): number {
  const address = silent.address();
  return typeof address === 'object' && address ? address.port : 0;
}

/** The way to workflows as the API has it, with nobody at the other end. */
function towards(address: string): { workflows: SubscriptionWorkflows; close(): Promise<void> } {
  const connection = Connection.lazy({ address });
  const workflows = createSubscriptionWorkflows({
    client: new Client({ connection }),
    rows: subscriptionRows(world.db),
    taskQueuePrefix: world.taskQueuePrefix,
    logger: createLogger({ name: 'away', level: 'silent' }),
  });
  return { workflows, close: () => connection.close() };
}

describe.each([
  ['refuses connections', () => '127.0.0.1:1'],
  ['takes them and never answers', () => `127.0.0.1:${portOf()}`],
])('a Temporal that %s', (_, address) => {
  test('does not hold up a create, and the subscription starts when it is back [design §5]', async () => {
    const away = towards(address());
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    expect(await away.workflows.start(ref)).toBe(false);
    await away.workflows.wakeStream({ merchantId: ref.merchantId, streamId: ref.subscriptionId });
    await away.close();
    await world.workflows.revive(ref);
    const paid = await world.workflows.execute(ref, checkoutCommand(await world.token()));
    expect(paid).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('makes a command a 503 that may be repeated, and it is carried out once [D-17]', async () => {
    const away = towards(address());
    const ref = await world.create({ createdAt: Date.now() });
    const payment = checkoutCommand(await world.token());
    await expect(away.workflows.execute(ref, payment)).rejects.toThrow(
      new DomainError('service_unavailable'),
    );
    await away.close();
    const again = await world.workflows.execute(ref, payment);
    expect(again).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    expect(await world.workflows.execute(ref, payment)).toEqual(again);
    expect(await world.book(ref)).toHaveLength(1);
  });
});

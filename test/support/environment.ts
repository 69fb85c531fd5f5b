import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { paymentsIn } from './payments.ts';
import { openShop } from './shop.ts';
import { connectDevServer, startTimeSkippingServer } from './temporal-servers.ts';
import type { TemporalPlace } from './temporal-servers.ts';
import { createEnvironment } from './test-environment.ts';

type Options = Parameters<typeof createEnvironment>[1];

/** `file`: the tests of a file share one test environment. `test`: each test has its own. */
type Sharing = 'file' | 'test';

/**
 * As {@link onDevServer}, with options. A file calls this instead of `override`, because Vitest would
 * keep an override for the next files of the process.
 */
export const onDevServerWith = (options: Options, per?: Sharing) =>
  testOn(connectDevServer, options, per);

/** As {@link onDevServerWith}, on its own time-skipping Temporal server. */
export const onTimeSkippingServerWith = (options: Options, per?: Sharing) =>
  testOn(startTimeSkippingServer, options, per);

/** A `test` function with a test environment for each file, on the test run's Temporal dev server. */
export const onDevServer = testOn(connectDevServer);

/** As {@link onDevServer}, on its own time-skipping Temporal server. */
export const onTimeSkippingServer = testOn(startTimeSkippingServer);

/** Each fixture starts when a test first uses it. */
function testOn<Server extends TemporalPlace & { teardown(): Promise<void> }>(
  connect: () => Promise<Server>,
  options: Options = {},
  per: Sharing = 'file',
) {
  // The cast declares the scope `'file'` even if it is `'test'`: the types of `beforeAll` accept only fixtures with
  // the scope `'file'`.
  const scope = { scope: per as 'file' };
  return (
    test
      // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
      .extend('server', scope, async ({}, { onCleanup }) => {
        const server = await connect();
        onCleanup(() => server.teardown());
        return server;
      })
      .extend('env', scope, async ({ server }, { onCleanup }) => {
        const env = await createEnvironment(server, options);
        onCleanup(() => env.close());
        return env;
      })
      .extend('payments', scope, async ({ env }) => paymentsIn(env))
      .extend('shop', scope, async ({ env }, { onCleanup }) => {
        const shop = await openShop(env);
        onCleanup(() => shop.close());
        return shop;
      })
      /** The address of a server that accepts connections and never answers. */
      // oxlint-disable-next-line eslint/no-empty-pattern -- as above
      .extend('silentAddress', scope, async ({}, { onCleanup }) => {
        const silent = createServer().listen(0, '127.0.0.1');
        onCleanup(() => void silent.close());
        await once(silent, 'listening');
        return `127.0.0.1:${(silent.address() as AddressInfo).port}`;
      })
  );
}

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

/** The tests that share a test environment: those of the file, or none. */
type Sharing = 'file' | 'test';

/** The `test` function of one file, with a test environment on the test run's Temporal dev server. */
export const onDevServer = (options?: Options, per?: Sharing) =>
  testOn(connectDevServer, options, per);

/** As {@link onDevServer}, on a time-skipping Temporal server of its own. */
export const onTimeSkippingServer = (options?: Options, per?: Sharing) =>
  testOn(startTimeSkippingServer, options, per);

/**
 * Each fixture starts when a test first uses it. Every test file must make its own call: with
 * `isolate: false`, Vitest closes the file-scoped fixtures of a shared module only in its first file.
 */
function testOn<Server extends TemporalPlace & { teardown(): Promise<void> }>(
  connect: () => Promise<Server>,
  options: Options,
  per: Sharing = 'file',
) {
  // `beforeAll` may use a fixture only with the scope `file`.
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

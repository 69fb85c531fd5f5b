import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { runCommand } from '../../tools/embedded/run-command.ts';
import { onDevServer } from '../support/environment.ts';
import {
  buildGoLife,
  buildOpenapiGoLife,
  buildOpenapiJavaLife,
  generatePythonClient,
} from '../support/generated-clients/generate.ts';
import { payCheckout } from '../support/pay-checkout.ts';

const LINES = [
  'paid ACTIVE 1999 11 true',
  'listed 1 true',
  'cancelled 200 ENDED cancelled',
  'refused 400 operation_not_allowed',
];

/** To download and compile a generator, once. */
const TEST_TIMEOUT_MS = 12 * 60_000;
const LIFE_TIMEOUT_MS = 60_000;

const test = onDevServer
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('folder', async ({}, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), 'perennial-client-'));
    onCleanup(() => rm(folder, { recursive: true, force: true }));
    return folder;
  });

/** `examples.test.ts` does the same with a client in TypeScript. */
describe('a client that is generated from the OpenAPI document', () => {
  test(
    'creates, pays, reads, lists and cancels a subscription in Go [D-§7]',
    { timeout: TEST_TIMEOUT_MS },
    async ({ shop, folder }) => {
      const life = await buildGoLife(folder);
      const stdout = await runCommand(life, [], {
        timeoutMs: LIFE_TIMEOUT_MS,
        environment: shop.variables,
      });
      expect(stdout.trim().split('\n')).toEqual(LINES);
    },
  );

  test(
    'creates, pays, reads, lists and cancels a subscription in Python [D-§7]',
    { timeout: TEST_TIMEOUT_MS },
    async ({ shop, folder }) => {
      const python = await generatePythonClient(folder);
      const stdout = await runCommand(python, ['test/support/generated-clients/life.py'], {
        timeoutMs: LIFE_TIMEOUT_MS,
        environment: { ...shop.variables, PYTHONPATH: folder },
      });
      expect(stdout.trim().split('\n')).toEqual(LINES);
    },
  );

  test.for([
    ['Go', buildOpenapiGoLife],
    ['Java', buildOpenapiJavaLife],
  ] as const)(
    'renews, lists by two statuses and cancels a subscription in %s of openapi-generator [D-§7]',
    { timeout: TEST_TIMEOUT_MS },
    async ([, build], { env, shop, folder }) => {
      const [program = '', ...args] = await build(folder);
      const options = { timeoutMs: LIFE_TIMEOUT_MS, environment: shop.variables };
      const life = (...rest: string[]) => runCommand(program, [...args, ...rest], options);
      const [subscriptionId = '', clock = ''] = (await life('create')).trim().split(' ');
      const ref = { merchantId: env.merchantId, subscriptionId };
      await env.confirmStart(ref);
      await payCheckout(env, ref);
      const stdout = await life('live', subscriptionId, clock);
      expect(stdout.trim().split('\n')).toEqual([
        'paid ACTIVE 1999 11',
        'renewed ACTIVE 10',
        'listed 1',
        'listed 0',
        'cancelled ENDED cancelled',
        'listed 1',
        'refused 400 operation_not_allowed',
      ]);
    },
  );
});

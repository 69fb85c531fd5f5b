import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { expect, inject, test as base } from 'vitest';
import { createDb } from '../../db/client.ts';
import { changeGateway } from '../../db/repositories/merchants/gateways.ts';
import {
  countSealedBefore,
  reportUnreadableSecrets,
  resealAll,
} from '../../db/repositories/merchants/sealed-secrets.ts';
import {
  createWebhookConfig,
  deleteWebhookConfig,
  updateWebhookConfig,
} from '../../db/repositories/webhooks/configs.ts';
import { merchantGateways } from '../../db/schema/merchants.ts';
import { webhookConfigs } from '../../db/schema/webhooks.ts';
import { newId } from '../../domain/ids.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { merchantCommand } from '../../cli/merchant/command.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { createTestDatabase } from '../support/database.ts';
import { startOurProcess } from '../support/our-process.ts';
import { runCommand } from '../support/run-command.ts';

const FORMER = randomBytes(32);
const NEXT = randomBytes(32);
type Program = 'api/main.ts' | 'worker.ts';
const ACCOUNT = 'stripe:acct_rotated';
const textOf = (...keys: Buffer[]) => keys.map((key) => key.toString('base64')).join(',');

/** One merchant with two endpoints, a deleted endpoint and an account, whose 7 secrets are sealed with the former key. */
const test = base
  .extend('former', { scope: 'file' }, () => createSealing([FORMER]))
  .extend('shop', async ({ former }, { onCleanup }) => {
    const database = await createTestDatabase();
    const { db, close } = createDb({
      url: database.url,
      poolSize: 3,
      applicationName: 'test-keys',
    });
    onCleanup(async () => {
      await close();
      await database.drop();
    });
    const settings = {
      DATABASE_URL: database.url,
      CREDENTIAL_PEPPER: 'pepper-of-the-key-rotation-tests-0000001',
    };
    const run = (encryptionKey: string, ...args: string[]) =>
      runCommand(merchantCommand, { ...settings, ENCRYPTION_KEY: encryptionKey }, args);
    const made = await run(textOf(FORMER), 'create', '--name', 'Shop', '--json');
    const { merchantId } = JSON.parse(made.stdout) as { merchantId: string };
    const at = Date.now();
    const addEndpoint = async (): Promise<string> => {
      const configId = newId('whc', at, randomBytes);
      const sealedSigner = former.seal(`${configId} first`, configId);
      const endpoint = { merchantId, configId, url: 'https://shop.example', sealedSigner, at };
      await createWebhookConfig(db, { ...endpoint, eventTypes: [] });
      return configId;
    };
    const [plain, changed, deleted] = [
      await addEndpoint(),
      await addEndpoint(),
      await addEndpoint(),
    ];
    await updateWebhookConfig(db, {
      merchantId,
      configId: changed,
      url: 'https://shop.example',
      eventTypes: [],
      reseal: () => ({
        sealedSigner: former.seal(`${changed} second`, changed),
        isStoredReadable: true,
      }),
      at,
    });
    await deleteWebhookConfig(db, { merchantId, configId: deleted, at });
    const bound = accountBinding(merchantId, ACCOUNT);
    for (const turn of ['first', 'second']) {
      await changeGateway(db, {
        merchantId,
        name: ACCOUNT,
        mode: 'test',
        key: { sealed: former.seal('sk_test_key', bound), ending: '_key' },
        sealedWebhookSecret: former.seal(`whsec_${turn}`, bound),
        makeCurrent: true,
        nowAt: at,
      });
    }
    /** Every secret, decrypted with these keys. */
    const openAll = async (...keys: Buffer[]) => {
      const sealing = createSealing(keys);
      const configs = await db.select().from(webhookConfigs).orderBy(webhookConfigs.id);
      const accounts = await db.select().from(merchantGateways);
      const each = (id: string, ...sealed: (Buffer | null)[]) =>
        sealed.map((bytes) => bytes && sealing.open(bytes, id));
      return [
        ...configs.flatMap((row) => each(row.id, row.sealedSigner, row.sealedPreviousSigner)),
        ...accounts.flatMap((row) =>
          each(bound, row.sealedKey, row.sealedWebhookSecret, row.sealedPreviousWebhookSecret),
        ),
      ];
    };
    /** Starts and stops a process. Returns its errors. */
    const start = async (program: Program, changes: Readonly<Record<string, string>>) => {
      const started = await startOurProcess(program, {
        ...settings,
        GATEWAY_KEY: 'gateway-key-of-the-key-rotation-tests-01',
        SESSION_KEY: 'session-key-of-the-key-rotation-tests-01',
        TEMPORAL_ADDRESS: inject('temporalAddress'),
        TASK_QUEUE_PREFIX: 'key-rotation-',
        WORKER_QUEUES: 'webhooks',
        API_PORT: String(await freePort()),
        LOG_LEVEL: 'error',
        ...changes,
      });
      await started.stop();
      const { output } = await started.gone;
      return output
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { level: unknown; msg: string })
        .map(({ level, msg }) => [level, msg]);
    };
    return { db, settings, run, start, plain, openAll };
  });

const UNREADABLE =
  'ENCRYPTION_KEY cannot decrypt 3 secrets of webhook endpoints and 3 of gateway accounts. ' +
  'Their webhooks are not sent and their charges not made. Append the key that encrypted them, after a comma.';

test('reencrypt seals every secret with the first key, and no process needs the former key then [D-55]', async ({
  shop,
}) => {
  const before = await shop.openAll(FORMER);
  expect(before.filter((text) => text !== null)).toHaveLength(7);
  expect(await shop.run(textOf(NEXT, FORMER), 'reencrypt')).toEqual({
    code: 0,
    stdout: '7 secrets are encrypted anew with the first key of ENCRYPTION_KEY.\nNone remains.\n',
    stderr: '',
  });
  expect(await shop.openAll(NEXT)).toEqual(before);
  const again = await shop.run(textOf(NEXT), 'reencrypt', '--json');
  expect(JSON.parse(again.stdout)).toEqual({ done: 0, remaining: 0 });
});

test('an interrupted reencryption keeps its finished batches, and a repeat continues [D-55]', async ({
  shop,
}) => {
  const sealing = createSealing([NEXT, FORMER]);
  const [currentKeyId] = sealing.keyIds;
  let left = 3;
  const interrupted = resealAll(shop.db, {
    currentKeyId: currentKeyId!,
    batch: 1,
    inBatch: async () => undefined,
    reseal: ({ id, merchantId, owner }, stored) => {
      if ((left -= 1) < 0) throw new Error('killed');
      const bound = owner === 'webhook endpoint' ? id : accountBinding(merchantId, id);
      return sealing.seal(sealing.open(stored, bound), bound);
    },
  });
  await expect(interrupted).rejects.toThrow('killed');
  expect(await countSealedBefore(shop.db, currentKeyId!)).toBe(4);
  const rest = await shop.run(textOf(NEXT, FORMER), 'reencrypt', '--json');
  expect(JSON.parse(rest.stdout)).toEqual({ done: 4, remaining: 0 });
  expect(await shop.openAll(NEXT)).toHaveLength(9);
});

test('reencrypt leaves a secret that no key of the ring can decrypt, and exits with 1 and the number of those [D-55]', async ({
  shop,
}) => {
  await shop.run(textOf(NEXT, FORMER), 'reencrypt');
  const sealedSigner = createSealing([randomBytes(32)]).seal('lost', shop.plain);
  await shop.db
    .update(webhookConfigs)
    .set({ sealedSigner })
    .where(eq(webhookConfigs.id, shop.plain));
  expect(await shop.run(textOf(NEXT, FORMER), 'reencrypt')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      '0 secrets are encrypted anew with the first key of ENCRYPTION_KEY. ' +
      '1 remain: none of its keys can decrypt them.\n',
  });
});

test('a process whose ring lacks the key of stored secrets says so once at its start, and a process with the key does not [D-55]', async ({
  shop,
}) => {
  const start = (program: Program, ...keys: Buffer[]) =>
    shop.start(program, { ENCRYPTION_KEY: textOf(...keys) });
  expect(await start('api/main.ts', NEXT)).toEqual([['error', UNREADABLE]]);
  expect(await start('worker.ts', NEXT)).toEqual([['error', UNREADABLE]]);
  expect(await start('api/main.ts', NEXT, FORMER)).toEqual([]);
});

test('an API without the pepper of working credentials does not start, and names CREDENTIAL_PEPPER [D-20]', async ({
  shop,
}) => {
  const start = (pepper: string) =>
    shop.start('api/main.ts', { ENCRYPTION_KEY: textOf(FORMER), CREDENTIAL_PEPPER: pepper });
  const next = 'pepper-of-the-key-rotation-tests-0000002';
  await expect(start(next)).rejects.toThrow(
    'Cannot start: the settings are incomplete or wrong.\n' +
      '  - CREDENTIAL_PEPPER: 1 working credentials were made with another value. ' +
      'Append this value after a comma, or revoke the credentials.',
  );
  expect(await start(`${next}, ${shop.settings.CREDENTIAL_PEPPER}`)).toEqual([]);
});

test('secrets of deleted endpoints and expired former secrets are not reported at a start [D-55]', async ({
  shop,
}) => {
  const lines: string[] = [];
  const report = () =>
    reportUnreadableSecrets(shop.db, createSealing([NEXT]).keyIds, (line) => lines.push(line));
  const past = Date.now() - 1_000;
  await shop.db.update(webhookConfigs).set({ previousSignerUntil: past });
  await shop.db.update(merchantGateways).set({ previousWebhookSecretUntil: past });
  await report();
  expect(lines).toEqual([expect.stringContaining('2 secrets of webhook endpoints and 2 of gate')]);
  await shop.db.update(webhookConfigs).set({ deletedAt: past });
  await shop.db.delete(merchantGateways);
  await report();
  expect(lines).toHaveLength(1);
});

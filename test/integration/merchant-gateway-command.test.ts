import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createDb } from '../../db/client.ts';
import { findMerchantGateways, gatewayRows } from '../../db/repositories/merchants/gateways.ts';
import { listMerchants } from '../../db/repositories/merchants/merchants.ts';
import { loadOrMakeSecrets } from '../../tools/embedded/secrets.ts';
import { secretsFile } from '../../cli/command-line/start-secrets.ts';
import { createMerchantGateways } from '../../gateways/merchant-gateways.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { createTestDatabase } from '../support/database.ts';
import { runCommand } from '../support/run-command.ts';
import { merchantCommand } from '../../cli/merchant/command.ts';
import { onStripe } from '../support/stripe.ts';

/** `npm run merchant -- gateway` against a database of its own and the Stripe double. */
const test = onStripe.extend('operator', { scope: 'file' }, async ({ world }, { onCleanup }) => {
  const database = await createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'perennial-keys-'));
  const { db, close } = createDb({
    url: database.url,
    poolSize: 4,
    applicationName: 'test-merchant-gateway-command',
  });
  const encryptionKey = randomBytes(32);
  const sandbox = createSandboxClient({ url: 'http://127.0.0.1:1', publicUrl: '', apiKey: '' });
  onCleanup(async () => {
    await sandbox.close();
    await close();
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const environment = {
    DATABASE_URL: database.url,
    CREDENTIAL_PEPPER: 'pepper-of-the-operator-tests-00000000001',
    ENCRYPTION_KEY: encryptionKey.toString('base64'),
    STRIPE_API_URL: world.proxy.url,
  };
  let files = 0;
  const run = (...args: string[]) => runCommand(merchantCommand, environment, args);
  return {
    db,
    run,
    /** Runs `gateway <merchant> stripe …`. */
    stripe: (merchantId: string, ...args: string[]) =>
      run('gateway', merchantId, 'stripe', ...args),
    /** Runs the command with other variables. An empty variable counts as absent. */
    runWith: (changes: Readonly<Record<string, string>>, ...args: string[]) =>
      runCommand(merchantCommand, { ...environment, ...changes }, args),
    /** Makes a data folder of `npm start` whose secrets are not those of this database's API. */
    foreignDataFolder: async (demoDatabaseUrl: string): Promise<string> => {
      const dataDir = await mkdtemp(join(folder, 'data-'));
      loadOrMakeSecrets(secretsFile(dataDir));
      await writeFile(join(dataDir, 'demo.json'), JSON.stringify({ databaseUrl: demoDatabaseUrl }));
      return dataDir;
    },
    runWithInput: (input: string, ...args: string[]) =>
      runCommand(merchantCommand, environment, args, input),
    /** Creates a merchant in test mode and returns its id. */
    merchant: async (): Promise<string> => {
      const { stdout } = await run('create', '--name', 'Shop', '--json');
      return (JSON.parse(stdout) as { merchantId: string }).merchantId;
    },
    file: async (secret: string): Promise<string> => {
      const path = join(folder, `secret-${(files += 1)}`);
      await writeFile(path, `${secret}\n`, { mode: 0o600 });
      return path;
    },
    registry: () =>
      createMerchantGateways({
        sandbox,
        ...gatewayRows(db),
        sealing: createSealing([encryptionKey]),
        timeoutMs: 20_000,
        doubleUrls: { stripe: world.proxy.url },
      }),
  };
});

test('the account that the operator added last is current until the operator makes another account current [D-20]', async ({
  world,
  operator,
}) => {
  const merchantId = await operator.merchant();
  const [first, second] = [await world.account(), await world.account()];
  expect(await operator.run('gateway', merchantId)).toEqual({
    code: 0,
    stdout: `Merchant ${merchantId}, test mode:\n  New cards go to the sandbox.\n`,
    stderr: '',
  });
  const keyFile = await operator.file(first.secretKey);
  const secretFile = await operator.file('whsec_first');
  const files = ['--key-file', keyFile, '--webhook-secret-file', secretFile];
  expect(await operator.stripe(merchantId, ...files)).toEqual({
    code: 0,
    stdout: `Merchant ${merchantId}, test mode:
  stripe  ${first.id}  key …${first.secretKey.slice(-4)}  webhook secret set  current
`,
    stderr: '',
  });
  const fromInput = ['gateway', merchantId, 'stripe', '--key-file', '-', '--json'];
  const added = await operator.runWithInput(`${second.secretKey}\n`, ...fromInput);
  const row = ({ id, secretKey }: typeof first, isCurrent: boolean, webhookSecret: string) => ({
    gateway: 'stripe',
    accountId: id,
    isCurrent,
    keyEnding: secretKey.slice(-4),
    webhookSecret,
    updatedAt: expect.stringMatching(/^\d{4}-/) as string,
  });
  expect(JSON.parse(added.stdout)).toEqual({
    merchantId,
    mode: 'test',
    gateways: [row(first, false, 'set'), row(second, true, 'none')],
  });

  const back = await operator.stripe(merchantId, '--account', first.id, '--current');
  expect(back.stdout).toBe(`Merchant ${merchantId}, test mode:
  stripe  ${first.id}  key …${first.secretKey.slice(-4)}  webhook secret set  current
  stripe  ${second.id}  key …${second.secretKey.slice(-4)}  webhook secret none
`);
  const gateway = await operator.registry().forNewMethods(merchantId);
  expect(gateway.name).toBe(`stripe:${first.id}`);
});

test('a new key of an account replaces the old key, and a new webhook secret leaves the old one valid for 24 hours [D-20]', async ({
  world,
  operator,
}) => {
  const merchantId = await operator.merchant();
  const [account, current] = [await world.account(), await world.account()];
  const enter = (...args: string[]) => operator.stripe(merchantId, ...args);
  await enter('--key-file', await operator.file(account.secretKey));
  await enter('--webhook-secret-file', await operator.file('whsec_old'));
  await enter('--key-file', await operator.file(current.secretKey));

  const secretKey = `${account.secretKey}_new1`;
  await world.control('POST', 'accounts/key', { accountId: account.id, secretKey });
  const replaced = await enter(
    '--key-file',
    await operator.file(secretKey),
    '--webhook-secret-file',
    await operator.file('whsec_new'),
  );
  expect(replaced.stdout).toBe(`Merchant ${merchantId}, test mode:
  stripe  ${account.id}  key …new1  webhook secret set
  stripe  ${current.id}  key …${current.secretKey.slice(-4)}  webhook secret none  current
`);
  const rows = await findMerchantGateways(operator.db, merchantId);
  const [row] = rows?.accounts ?? [];
  const overlapMs = (row?.previousWebhookSecretUntil ?? 0) - (row?.updatedAt ?? 0);
  expect(overlapMs).toBe(86_400_000);
  const gateway = await operator.registry().of(merchantId, `stripe:${account.id}`);
  expect(
    await gateway.lookup({
      key: 'charge:in_none:1',
      gatewayChargeId: null,
      amountMinor: 1,
      currency: 'USD',
    }),
  ).toEqual({ kind: 'absent' });
});

test('a refused account command changes nothing, and its message contains neither the key nor the webhook secret [D-20]', async ({
  world,
  operator,
}) => {
  const [merchantId, other] = [await operator.merchant(), await operator.merchant()];
  const account = await world.account();
  await operator.stripe(other, '--key-file', await operator.file(account.secretKey));
  const cases: [args: string[], message: string][] = [
    [
      ['--key-file', await operator.file('sk_live_canary0123456789')],
      'This is a live key, and the merchant is in test mode.\n',
    ],
    [
      ['--key-file', await operator.file('pk_test_canary0123456789')],
      'The key must look like sk_test_… or rk_test_….\n',
    ],
    [
      ['--key-file', await operator.file('sk_test_canary0123456789')],
      'Nothing was changed: Stripe refuses the key.\n',
    ],
    [['--key-file', '/nowhere/key'], '/nowhere/key cannot be read.\n'],
    [
      ['--key-file', await operator.file(account.secretKey)],
      `${account.id} belongs to another merchant.\n`,
    ],
    [
      ['--key-file', await operator.file(account.secretKey), '--account', 'acct_other'],
      `The key belongs to ${account.id}, not to acct_other.\n`,
    ],
    [
      ['--webhook-secret-file', await operator.file('whsec_canary0123456789')],
      'Give the key of the account: --key-file <file>.\n',
    ],
    [
      ['--webhook-secret-file', await operator.file('canary0123456789'), '--account', account.id],
      'The webhook secret must look like whsec_….\n',
    ],
    [['--account', 'acct_none', '--current'], 'The merchant has no account acct_none.\n'],
  ];
  const secret = ['--webhook-secret-file', await operator.file('whsec_canary0123456789')];
  const created = await operator.run('create', '--name', 'Shop', ...secret);
  expect(created).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Give the key of the account: --key-file <file>.\n',
  });
  for (const [args, stderr] of cases) {
    const refused = await operator.stripe(merchantId, ...args);
    expect(refused).toEqual({ code: 1, stdout: '', stderr });
  }
  await world.faults('POST', 'faults', { path: '/v1/account', count: 1, fault: 'lose_answer' });
  const keyFile = await operator.file(account.secretKey);
  expect(await operator.stripe(merchantId, '--key-file', keyFile)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Nothing was changed: Stripe did not answer.\n',
  });
  expect(await operator.run('gateway', 'mer_nobody')).toMatchObject({
    code: 1,
    stderr: 'There is no merchant mer_nobody.\n',
  });
  expect(await findMerchantGateways(operator.db, merchantId)).toEqual({
    mode: 'test',
    accounts: [],
  });
});

test('a live merchant is created together with a live account and not without one [D-20]', async ({
  world,
  operator,
}) => {
  const create = (...args: string[]) =>
    operator.run('create', '--name', 'Live', '--mode', 'live', ...args);
  const before = await listMerchants(operator.db);
  expect(await create()).toEqual({
    code: 1,
    stdout: '',
    stderr: 'A live merchant needs an account: --key-file with a key sk_live_… or rk_live_….\n',
  });
  expect(await create('--key-file', await operator.file(world.secretKey))).toMatchObject({
    code: 1,
    stderr: 'This is a test key, and the merchant is in live mode.\n',
  });
  const keyFile = await operator.file('rk_live_0123456789');
  expect(await create('--key-file', keyFile)).toMatchObject({
    code: 1,
    stderr: 'Nothing was changed: Stripe refuses the key.\n',
  });
  expect(await listMerchants(operator.db)).toEqual(before);

  // The double has no live mode, so the proxy answers the check of the key.
  const account = { id: 'acct_live1', object: 'account', charges_enabled: true };
  const answer = { path: '/v1/account', count: 1, fault: 'answer', status: 200, body: account };
  await world.faults('POST', 'faults', answer);
  const made = JSON.parse((await create('--key-file', keyFile, '--json')).stdout) as {
    merchantId: string;
  };
  expect(made).toEqual({
    merchantId: expect.stringMatching(/^mer_/),
    name: 'Live',
    mode: 'live',
    accountId: 'acct_live1',
    keyId: expect.stringMatching(/^mk_live_/),
    secret: expect.stringMatching(/^sk_live_/),
  });
  const gateway = await operator.registry().forNewMethods(made.merchantId);
  expect(gateway.name).toBe('stripe:acct_live1');
  expect(gateway.capabilities.mode).toBe('live');
});

test('the merchant command with DATABASE_URL takes no secret from the data folder of another database [D-20]', async ({
  world,
  operator,
}) => {
  const merchantId = await operator.merchant();
  const account = await world.account();
  const keyFile = await operator.file(account.secretKey);
  const enter = ['gateway', merchantId, 'stripe', '--key-file', keyFile] as const;
  expect((await operator.run(...enter)).code).toBe(0);
  const stored = await findMerchantGateways(operator.db, merchantId);
  const merchants = await listMerchants(operator.db);
  const DATA_DIR = await operator.foreignDataFolder('postgres://127.0.0.1:1/demo');

  expect(
    await operator.runWith({ DATA_DIR, CREDENTIAL_PEPPER: '' }, 'create', '--name', 'Shop'),
  ).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'Set the CREDENTIAL_PEPPER of the API: DATABASE_URL is not the database of npm start.\n',
  });
  expect(await operator.runWith({ DATA_DIR, ENCRYPTION_KEY: '' }, ...enter)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Set the ENCRYPTION_KEY of API and worker.\n',
  });
  expect(await findMerchantGateways(operator.db, merchantId)).toEqual(stored);
  expect(await listMerchants(operator.db)).toEqual(merchants);
  const gateway = await operator.registry().forNewMethods(merchantId);
  expect(gateway.name).toBe(`stripe:${account.id}`);
});

import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Db } from '../../db/client.ts';
import { changeGateway, findMerchantGateways } from '../../db/repositories/merchants/gateways.ts';
import type { GatewayRow } from '../../db/repositories/merchants/gateways.ts';
import type { MerchantMode } from '../../db/schema/merchants.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import type { DoubleUrls, Processor } from '../../gateways/processor.ts';
import { PROCESSOR_NAMES } from '../../gateways/processors.ts';
import type { Sealing } from '../../runtime/sealing.ts';
import type { Recorder } from '../command-line/operator-action.ts';

export interface GatewayOptions {
  readonly keyFile?: string;
  readonly webhookSecretFile?: string;
  readonly account?: string;
  readonly current?: boolean;
}

export interface GatewayPlace {
  readonly db: Db;
  /** Throws if the process has no key for the encryption. */
  readonly sealing: () => Sealing;
  readonly doubleUrls: DoubleUrls;
  readonly input: Readable;
  readonly record: Recorder;
}

export type CheckedKey = NonNullable<Awaited<ReturnType<typeof readKey>>>;

const CHECK_TIMEOUT_MS = 20_000;

/** `-` reads the standard input. Asks the processor for the account. Throws the reason, never with the key. */
export async function readKey(
  file: string | undefined,
  mode: MerchantMode,
  { name, checkKey }: Processor,
  { doubleUrls, input }: Pick<GatewayPlace, 'doubleUrls' | 'input'>,
) {
  if (file === undefined) return null;
  const secretKey = await readSecret(file, input);
  const options = { timeoutMs: CHECK_TIMEOUT_MS, url: doubleUrls[name] };
  return { secretKey, ...(await checkKey(secretKey, mode, options)) };
}

/** Lists the accounts, or changes one. Returns no secret. An error says that nothing was changed. */
export async function configureGateway(
  place: GatewayPlace,
  merchantId: string,
  processor: Processor | undefined,
  options: GatewayOptions,
) {
  const { db, sealing, record } = place;
  const before = await findMerchantGateways(db, merchantId);
  if (before === null) throw new Error(`There is no merchant ${merchantId}.`);
  const { mode } = before;
  const { keyFile, webhookSecretFile, account, current = false } = options;
  if (processor === undefined) {
    if (Object.keys(options).length > 0)
      throw new Error(`Name the gateway: ${PROCESSOR_NAMES.join(' or ')}.`);
    return listed(merchantId, before);
  }
  const key = await readKey(keyFile, mode, processor, place);
  if (key !== null && account !== undefined && account !== key.accountId) {
    throw new Error(`The key belongs to ${key.accountId}, not to ${account}.`);
  }
  const own = before.accounts.find(
    ({ name, isCurrent }) => isCurrent && partsOf(name).gateway === processor.name,
  );
  const accountId = key?.accountId ?? account ?? (own && partsOf(own.name).accountId);
  if (accountId === undefined) throw new Error('Give the key of the account: --key-file <file>.');
  const webhookSecret = await readWebhookSecret(webhookSecretFile, processor, place);
  await db.transaction(async (tx) => {
    const entry = { merchantId, mode, processor, accountId, key, webhookSecret, current };
    await storeAccount({ db: tx, sealing }, entry);
    const facts = { isNewKey: key !== null, isNewWebhookSecret: webhookSecret !== null, current };
    await record(tx, { command: 'merchant gateway', subject: accountId, merchantId, facts });
  });
  const after = await findMerchantGateways(db, merchantId);
  if (after === null) throw new Error(`There is no merchant ${merchantId}.`);
  const report = listed(merchantId, after);
  const lines =
    key === null || key.canCharge
      ? report.lines
      : [
          ...report.lines,
          `${accountId} cannot charge yet: ${processor.company} needs more data of the business.`,
        ];
  return { ...report, lines };
}

/** Seals the secrets. Throws if another merchant has the account, or if a new one has no key. */
export async function storeAccount(
  { db, sealing }: Pick<GatewayPlace, 'db' | 'sealing'>,
  entry: {
    merchantId: string;
    mode: MerchantMode;
    processor: Processor;
    accountId: string;
    key: CheckedKey | null;
    webhookSecret: string | null;
    current: boolean;
  },
): Promise<void> {
  const { merchantId, mode, processor, accountId, key, webhookSecret, current } = entry;
  const name = `${processor.name}:${accountId}`;
  const seal = (secret: string) => sealing().seal(secret, accountBinding(merchantId, name));
  const result = await changeGateway(db, {
    merchantId,
    name,
    mode,
    key: key && { sealed: seal(key.secretKey), ending: key.secretKey.slice(-4) },
    sealedWebhookSecret: webhookSecret === null ? null : seal(webhookSecret),
    makeCurrent: current,
    nowAt: Date.now(),
  });
  if (result === 'taken') throw new Error(`${accountId} belongs to another merchant.`);
  if (result === 'unknown') throw new Error(`The merchant has no account ${accountId}.`);
}

export async function readWebhookSecret(
  file: string | undefined,
  { webhookSecretStart: start }: Processor,
  { input }: Pick<GatewayPlace, 'input'>,
): Promise<string | null> {
  if (file === undefined) return null;
  const secret = await readSecret(file, input);
  if (secret.startsWith(start) && /^\w+$/.test(secret.slice(start.length))) return secret;
  throw new Error(`The webhook secret must look like ${start}….`);
}

async function readSecret(file: string, input: Readable): Promise<string> {
  const content = file === '-' ? text(input) : readFile(file, 'utf8').catch(() => undefined);
  const secret = (await content)?.trim();
  if (secret === undefined) throw new Error(`${file} cannot be read.`);
  return secret;
}

/** The parts of `<gateway>:<account>`. The id of the account may have a colon. */
function partsOf(name: string) {
  const [gateway = ''] = name.split(':');
  return { gateway, accountId: name.slice(gateway.length + 1) };
}

function listed(
  merchantId: string,
  { mode, accounts }: { mode: MerchantMode; accounts: readonly GatewayRow[] },
) {
  const data = accounts.map((row) => ({
    ...partsOf(row.name),
    isCurrent: row.isCurrent,
    keyEnding: row.keyEnding,
    webhookSecret: row.sealedWebhookSecret === null ? 'none' : 'set',
    updatedAt: formatInstant(row.updatedAt),
  }));
  const lines = data.map(
    (row) =>
      `  ${row.gateway}  ${row.accountId}  key …${row.keyEnding}  webhook secret ${row.webhookSecret}` +
      (row.isCurrent ? '  current' : ''),
  );
  const fallback =
    mode === 'test'
      ? 'New cards go to the sandbox.'
      : 'The merchant cannot charge: add an account.';
  return {
    lines: [
      `Merchant ${merchantId}, ${mode} mode:`,
      ...(lines.length > 0 ? lines : [`  ${fallback}`]),
    ],
    data: { merchantId, mode, gateways: data },
  };
}

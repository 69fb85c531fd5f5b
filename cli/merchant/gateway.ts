import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Stripe } from 'stripe';
import type { Db } from '../../db/client.ts';
import { changeGateway, findMerchantGateways } from '../../db/repositories/merchants/gateways.ts';
import type { GatewayRow } from '../../db/repositories/merchants/gateways.ts';
import type { MerchantMode } from '../../db/schema/merchants.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { createStripeClient } from '../../gateways/stripe/client.ts';
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
  /** Another address than Stripe's, for tests. */
  readonly stripeUrl: string | undefined;
  readonly input: Readable;
  readonly record: Recorder;
}

export type CheckedKey = Awaited<ReturnType<typeof readKey>>;

const CHECK_TIMEOUT_MS = 20_000;

/** `-` reads the standard input. Asks Stripe for the account. Throws the reason, never with the key. */
export async function readKey(
  file: string,
  mode: MerchantMode,
  { stripeUrl, input }: Pick<GatewayPlace, 'stripeUrl' | 'input'>,
) {
  const secretKey = await readSecret(file, input);
  const [, keyMode] = /^(?:sk|rk)_(test|live)_\w+$/.exec(secretKey) ?? [];
  if (keyMode === undefined) {
    throw new Error(`The key must look like sk_${mode}_… or rk_${mode}_….`);
  }
  if (keyMode !== mode) {
    throw new Error(`This is a ${keyMode} key, and the merchant is in ${mode} mode.`);
  }
  const stripe = createStripeClient({ secretKey, timeoutMs: CHECK_TIMEOUT_MS, url: stripeUrl });
  const account = await stripe.accounts.retrieveCurrent().catch(refusalOf);
  if (typeof account === 'string') throw new Error(`Nothing was changed: ${account}.`);
  // An account cannot charge while Stripe still needs data of the business.
  return { secretKey, accountId: account.id, canCharge: account.charges_enabled };
}

/** Lists the accounts, or changes one. Returns no secret. An error says that nothing was changed. */
export async function configureGateway(
  place: GatewayPlace,
  merchantId: string,
  kind: 'stripe' | undefined,
  options: GatewayOptions,
) {
  const { db, sealing, record } = place;
  const before = await findMerchantGateways(db, merchantId);
  if (before === null) throw new Error(`There is no merchant ${merchantId}.`);
  const { mode } = before;
  const { keyFile, webhookSecretFile, account, current = false } = options;
  if (kind === undefined) {
    if (Object.keys(options).length > 0) throw new Error('Name the gateway: stripe.');
    return listed(merchantId, before);
  }
  const key = keyFile === undefined ? null : await readKey(keyFile, mode, place);
  if (key !== null && account !== undefined && account !== key.accountId) {
    throw new Error(`The key belongs to ${key.accountId}, not to ${account}.`);
  }
  const accountId =
    key?.accountId ?? account ?? before.accounts.find(({ isCurrent }) => isCurrent)?.name.slice(7);
  if (accountId === undefined) throw new Error('Give the key of the account: --key-file <file>.');
  const webhookSecret =
    webhookSecretFile === undefined ? null : await readWebhookSecret(webhookSecretFile, place);
  await db.transaction(async (tx) => {
    const entry = { merchantId, mode, accountId, key, webhookSecret, current };
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
          `${accountId} cannot charge yet: Stripe needs more data of the business.`,
        ];
  return { ...report, lines };
}

/** Seals the secrets. Throws if another merchant has the account, or if a new one has no key. */
export async function storeAccount(
  { db, sealing }: Pick<GatewayPlace, 'db' | 'sealing'>,
  entry: {
    merchantId: string;
    mode: MerchantMode;
    accountId: string;
    key: CheckedKey | null;
    webhookSecret: string | null;
    current: boolean;
  },
): Promise<void> {
  const { merchantId, mode, accountId, key, webhookSecret, current } = entry;
  const name = `stripe:${accountId}`;
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
  file: string,
  { input }: Pick<GatewayPlace, 'input'>,
): Promise<string> {
  const secret = await readSecret(file, input);
  if (!/^whsec_\w+$/.test(secret)) throw new Error('The webhook secret must look like whsec_….');
  return secret;
}

async function readSecret(file: string, input: Readable): Promise<string> {
  const content = file === '-' ? text(input) : readFile(file, 'utf8').catch(() => undefined);
  const secret = (await content)?.trim();
  if (secret === undefined) throw new Error(`${file} cannot be read.`);
  return secret;
}

/** Returns why Stripe did not confirm the key, without Stripe's message, which shows a part of the key. */
function refusalOf(error: unknown): string {
  if (error instanceof Stripe.errors.StripeAuthenticationError) return 'Stripe refuses the key';
  if (error instanceof Stripe.errors.StripePermissionError) {
    return 'the key has no permission to read its account';
  }
  if (error instanceof Stripe.errors.StripeConnectionError) return 'Stripe did not answer';
  const { statusCode } = error as { statusCode?: number };
  return `Stripe answered ${statusCode ?? 'in an unknown form'}`;
}

function listed(
  merchantId: string,
  { mode, accounts }: { mode: MerchantMode; accounts: readonly GatewayRow[] },
) {
  const data = accounts.map((row) => ({
    gateway: 'stripe',
    accountId: row.name.slice('stripe:'.length),
    isCurrent: row.isCurrent,
    keyEnding: row.keyEnding,
    webhookSecret: row.sealedWebhookSecret === null ? 'none' : 'set',
    updatedAt: formatInstant(row.updatedAt),
  }));
  const lines = data.map(
    (row) =>
      `  stripe  ${row.accountId}  key …${row.keyEnding}  webhook secret ${row.webhookSecret}` +
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

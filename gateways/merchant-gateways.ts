import { DomainError } from '../domain/errors.ts';
import { fencedGateway } from './fence.ts';
import type { KnownCharges } from './fence.ts';
import { measuredGateway } from './measured.ts';
import type { GatewayObserver } from './measured.ts';
import type { PaymentGateway } from './port.ts';
import type { DoubleUrls, Mode, Processor } from './processor.ts';
import { COMPANIES, processorOf } from './processors.ts';
import { UnknownGateway } from './registry.ts';
import type { EventSenders, GatewayRegistry } from './registry.ts';

/** An account of a merchant at a gateway, with its secrets sealed, that is, encrypted for the database. */
export interface SealedAccount {
  readonly name: string;
  readonly sealedKey: Uint8Array;
  readonly sealedWebhookSecret: Uint8Array | null;
  readonly sealedPreviousWebhookSecret: Uint8Array | null;
  readonly previousWebhookSecretUntil: number | null;
  readonly isCurrent: boolean;
}

/** A merchant's mode, which never changes, and the merchant's accounts. */
export interface MerchantAccounts {
  readonly mode: 'test' | 'live';
  readonly accounts: readonly SealedAccount[];
}

export interface MerchantGatewaysOptions {
  /** The gateway of test merchants without an account of their own. */
  readonly sandbox: PaymentGateway;
  /** Reads a merchant's rows. Null if there is no such merchant. */
  readonly accountsOf: (merchantId: string) => Promise<MerchantAccounts | null>;
  /** Reads what the rows have of an account's charges. */
  readonly knownCharges: (merchantId: string, name: string) => KnownCharges;
  /** Returns the merchants with an account of this name, one in each mode. Absent: the process receives no events. */
  readonly ownersOf?: (name: string) => Promise<readonly string[]>;
  readonly sealing: {
    open(sealed: Uint8Array, boundTo: string): string;
    openIfPossible(sealed: Uint8Array, boundTo: string): string | null;
  };
  /** Time limit of a request to an account. */
  readonly timeoutMs: number;
  readonly doubleUrls?: DoubleUrls;
  /** Default: those of the product. */
  readonly processors?: readonly Processor[];
  /** Called if a gateway refuses the key of an account and the row has no newer key. */
  readonly onKeyRefused?: (merchantId: string, gateway: string) => void;
  /** Gets the duration and the outcome of each call. */
  readonly observer?: GatewayObserver;
}

/** Age in ms at which rows are read again, and thus the delay of a change of the current account. */
const FRESH_FOR_MS = 5_000;

/** Maximum number of merchants whose rows are kept in memory. */
const MERCHANTS_KEPT = 10_000;

export function accountBinding(merchantId: string, name: string): string {
  return `merchant_gateway:${merchantId}:${name}`;
}

/**
 * The sandbox, and each merchant's accounts at processors. Reads an account's rows again after 5 s, and at once if the
 * processor refuses the key.
 * @throws UnknownGateway, DomainError `operation_not_allowed` for a live merchant without an account.
 */
export function createMerchantGateways(
  options: MerchantGatewaysOptions,
): GatewayRegistry & EventSenders {
  const { sealing, observer } = options;
  const sandbox = measuredGateway(options.sandbox, observer);
  const read = createReader(options.accountsOf);
  type Open = ReturnType<Processor['openAccount']>;
  const made = new Map<string, { open: Open; secrets: string; gateway: PaymentGateway }>();

  const opened = (merchantId: string, mode: Mode, name: string): Open => {
    const { name: start, openAccount } = processorOf(name, options.processors);
    return openAccount({
      accountId: name.slice(start.length + 1),
      mode,
      timeoutMs: options.timeoutMs,
      url: options.doubleUrls?.[start],
      onRateLimited: () => observer?.rateLimited(name),
      newerKey: async (refused) => {
        const now = find(await read(merchantId, 0), name);
        const newer = now === undefined ? refused : secretsOf(sealing, merchantId, now).secretKey;
        if (newer !== refused) return newer;
        options.onKeyRefused?.(merchantId, name);
        return null;
      },
    });
  };

  const at = (merchantId: string, mode: Mode, account: SealedAccount) => {
    const { name } = account;
    const { secretKey, webhookSecrets } = secretsOf(sealing, merchantId, account);
    const id = accountBinding(merchantId, name);
    const secrets = [secretKey, ...webhookSecrets].join('\n');
    const known = made.get(id);
    if (known?.secrets === secrets) return known.gateway;
    const open = known?.open ?? opened(merchantId, mode, name);
    const charges = options.knownCharges(merchantId, name);
    const measured = measuredGateway(open(secretKey, webhookSecrets), observer);
    const gateway = fencedGateway(measured, merchantId, charges);
    made.set(id, { open, secrets, gateway });
    return gateway;
  };

  const of: GatewayRegistry['of'] = async (merchantId, name) => {
    if (name === sandbox.name) {
      const { mode } = await read(merchantId, Infinity);
      if (mode === 'live') throw new UnknownGateway(name);
      return sandbox;
    }
    let found = await read(merchantId, FRESH_FOR_MS);
    if (find(found, name) === undefined) found = await read(merchantId, 0);
    const account = find(found, name);
    if (account === undefined) throw new UnknownGateway(name);
    return at(merchantId, found.mode, account);
  };

  return {
    of,

    async forNewMethods(merchantId) {
      const { mode, accounts } = await read(merchantId, FRESH_FOR_MS);
      const current = accounts.find(({ isCurrent }) => isCurrent);
      if (current !== undefined) return at(merchantId, mode, current);
      if (mode === 'test') return sandbox;
      throw new DomainError(
        'operation_not_allowed',
        `This live merchant has no payment gateway. The operator of the service has to add a ${COMPANIES} account.`,
      );
    },

    async receiving(name) {
      const owners = (await options.ownersOf?.(name)) ?? [];
      return fulfilled(
        owners.map(async (merchantId) => ({ merchantId, gateway: await of(merchantId, name) })),
      );
    },
  };
}

function secretsOf(
  sealing: MerchantGatewaysOptions['sealing'],
  merchantId: string,
  account: SealedAccount,
) {
  const { sealedKey, sealedWebhookSecret, sealedPreviousWebhookSecret } = account;
  const binding = accountBinding(merchantId, account.name);
  const isPreviousValid = Date.now() < (account.previousWebhookSecretUntil ?? 0);
  const sealed = [sealedWebhookSecret, isPreviousValid ? sealedPreviousWebhookSecret : null];
  return {
    secretKey: sealing.open(sealedKey, binding),
    // A charge needs none of them, so one that no key can decrypt must not prevent it.
    webhookSecrets: sealed.flatMap((one) =>
      one === null ? [] : (sealing.openIfPossible(one, binding) ?? []),
    ),
  };
}

/** One merchant's unreadable key must not refuse the events of another. Throws if all fail. */
async function fulfilled<Value>(all: readonly Promise<Value>[]): Promise<Value[]> {
  const ended = await Promise.allSettled(all);
  const values = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  return values.length > 0 ? values : Promise.all(all);
}

const find = ({ accounts }: MerchantAccounts, name: string) =>
  accounts.find((account) => account.name === name);

/** Returns a reader of merchants' rows. Rows are read again if they are older than `maximumAgeMs`. */
function createReader(accountsOf: MerchantGatewaysOptions['accountsOf']) {
  const known = new Map<string, { readAt: number; rows: Promise<MerchantAccounts> }>();
  const readRows = async (merchantId: string) => {
    const rows = await accountsOf(merchantId);
    if (rows === null) throw new Error(`there is no merchant ${merchantId}`);
    return rows;
  };
  return (merchantId: string, maximumAgeMs: number): Promise<MerchantAccounts> => {
    const nowAt = performance.now();
    const earlier = known.get(merchantId);
    if (earlier !== undefined && nowAt - earlier.readAt < maximumAgeMs) return earlier.rows;
    if (known.size >= MERCHANTS_KEPT) known.clear();
    const rows = readRows(merchantId);
    known.set(merchantId, { readAt: nowAt, rows });
    rows.catch(() => known.delete(merchantId));
    return rows;
  };
}

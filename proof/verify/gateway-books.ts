import type { ReservedSql } from 'postgres';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { listCharges } from '../../gateways/stripe/charge-list.ts';
import { createStripeClient } from '../../gateways/stripe/client.ts';

/** A charge in a gateway's book, as a row of `book_charge`. */
export type ChargeRow = Record<string, string | number>;

/** A gateway's book. `from` is the instant from which the book is read. */
export interface GatewayBook {
  readonly gateway: string;
  readonly from: Date;
  /** The charges, page by page. */
  readonly pages: AsyncIterable<ChargeRow[]>;
}

/** The merchants' accounts at Stripe. */
export interface StripePlace {
  readonly sealing: { open(sealed: Uint8Array, boundTo: string): string };
  /** The address of a Stripe double instead of Stripe's. */
  readonly url?: string | undefined;
  /** The number of days of which the charges are compared. */
  readonly days: number;
}

const TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;
/** Stripe's clock may differ from ours by this time, in ms. */
const CLOCK_MARGIN_MS = 60_000;

/** The sandbox gateway's book, from its beginning. */
export function sandboxBook({ url, key }: { url: string; key: string }): GatewayBook {
  return { gateway: 'sandbox', from: new Date(0), pages: readSandbox(url, key) };
}

interface ListedCharge {
  readonly key: string;
  readonly outcome: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly refundedMinor: number;
  readonly createdAt: number;
  readonly reference: { readonly intentId: string };
}

async function* readSandbox(url: string, key: string): AsyncGenerator<ChargeRow[]> {
  for (let after: number | null = 0; after !== null;) {
    const response = await fetch(`${url}/control/charges?after=${after}`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`the gateway's book answered ${response.status}`);
    const page = (await response.json()) as { charges: ListedCharge[]; next: number | null };
    yield page.charges.map((charge) =>
      rowOf('sandbox', { ...charge, intentId: charge.reference.intentId }),
    );
    after = page.next;
  }
}

/** The books of all merchants' accounts at Stripe, each of the last `days`. */
export async function stripeBooks(
  session: ReservedSql,
  { sealing, url, days }: StripePlace,
): Promise<GatewayBook[]> {
  const accounts = await session<{ merchantId: string; name: string; sealedKey: Buffer }[]>`
    select merchant_id as "merchantId", name, sealed_key as "sealedKey" from merchant_gateway`;
  const fromAt = Date.now() - days * DAY_MS;
  return accounts.map(({ merchantId, name, sealedKey }) => {
    const secretKey = sealing.open(sealedKey, accountBinding(merchantId, name));
    const stripe = createStripeClient({ secretKey, timeoutMs: TIMEOUT_MS, url });
    const pages = async function* (): AsyncGenerator<ChargeRow[]> {
      for await (const page of listCharges(stripe, fromAt - CLOCK_MARGIN_MS)) {
        // Another installation may use the account, too.
        const mine = page.filter((charge) => charge.merchantId === merchantId);
        yield mine.map((charge) => rowOf(name, charge));
      }
    };
    return { gateway: name, from: new Date(fromAt), pages: pages() };
  });
}

function rowOf(
  gateway: string,
  charge: Omit<ListedCharge, 'reference'> & { readonly intentId: string },
): ChargeRow {
  return {
    gateway,
    key: charge.key,
    intent_id: charge.intentId,
    amount_minor: charge.amountMinor,
    currency: charge.currency,
    outcome: charge.outcome,
    refunded_minor: charge.refundedMinor,
    created_at: new Date(charge.createdAt).toISOString(),
  };
}

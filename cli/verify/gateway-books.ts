import type { ReservedSql } from 'postgres';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import type { DoubleUrls, ListedPage, Processor } from '../../gateways/processor.ts';
import { processorOf } from '../../gateways/processors.ts';
import type { SandboxCharge } from '../../gateways/sandbox/charge-book.ts';
import { recordedCharges } from './gateway-control.ts';

/** A gateway's book. `from` is the instant from which the book is read. */
export interface GatewayBook {
  readonly gateway: string;
  readonly from: Date;
  readonly pages: AsyncIterable<ListedPage>;
}

export interface AccountsPlace {
  readonly sealing: { open(sealed: Uint8Array, boundTo: string): string };
  readonly doubleUrls: DoubleUrls;
  /** Default: those of the product. */
  readonly processors?: readonly Processor[];
  /** The number of past days whose charges and refunds are compared. */
  readonly days: number;
}

const TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;
/** A processor's clock may differ from ours by this time, in ms. */
const CLOCK_MARGIN_MS = 60_000;

export function sandboxBook(url: string, key: string): GatewayBook {
  return { gateway: 'sandbox', from: new Date(0), pages: readSandbox(url, key) };
}

async function* readSandbox(url: string, key: string): AsyncGenerator<ListedPage> {
  for await (const page of recordedCharges<SandboxCharge>(url, key)) {
    yield {
      charges: page.map((charge) => ({
        ...charge,
        ...charge.reference,
        gatewayChargeId: charge.id,
      })),
      refunds: page.flatMap(({ id, refunds, reference: { merchantId } }) =>
        refunds.map((refund) => ({ ...refund, merchantId, gatewayChargeId: id })),
      ),
    };
  }
}

/** The books of all merchants' accounts, each with the charges and refunds of the last `days` days. */
export async function accountBooks(
  session: ReservedSql,
  { sealing, doubleUrls, processors, days }: AccountsPlace,
): Promise<GatewayBook[]> {
  const accounts = await session<{ merchantId: string; name: string; sealedKey: Buffer }[]>`
    select merchant_id as "merchantId", name, sealed_key as "sealedKey" from merchant_gateway`;
  const fromAt = Date.now() - days * DAY_MS;
  return accounts.map(({ merchantId, name, sealedKey }) => {
    // Another installation may use the account, too.
    const isOwn = (listed: { readonly merchantId: string }) => listed.merchantId === merchantId;
    const pages = async function* (): AsyncGenerator<ListedPage> {
      const secretKey = sealing.open(sealedKey, accountBinding(merchantId, name));
      const { name: double, readBook } = processorOf(name, processors);
      const options = { timeoutMs: TIMEOUT_MS, url: doubleUrls[double] };
      const book = readBook(secretKey, fromAt - CLOCK_MARGIN_MS, options);
      for await (const { charges, refunds } of book) {
        yield { charges: charges.filter(isOwn), refunds: refunds.filter(isOwn) };
      }
    };
    return { gateway: name, from: new Date(fromAt), pages: pages() };
  });
}

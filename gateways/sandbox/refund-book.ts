import type { TransactionSql } from 'postgres';
import type { RefundRefusal, RefundRequest } from '../port.ts';
import type { BookSql } from './book-schema.ts';
import { keyReused, newId } from './charge-book.ts';

export interface BookedRefund {
  readonly id: string;
  /** The sandbox stores only `succeeded`. A tool can make a refund `pending`, or let it fail later. */
  readonly status: 'succeeded' | 'pending' | 'failed';
}

export type RefundResult =
  | { readonly refund: BookedRefund; readonly isReplay: boolean }
  | { readonly refused: RefundRefusal };

export type RefundBook = ReturnType<typeof createRefundBook>;

export function createRefundBook(sql: BookSql) {
  return {
    /**
     * Refunds all or part of a charge, once per key. A lock serialises a charge's refunds, so that together they
     * never exceed it.
     * @throws RequestRefused 422 if the key had other parameters.
     */
    refund: (order: RefundRequest, now: number): Promise<RefundResult> =>
      sql.begin((tx) => refundWithin(tx, order, now)),

    async find(key: string): Promise<BookedRefund | null> {
      const [refund] = await sql<BookedRefund[]>`
        select id, status from sandbox_gateway.refund where key = ${key}`;
      return refund ?? null;
    },
  };
}

async function refundWithin(
  tx: TransactionSql,
  order: RefundRequest,
  now: number,
): Promise<RefundResult> {
  const [charge] = await tx<{ isPaid: boolean; currency: string; amountMinor: number }[]>`
    select outcome = 'succeeded' as is_paid, currency, amount_minor from sandbox_gateway.charge
    where id = ${order.gatewayChargeId} for update`;
  const [booked] = await tx<(BookedRefund & { chargeId: string; amountMinor: number })[]>`
    select id, status, charge_id, amount_minor from sandbox_gateway.refund
    where key = ${order.key}`;
  if (booked !== undefined) {
    const isSame =
      booked.chargeId === order.gatewayChargeId &&
      booked.amountMinor === order.amountMinor &&
      charge?.currency === order.currency;
    if (!isSame) throw keyReused();
    return { refund: { id: booked.id, status: booked.status }, isReplay: true };
  }

  if (charge === undefined) return { refused: 'charge_not_found' };
  if (!charge.isPaid) return { refused: 'charge_not_paid' };
  if (charge.currency !== order.currency) return { refused: 'currency_differs' };
  const [sum] = await tx<{ total: number }[]>`
    select coalesce(sum(amount_minor), 0)::bigint as total from sandbox_gateway.refund
    where charge_id = ${order.gatewayChargeId} and status <> 'failed'`;
  if (order.amountMinor > charge.amountMinor - (sum?.total ?? 0)) {
    return { refused: 'exceeds_charge' };
  }

  const [refund] = await tx<BookedRefund[]>`
    insert into sandbox_gateway.refund (id, key, charge_id, amount_minor, status, created_at)
    values (${newId('re')}, ${order.key}, ${order.gatewayChargeId}, ${order.amountMinor},
      'succeeded', ${now})
    on conflict (key) do nothing
    returning id, status`;
  // A concurrent refund of another charge has used the key.
  if (refund === undefined) throw keyReused();
  return { refund, isReplay: false };
}

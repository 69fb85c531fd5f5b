import { randomUUID } from 'node:crypto';
import type { Sql } from 'postgres';
import type { DeclineCode } from '../../domain/declines.ts';
import type { ChargeReference, RetryAdvice } from '../port.ts';
import { RequestRefused } from '../http-server/http.ts';

export interface BookedCharge {
  readonly id: string;
  readonly outcome: 'succeeded' | 'declined';
  readonly code: DeclineCode | null;
  /** Null unless a forced decline set a gateway code. */
  readonly gatewayCode: string | null;
  /** Null unless a forced decline set an advice. */
  readonly retry: RetryAdvice | null;
  readonly amountMinor: number;
  readonly currency: string;
}

export interface ListedCharge extends BookedCharge {
  /** Number of the charge. A later charge has a higher number. */
  readonly sequence: number;
  readonly key: string;
  readonly gatewayMethodId: string;
  readonly reference: ChargeReference;
  /** Number of requests with this key, including the first. */
  readonly sentCount: number;
  readonly refundedMinor: number;
  /** In the order of their keys. */
  readonly refunds: readonly ListedRefund[];
  readonly createdAt: number;
}

export interface ListedRefund {
  readonly key: string;
  readonly gatewayRefundId: string;
  readonly amountMinor: number;
  readonly status: 'succeeded' | 'pending' | 'failed';
  readonly createdAt: number;
}

export interface ChargeOrder {
  readonly key: string;
  readonly gatewayMethodId: string;
  readonly amountMinor: number;
  readonly currency: string;
  readonly reference: ChargeReference;
}

/** Declines the next `count` charges of a subscription or a payment method. At least one of the two is given. */
export interface DeclineOrder {
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
  readonly code: DeclineCode;
  readonly gatewayCode?: string | null;
  readonly retry?: RetryAdvice | null;
  readonly count: number;
}

export interface ListFilter {
  readonly subscriptionId: string | null;
  readonly intentId: string | null;
  /** Only charges with a higher sequence. */
  readonly after: number;
  readonly limit: number;
}

export type ChargeBook = ReturnType<typeof createChargeBook>;

/**
 * Stores charges and forced declines. Every write is one transaction. If the promise of a write
 * rejects, the write may still be committed.
 */
export function createChargeBook(sql: Sql) {
  return {
    /** Charges once per key. A key that was used with other parameters is refused with 422. */
    async charge(order: ChargeOrder, now: number) {
      const { reference } = order;
      const [row] = await sql<BookChargeRow[]>`
        select (charge).*, is_replay, is_same from sandbox_gateway.book_charge_once(
          ${newId('ch')}, ${order.key}, ${order.gatewayMethodId}, ${order.amountMinor},
          ${order.currency}, ${reference.merchantId}, ${reference.intentId},
          ${reference.subscriptionId}, ${reference.paymentMethodId}, ${now})`;
      if (row === undefined) throw new Error('book_charge_once answered no row');
      if (!row.is_same) throw keyReused();
      return { charge: bookedCharge(row), isReplay: row.is_replay };
    },

    /** Returns the charge of this key; null if there is none. */
    async find(key: string): Promise<BookedCharge | null> {
      const [row] = await sql<ChargeRow[]>`
        select * from sandbox_gateway.charge where key = ${key}`;
      return row === undefined ? null : bookedCharge(row);
    },

    async list(filter: ListFilter): Promise<ListedCharge[]> {
      const rows = await sql<ListedRow[]>`
        select c.*, (
          select coalesce(sum(r.amount_minor), 0) from sandbox_gateway.refund r
          where r.charge_id = c.id and r.status = 'succeeded') as refunded_minor, (
          select coalesce(json_agg(json_build_object(
            'key', r.key, 'gatewayRefundId', r.id, 'amountMinor', r.amount_minor, 'status', r.status,
            'createdAt', r.created_at) order by r.key), '[]')
          from sandbox_gateway.refund r where r.charge_id = c.id) as refunds
        from sandbox_gateway.charge c
        where c.sequence > ${filter.after}
          ${filter.subscriptionId === null ? sql`` : sql`and c.subscription_id = ${filter.subscriptionId}`}
          ${filter.intentId === null ? sql`` : sql`and c.intent_id = ${filter.intentId}`}
        order by c.sequence limit ${filter.limit}`;
      return rows.map(fromRow);
    },

    /**
     * Declines the next `count` charges of a subscription or payment method. After two calls, the
     * declines of the first call are used up first.
     */
    async forceDeclines(order: DeclineOrder): Promise<void> {
      await sql`
        insert into sandbox_gateway.forced_decline
          (subscription_id, payment_method_id, code, gateway_code, retry)
        select ${order.subscriptionId}::text, ${order.paymentMethodId}::text, ${order.code}::text,
          ${order.gatewayCode ?? null}::text, ${order.retry ?? null}::text
        from generate_series(1, ${order.count}::integer)`;
    },
  };
}

interface ChargeRow {
  readonly sequence: string;
  readonly id: string;
  readonly key: string;
  readonly method_id: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly merchant_id: string;
  readonly intent_id: string;
  readonly subscription_id: string | null;
  readonly payment_method_id: string;
  readonly outcome: 'succeeded' | 'declined';
  readonly code: DeclineCode | null;
  readonly gateway_code: string | null;
  readonly retry: RetryAdvice | null;
  readonly sent_count: number;
  readonly created_at: string;
}

interface BookChargeRow extends ChargeRow {
  readonly is_replay: boolean;
  readonly is_same: boolean;
}

interface ListedRow extends ChargeRow {
  readonly refunded_minor: string;
  readonly refunds: readonly ListedRefund[];
}

function bookedCharge(row: ChargeRow): BookedCharge {
  return {
    id: row.id,
    outcome: row.outcome,
    code: row.code,
    gatewayCode: row.gateway_code,
    retry: row.retry,
    amountMinor: Number(row.amount_minor),
    currency: row.currency,
  };
}

function fromRow(row: ListedRow): ListedCharge {
  return {
    ...bookedCharge(row),
    sequence: Number(row.sequence),
    key: row.key,
    gatewayMethodId: row.method_id,
    reference: {
      merchantId: row.merchant_id,
      intentId: row.intent_id,
      subscriptionId: row.subscription_id,
      paymentMethodId: row.payment_method_id,
    },
    sentCount: row.sent_count,
    refundedMinor: Number(row.refunded_minor),
    refunds: row.refunds,
    createdAt: Number(row.created_at),
  };
}

export function newId(prefix: 'ch' | 'pm' | 're'): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`;
}

export function keyReused(): RequestRefused {
  return new RequestRefused(422, 'key_reused', 'This key was used with other parameters.');
}

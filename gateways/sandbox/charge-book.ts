import { randomUUID } from 'node:crypto';
import type { DeclineCode, StatedAdvice } from '../../domain/declines.ts';
import type { ChargeReference, ChargeRequest, ForcedDeclines } from '../port.ts';
import { RequestRefused } from '../http-server/http.ts';
import type { BookSql } from './book-schema.ts';

export interface BookedCharge {
  readonly id: string;
  readonly outcome: 'succeeded' | 'declined';
  readonly code: DeclineCode | null;
  /** Null unless a forced decline set a gateway code. */
  readonly gatewayCode: string | null;
  readonly networkCode: string | null;
  readonly advice: StatedAdvice | null;
  readonly amountMinor: number;
  readonly currency: string;
}

export interface SandboxCharge extends BookedCharge {
  /** Number of the charge. A later charge has a higher number. */
  readonly sequence: number;
  readonly key: string;
  readonly gatewayMethodId: string;
  readonly reference: ChargeReference;
  /** Number of requests with this key, including the first. */
  readonly sentCount: number;
  readonly refundedMinor: number;
  readonly refunds: readonly SandboxRefund[];
  readonly createdAt: number;
}

export interface SandboxRefund {
  readonly key: string;
  readonly gatewayRefundId: string;
  readonly amountMinor: number;
  readonly status: 'succeeded' | 'pending' | 'failed';
  readonly createdAt: number;
}

export type ChargeOrder = Required<
  Omit<ChargeRequest, 'gatewayChargeId' | 'payer' | 'description' | 'statementSuffix'>
>;

/** At least one of the subscription and the payment method is given. */
export interface DeclineOrder extends ForcedDeclines {
  readonly gatewayCode?: string | null;
  readonly networkCode?: string | null;
}

export interface ListFilter {
  readonly subscriptionId: string | null;
  readonly intentId: string | null;
  readonly after: number;
  readonly limit: number;
}

export type ChargeBook = ReturnType<typeof createChargeBook>;

/** Each write is one transaction. If its promise rejects, the write may still be committed. */
export function createChargeBook(sql: BookSql) {
  const columns = sql`id, outcome, code, gateway_code, network_code, advice, amount_minor, currency`;
  return {
    /** Charges once per key. A key that was used with other parameters is refused with 422. */
    async charge(order: ChargeOrder, now: number) {
      const { reference } = order;
      const [row] = await sql<(BookedCharge & { isReplay: boolean; isSame: boolean })[]>`
        select ${columns}, is_replay, is_same from (
          select (charge).*, is_replay, is_same from sandbox_gateway.book_charge_once(
            ${newId('ch')}, ${order.key}, ${order.gatewayMethodId}, ${order.amountMinor},
            ${order.currency}, ${reference.merchantId}, ${reference.intentId},
            ${reference.subscriptionId}, ${reference.paymentMethodId}, ${now}, ${order.openedAt})) as booked`;
      if (row === undefined) throw new Error('book_charge_once answered no row');
      const { isReplay, isSame, ...charge } = row;
      if (!isSame) throw keyReused();
      return { charge, isReplay };
    },

    async find(key: string): Promise<BookedCharge | null> {
      const [row] = await sql<BookedCharge[]>`
        select ${columns} from sandbox_gateway.charge where key = ${key}`;
      return row ?? null;
    },

    list: (filter: ListFilter): Promise<SandboxCharge[]> => sql<SandboxCharge[]>`
      select ${columns}, sequence, key, method_id as gateway_method_id, sent_count, created_at,
        json_build_object('merchantId', merchant_id, 'intentId', intent_id,
          'subscriptionId', subscription_id, 'paymentMethodId', payment_method_id) as reference,
        refunded_minor, refunds
      from sandbox_gateway.charge, lateral (
        select coalesce(sum(r.amount_minor) filter (where r.status = 'succeeded'), 0)::bigint
            as refunded_minor,
          coalesce(json_agg(json_build_object('key', r.key, 'gatewayRefundId', r.id, 'amountMinor',
            r.amount_minor, 'status', r.status, 'createdAt', r.created_at) order by r.key), '[]')
            as refunds
        from sandbox_gateway.refund r where r.charge_id = charge.id) as refunded
      where sequence > ${filter.after}
        ${filter.subscriptionId === null ? sql`` : sql`and subscription_id = ${filter.subscriptionId}`}
        ${filter.intentId === null ? sql`` : sql`and intent_id = ${filter.intentId}`}
      order by sequence limit ${filter.limit}`,

    /** Declines the next `count` charges. After two calls, the declines of the first are used up first. */
    async forceDeclines(order: DeclineOrder): Promise<void> {
      await sql`
        insert into sandbox_gateway.forced_decline
          (subscription_id, payment_method_id, code, gateway_code, network_code, advice)
        select ${order.subscriptionId}::text, ${order.paymentMethodId}::text, ${order.code}::text,
          ${order.gatewayCode ?? null}::text, ${order.networkCode ?? null}::text,
          ${jsonOf(order.advice)}::text::jsonb
        from generate_series(1, ${order.count}::integer)`;
    },
  };
}

export function newId(prefix: 'ch' | 'pm' | 're'): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`;
}

export function jsonOf(advice: StatedAdvice | null): string | null {
  return advice && JSON.stringify(advice);
}

export function keyReused(): RequestRefused {
  return new RequestRefused(422, 'key_reused', 'This key was used with other parameters.');
}

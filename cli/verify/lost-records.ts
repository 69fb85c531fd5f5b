import type { LostCharge, LostRefund } from './adopted-rows.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { Books } from './books.ts';
import { MAYBE_NEWER } from './sql-parts.ts';

/** What the gateways' books have and the rows have not, because the database was restored from a backup. */
export interface LostRecords {
  /** The charges that no attempt requested. A charge that moved money comes before the declined ones. */
  readonly charges: readonly LostCharge[];
  /** The charges of open attempts without the gateway's id. */
  readonly unnamed: readonly LostCharge[];
  /** Refunds that no row requested or whose row is open. `intentId` is null if the charge is not booked. */
  readonly refunds: readonly (Omit<LostRefund, 'intentId'> & {
    readonly intentId: string | null;
  })[];
  /** The subscriptions whose runs are known to be newer than their rows. */
  readonly held: readonly SubscriptionRef[];
}

const CHARGES = (condition: string): string => `
  select b.merchant_id as "merchantId", b.intent_id as "intentId", b.subscription_id as "subscriptionId",
    b.gateway, b.key, b.charge_id as "gatewayChargeId", b.outcome, b.amount_minor::float8 as "amountMinor",
    b.currency, extract(epoch from b.created_at)::float8 * 1000 as "createdAt"
  from book_charge b left join payment_attempt a on a.gateway_key = b.key
  where ${condition} order by b.outcome = 'declined', b.created_at, b.key`;

const LOST = `a.id is null and b.created_at < ${MAYBE_NEWER}`;

const UNNAMED = `a.state in ('SENDING', 'UNSENT', 'UNKNOWN') and a.gateway_charge_id is null
  and b.created_at < ${MAYBE_NEWER}`;

const REFUNDS = `
  select b.merchant_id as "merchantId", substr(b.key, 8) as "refundId", b.refund_id as "gatewayRefundId",
    b.status, b.amount_minor::float8 as "amountMinor", a.intent_id as "intentId",
    extract(epoch from b.created_at)::float8 * 1000 as "createdAt"
  from book_refund b left join refund r on r.gateway_key = b.key
    left join payment_attempt a on a.merchant_id = b.merchant_id and a.gateway_charge_id = b.charge_id
      and a.state = 'SUCCEEDED'
  where b.key like 'refund:%' and b.status <> 'failed' and b.created_at < ${MAYBE_NEWER}
    and (r.id is null or r.state in ('CREATED', 'SENDING', 'UNKNOWN'))
  order by b.created_at, b.key`;

/** Compares the books with the rows of their snapshot. Changes nothing. */
export async function findLost(books: Books): Promise<LostRecords> {
  return {
    charges: await books.ask(CHARGES(LOST)),
    unnamed: await books.ask(CHARGES(UNNAMED)),
    refunds: await books.ask(REFUNDS),
    held: await books.ask(`
      select merchant_id as "merchantId", id as "subscriptionId"
      from subscription where held_at is not null order by held_at`),
  };
}

import type { Stripe } from 'stripe';
import { ourAmount } from '../../gateways/stripe/amounts.ts';
import type { LostCharge } from './adopted-rows.ts';

export type ListedCharge = Omit<LostCharge, 'gateway'>;

export interface ListedRefund {
  /** Our key of the refund. Null if it was made without the service, for example in Stripe's Dashboard. */
  readonly key: string | null;
  readonly gatewayRefundId: string;
  readonly merchantId: string;
  readonly gatewayChargeId: string;
  readonly createdAt: number;
  readonly amountMinor: number;
  readonly status: 'succeeded' | 'pending' | 'failed';
}

const PAGE = 100;
/** Stripe's only other status is `failed`, whose outcome here is `declined`. */
const OUTCOMES = ['succeeded', 'pending'] as const;

/** From `fromAt` (epoch ms) on, newest first, without other sales of the merchant. Throws the SDK's error. */
export async function* listCharges(stripe: Stripe, fromAt: number): AsyncGenerator<ListedCharge[]> {
  const created = { gte: Math.floor(fromAt / 1_000) };
  const pages = pagesOf((page) => stripe.charges.list({ ...page, created }));
  for await (const page of pages) yield page.flatMap(ourCharge);
}

/** Only the refunded charge tells whose refund it is, so Stripe answers each refund with its charge. */
export async function* listRefunds(stripe: Stripe, fromAt: number): AsyncGenerator<ListedRefund[]> {
  const created = { gte: Math.floor(fromAt / 1_000) };
  const expand = ['data.charge'];
  const pages = pagesOf((page) => stripe.refunds.list({ ...page, created, expand }));
  for await (const page of pages) yield page.flatMap(ourRefund);
}

async function* pagesOf<Item extends { readonly id: string }>(
  list: (page: Stripe.PaginationParams) => Promise<Stripe.ApiList<Item>>,
): AsyncGenerator<Item[]> {
  let last: Item | undefined;
  for (;;) {
    const page = await list({ limit: PAGE, ...(last && { starting_after: last.id }) });
    yield page.data;
    last = page.data.at(-1);
    if (!page.has_more || last === undefined) return;
  }
}

function ourRefund(refund: Stripe.Refund): ListedRefund[] {
  const { metadata, charge, payment_intent: intent, amount, currency, status } = refund;
  const merchantId = typeof charge === 'object' ? charge?.metadata['merchantId'] : undefined;
  const gatewayChargeId = typeof intent === 'string' ? intent : intent?.id;
  if (!merchantId || gatewayChargeId === undefined) return [];
  const hasFailed = status === 'failed' || status === 'canceled';
  const undecided = hasFailed ? 'failed' : 'pending';
  return [
    {
      key: metadata?.['key'] ?? null,
      gatewayRefundId: refund.id,
      merchantId,
      gatewayChargeId,
      amountMinor: ourAmount(amount, currency.toUpperCase()),
      status: status === 'succeeded' ? status : undecided,
      createdAt: refund.created * 1_000,
    },
  ];
}

function ourCharge(charge: Stripe.Charge): ListedCharge[] {
  const { key, merchantId, intentId, subscriptionId } = charge.metadata;
  const { payment_intent: intent, status } = charge;
  const gatewayChargeId = typeof intent === 'string' ? intent : intent?.id;
  if (!key || !merchantId || !intentId || gatewayChargeId === undefined) return [];
  const currency = charge.currency.toUpperCase();
  return [
    {
      key,
      merchantId,
      intentId,
      subscriptionId: subscriptionId ?? null,
      gatewayChargeId,
      outcome: OUTCOMES.find((each) => each === status) ?? 'declined',
      amountMinor: ourAmount(charge.amount, currency),
      currency,
      createdAt: charge.created * 1_000,
    },
  ];
}

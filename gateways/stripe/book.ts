import type { Stripe } from 'stripe';
import type { ListedCharge, ListedPage, ListedRefund, RequestOptions } from '../processor.ts';
import { ourAmount } from './amounts.ts';
import { createStripeClient } from './client.ts';

const PAGE = 100;
/** Stripe's only other status is `failed`, whose outcome here is `declined`. */
const OUTCOMES = ['succeeded', 'pending'] as const;

/** The newest first, without other sales of the account. Throws the SDK's error. */
export async function* readBook(
  secretKey: string,
  fromAt: number,
  options: RequestOptions,
): AsyncGenerator<ListedPage> {
  const stripe = createStripeClient({ secretKey, ...options });
  const created = { gte: Math.floor(fromAt / 1_000) };
  const charges = pagesOf((page) => stripe.charges.list({ ...page, created }));
  for await (const page of charges) yield { charges: page.flatMap(ourCharge), refunds: [] };
  // Only the refunded charge tells whose refund it is, so Stripe answers each refund with its charge.
  const expand = ['data.charge'];
  const refunds = pagesOf((page) => stripe.refunds.list({ ...page, created, expand }));
  for await (const page of refunds) yield { charges: [], refunds: page.flatMap(ourRefund) };
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

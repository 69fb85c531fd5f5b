import { findCheckout } from '../../../db/repositories/checkouts/sessions.ts';
import { findHostedPayment } from '../../../db/repositories/payments/hosted.ts';
import type { Link, LinkPayer, LinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { LinkPayment } from '../../../db/schema/subscriptions.ts';
import type { Db } from '../../../db/client.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { invariant } from '../../../domain/errors.ts';
import type { Terms } from '../../../domain/subscription/terms.ts';
import type { ApiDeps } from '../../deps.ts';
import { writeHostedPayment } from '../../routes/payments/create-intent.ts';
import { payerOf, writeSubscription } from '../../routes/subscriptions/create.ts';
import { checkoutPath, paymentPath } from '../../../runtime/payer-links.ts';
import { businessNow, saleFrom, stageOf } from '../checkout/page.tsx';
import { paymentSale, paymentStageOf } from '../payment/page.tsx';
import type { Language } from '../../../domain/language/language.ts';
import type { SaleText } from '../shared/views.tsx';
import { takeLinkUse } from '../../../db/repositories/subscriptions/links.ts';

export interface NewUse {
  readonly token: string;
  readonly customerId: string;
  readonly customerDetails: CustomerDetails;
  readonly createdAt: number;
}

export interface Goods {
  pathOf(token: string): string;
  /** True if the checkout or payment of the token expired or was cancelled. Null if the token has neither. */
  isOver(deps: ApiDeps, token: string): Promise<boolean | null>;
  sale(language: Language, nowAt: number): SaleText;
  /** Runs in the caller's transaction. The caller must call the returned function after the commit. */
  create(tx: Db, deps: ApiDeps, use: NewUse): Promise<() => Promise<void>>;
}

export function goodsOf(link: Link): Goods {
  const { terms, payment } = link.template;
  if (payment !== null) return paymentGoods(link, payment);
  invariant(terms, 'a link sells a subscription or a payment');
  return subscriptionGoods(link, terms);
}

function subscriptionGoods({ template, merchant }: Link, terms: Terms): Goods {
  const { merchantId } = template;
  return {
    pathOf: checkoutPath,
    async isOver({ db, now }, token) {
      const checkout = await findCheckout(db, token);
      if (checkout === null) return null;
      return isUnpaid(stageOf(checkout, businessNow(checkout, now())));
    },
    sale: (language, nowAt) =>
      saleFrom(language, { ...template, merchantName: merchant.name }, terms, nowAt),
    async create(tx, deps, { token, customerId, customerDetails, createdAt }) {
      const subscriptionId = await writeSubscription(
        tx,
        deps,
        { merchantId, customerId, terms, createdAt, testClockId: null },
        { ...orderOf(template), customerDetails, metadata: null },
        token,
      );
      return async () => {
        await deps.starts.begin({ merchantId, subscriptionId });
      };
    },
  };
}

function paymentGoods({ template, merchant }: Link, payment: LinkPayment): Goods {
  const { merchantId } = template;
  return {
    pathOf: paymentPath,
    async isOver({ db, now }, token) {
      const found = await findHostedPayment(db, token);
      return found === null ? null : isUnpaid(paymentStageOf(found, now()));
    },
    sale: (language) =>
      paymentSale(language, {
        ...template,
        ...payment,
        tokenise: payment.tokenise ?? false,
        merchantName: merchant.name,
      }),
    async create(tx, deps, { token, customerId, customerDetails, createdAt }) {
      const streamId = await writeHostedPayment(
        tx,
        deps,
        {
          ...payment,
          ...orderOf(template),
          merchantId,
          customerId,
          customerDetails,
          nowAt: createdAt,
        },
        token,
      );
      // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
      return async () => void deps.webhooks.wakeStream({ merchantId, streamId });
    },
  };
}

/** Returns the fields of a link's template that its subscriptions and payments get. */
function orderOf({ id: linkId, ...template }: Link['template']) {
  const { receiptId, description, callbackUrl, cancelUrl } = template;
  const { productPage, phoneNumberRequired, locale } = template;
  const page = { productPage, phoneNumberRequired, locale };
  return { linkId, receiptId, description, callbackUrl, cancelUrl, ...page };
}

function isUnpaid(stage: string): boolean {
  return stage === 'expired' || stage === 'cancelled';
}

/** Maximum lifetime, in ms, of an unpaid checkout that was started from a link. */
const USE_HELD_MS = 3_600_000;

/**
 * Counts a use of the link and creates its subscription or payment, in one transaction. A repeat with the same token
 * changes nothing. Never changes the template's customer, because any person may open a link.
 */
export async function beginUse(
  deps: ApiDeps,
  link: Link,
  goods: Goods,
  payer: LinkPayer,
  given: CustomerDetails,
): Promise<LinkUse> {
  const { merchantId, customerId: known, customerDetails: details } = link.template;
  const { use, afterCommit } = await deps.db.transaction(async (tx) => {
    const createdAt = deps.now();
    const use = await takeLinkUse(tx, link, payer, createdAt);
    if (use.kind !== 'taken') return { use, afterCommit: null };
    const customerDetails = { ...details, ...given };
    const customerId = await payerOf(tx, deps, merchantId, {
      customerId: known ?? undefined,
      details: customerDetails,
    });
    const held = { ...deps, checkoutExpiryMs: Math.min(deps.checkoutExpiryMs, USE_HELD_MS) };
    const token = payer.checkoutToken;
    const created = await goods.create(tx, held, { token, customerId, customerDetails, createdAt });
    return { use, afterCommit: created };
  });
  await afterCommit?.();
  return use;
}

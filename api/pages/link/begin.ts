import { takeLinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { Link, LinkPayer, LinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { Db } from '../../../db/client.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import type { ApiDeps } from '../../deps.ts';
import { payerOf } from '../../payer.ts';
import { writeSubscription } from '../../new-subscription.ts';

/** Maximum lifetime, in ms, of an unpaid checkout that was started from a link. Rule: D-37. */
const USE_HELD_MS = 3_600_000;

/**
 * Counts a use of the link and creates a subscription from the link's template, in one transaction. `given`:
 * the details that the payer typed. If the result is `taken` or `repeated`, a checkout with the payer's token
 * exists. A repeat with the same token changes nothing. Rule: D-37.
 */
export async function beginCheckout(
  deps: ApiDeps,
  link: Link,
  payer: LinkPayer,
  given: CustomerDetails,
): Promise<LinkUse> {
  const { merchantId } = link.template;
  const { use, subscriptionId } = await deps.db.transaction(async (tx) => {
    const nowAt = deps.now();
    const use = await takeLinkUse(tx, link, payer, nowAt);
    if (use.kind !== 'taken') return { use, subscriptionId: null };
    const created = await subscribe(tx, deps, link, payer.checkoutToken, given, nowAt);
    return { use, subscriptionId: created };
  });
  if (subscriptionId !== null) await deps.starts.begin({ merchantId, subscriptionId });
  return use;
}

/** Never changes the record of the template's customer, because any person may open a link. */
async function subscribe(
  tx: Db,
  deps: ApiDeps,
  { template }: Link,
  token: string,
  given: CustomerDetails,
  createdAt: number,
): Promise<string> {
  const { merchantId, id: linkId, terms, customerId: known, ...ofLink } = template;
  const { receiptId, description, callbackUrl, cancelUrl, productPage, phoneNumberRequired } =
    ofLink;
  const customerDetails = { ...template.customerDetails, ...given };
  const customerId = await payerOf(tx, deps, merchantId, {
    customerId: known ?? undefined,
    details: customerDetails,
  });
  const checkoutExpiryMs = Math.min(deps.checkoutExpiryMs, USE_HELD_MS);
  return writeSubscription(
    tx,
    { ...deps, checkoutExpiryMs },
    { merchantId, customerId, terms, createdAt, testClockId: null },
    {
      customerDetails,
      receiptId,
      description,
      callbackUrl,
      cancelUrl,
      productPage,
      phoneNumberRequired,
      linkId,
    },
    token,
  );
}

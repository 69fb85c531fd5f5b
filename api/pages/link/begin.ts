import { takeLinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { Link } from '../../../db/repositories/subscriptions/links.ts';
import type { Db } from '../../../db/client.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import type { ApiDeps } from '../../deps.ts';
import { payerOf } from '../../payer.ts';
import { writeSubscription } from '../../new-subscription.ts';

/**
 * Counts a use of the link and creates a subscription from the link's template, in one transaction. `token`
 * is the token of the new checkout. `given`: the details that the payer typed. True if the checkout exists
 * now; a repeat with the same `token` changes nothing. False if the link is used up or expired. Rule: D-37.
 */
export async function beginCheckout(
  deps: ApiDeps,
  link: Link,
  token: string,
  given: CustomerDetails,
): Promise<boolean> {
  const { merchantId } = link.template;
  const begun = await deps.db.transaction(async (tx) => {
    const nowAt = deps.now();
    const use = await takeLinkUse(tx, link, token, nowAt);
    if (use !== 'taken') return use;
    return { subscriptionId: await subscribe(tx, deps, link, token, given, nowAt) };
  });
  if (typeof begun === 'string') return begun === 'repeated';
  await deps.starts.begin({ merchantId, subscriptionId: begun.subscriptionId });
  return true;
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
  return writeSubscription(
    tx,
    deps,
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

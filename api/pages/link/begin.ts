import { takeLinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { Link, LinkPayer, LinkUse } from '../../../db/repositories/subscriptions/links.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import type { ApiDeps } from '../../deps.ts';
import { payerOf } from '../../payer.ts';
import type { Goods } from './goods.ts';

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

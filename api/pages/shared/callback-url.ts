/** What a merchant's page is told when the payer's browser comes back; never proof of payment. Rule: D-44. */
export interface CallbackFacts {
  readonly subscriptionId: string;
  readonly status: string;
  readonly receiptId: string | null;
}

/**
 * The merchant's URL with `subscription_id`, `status` and, when one was given, `receipt_id` appended;
 * its own query string and fragment stay as they were written. Rule: D-44.
 */
export function callbackUrl(merchantUrl: string, facts: CallbackFacts): string {
  const parameters = new URLSearchParams({
    subscription_id: facts.subscriptionId,
    status: facts.status,
    ...(facts.receiptId === null ? {} : { receipt_id: facts.receiptId }),
  });
  const [address = '', ...fragment] = merchantUrl.split('#');
  const joint = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&';
  const suffix = fragment.length === 0 ? '' : `#${fragment.join('#')}`;
  return `${address}${joint}${parameters.toString()}${suffix}`;
}

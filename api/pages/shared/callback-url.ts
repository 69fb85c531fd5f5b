/**
 * Returns the merchant's URL with those `facts` that are not null appended as query parameters. The URL's own
 * query string and fragment stay unchanged. The parameters are unsigned, so they do not prove a payment.
 */
export function callbackUrl(
  merchantUrl: string,
  facts: Readonly<Record<string, string | null>>,
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(facts)) {
    if (value !== null) parameters.set(name, value);
  }
  const [address = '', ...fragment] = merchantUrl.split('#');
  const separator = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&';
  const suffix = fragment.length === 0 ? '' : `#${fragment.join('#')}`;
  return `${address}${separator}${parameters.toString()}${suffix}`;
}

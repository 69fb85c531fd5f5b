/**
 * The merchant's URL with `facts` appended, those that are null left out; its own query string and
 * fragment stay as they were written. What it says is unsigned: never proof of payment. Rule: D-44.
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
  const joint = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&';
  const suffix = fragment.length === 0 ? '' : `#${fragment.join('#')}`;
  return `${address}${joint}${parameters.toString()}${suffix}`;
}

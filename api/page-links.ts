/** Paths of hosted pages. The token in the path is the only credential. */

/** The path of a payment's page. `key`: the page's token, or the id of its intent. */
export function paymentPath(key: string): string {
  return `/payment/${key}`;
}

/** Redirects to the page of the payment whose intent id is in the query parameter. Rule: D-§7. */
export const INTENT_PATH = '/payment';
export const INTENT_PARAMETER = 'xpay_intent_id';

/** The path must not begin with `/setup-method/`, under which merchants read a session by its id. */
export function setupMethodPath(token: string): string {
  return `/setup/${token}`;
}

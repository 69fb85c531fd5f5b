/** Paths of hosted pages. The token or intent id in a path is the payer's only credential. */

export const INTENT_PATH = '/payment';
export const INTENT_PARAMETER = 'xpay_intent_id';

/**
 * Returns the path of a setup session's page. It must not begin with `/setup-method/`, under which merchants read a
 * session by its id.
 */
export function setupMethodPath(token: string): string {
  return `/setup/${token}`;
}

/** Paths of hosted pages. The token in the path is the only credential. */

export function paymentPath(token: string): string {
  return `/payment/${token}`;
}

/** The path must not begin with `/setup-method/`, under which merchants read a session by its id. */
export function setupMethodPath(token: string): string {
  return `/setup/${token}`;
}

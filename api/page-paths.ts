/** Addresses of hosted pages; the token is all that opens one. */

export function paymentPath(token: string): string {
  return `/payment/${token}`;
}

/** Not under `/setup-method/`: that is where merchants read a session by its id. */
export function setupMethodPath(token: string): string {
  return `/setup/${token}`;
}

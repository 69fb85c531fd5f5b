/** The origin to which the card form may send the browser back. */
export const RETURN_ORIGIN = 'http://127.0.0.1:8080';
/** The id of the checkout session with which every card is submitted in a test environment. */
export const SESSION = 'cs_of_the_test_environment';

/** Submits a card to the tokeniser and returns the one-time token. */
export async function tokenise(
  gatewayUrl: string,
  number: string,
  expiry = '12/34',
): Promise<string> {
  const response = await fetch(`${gatewayUrl}/tokenise`, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({
      name: 'Ada Example',
      number,
      expiry,
      cvc: number.startsWith('37') ? '1234' : '123',
      session: SESSION,
      return_url: `${RETURN_ORIGIN}/back`,
    }),
  });
  const location = response.headers.get('location');
  const token = location && new URL(location).searchParams.get('payment_token');
  if (!token) throw new Error(`no token for ${number}: ${response.status} ${location ?? ''}`);
  return token;
}

/** The command that the API sends to the workflow when a payer returns from the card form. */
export function checkoutCommand(paymentToken: string) {
  return {
    kind: 'completeCheckout',
    commandId: paymentToken,
    paymentToken,
    checkoutSessionId: SESSION,
  } as const;
}

export function newMethodCommand(paymentToken: string) {
  return { ...checkoutCommand(paymentToken), kind: 'replacePaymentMethod' } as const;
}

import { Stripe } from 'stripe';
import type { Mode, RequestOptions } from '../processor.ts';
import { createStripeClient } from './client.ts';

export const shownKey = (mode: Mode): string => `sk_${mode}_… or rk_${mode}_…`;

export async function checkKey(secretKey: string, mode: Mode, options: RequestOptions) {
  const [, keyMode] = /^(?:sk|rk)_(test|live)_\w+$/.exec(secretKey) ?? [];
  if (keyMode === undefined) throw new Error(`The key must look like ${shownKey(mode)}.`);
  if (keyMode !== mode) {
    throw new Error(`This is a ${keyMode} key, and the merchant is in ${mode} mode.`);
  }
  const stripe = createStripeClient({ secretKey, ...options });
  const account = await stripe.accounts.retrieveCurrent().catch(refusalOf);
  if (typeof account === 'string') throw new Error(`Nothing was changed: ${account}.`);
  return { accountId: account.id, canCharge: account.charges_enabled };
}

/** Returns why Stripe did not confirm the key, without Stripe's message, which shows a part of the key. */
function refusalOf(error: unknown): string {
  if (error instanceof Stripe.errors.StripeAuthenticationError) return 'Stripe refuses the key';
  if (error instanceof Stripe.errors.StripePermissionError) {
    return 'the key has no permission to read its account';
  }
  if (error instanceof Stripe.errors.StripeConnectionError) return 'Stripe did not answer';
  const { statusCode } = error as { statusCode?: number };
  return `Stripe answered ${statusCode ?? 'in an unknown form'}`;
}

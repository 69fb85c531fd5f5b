import type { Locale } from '../../../../domain/locales.ts';
import type { Answer, ApiEnvironment } from '../../api-environment.ts';
import { intentBody } from '../../fixtures/payments.ts';
import { createSubscription } from '../../fixtures/subscriptions.ts';
import { createClock } from '../../fixtures/test-clocks.ts';
import { fieldsOf } from '../page-text.ts';
import { visit } from '../visits.ts';
import type { Visit } from '../visits.ts';

export const HOUR_MS = 3_600_000;
const NOON = Date.UTC(2027, 0, 31, 12);
const PRODUCT = { name: 'Garden Letters', description: 'One letter a month.' };

/** Typed details of a payer of which the email and the phone number are wrong. */
export const WRONG_DETAILS = { name: 'Ada Example', email: 'ada@', contactNumber: '7946' };

/** Terms of a checkout whose page asks for name, email and phone number. */
export const NO_DETAILS = { customerDetails: {}, phoneNumberRequired: true };

/** Requests the page while the server's clock is `hours` ahead. */
export async function lookLater(
  api: ApiEnvironment,
  { look }: Visit,
  hours: number,
): Promise<Answer> {
  api.clock.aheadMs = hours * HOUR_MS;
  const answer = await look();
  api.clock.aheadMs = 0;
  return answer;
}

let cards = 0;
/** The query of the return URL after the gateway refused a card. */
export function refusal(): string {
  cards += 1;
  return `payment_error=card_declined&payment_error_id=${cards}`;
}

/** The query of the return URL with a new card's token, which contains `text` and ends with the last four digits. */
export function card(text: string): string {
  cards += 1;
  return `payment_token=tok_${text}_${cards}_1111`;
}

export async function giveRefusedCards({ give }: Visit, count: number): Promise<void> {
  for (let tried = 0; tried < count; tried += 1) await give(refusal());
}

export type Checkout = Visit & Awaited<ReturnType<typeof createSubscription>>;

/** Creates a subscription; in test mode on a clock that shows noon of 31 January 2027. */
export async function checkout(
  api: ApiEnvironment,
  locale: Locale,
  changes: Record<string, unknown> = {},
): Promise<Checkout> {
  const isTest = api.merchant.keyId.includes('test');
  const subscription = await createSubscription(api, {
    locale,
    productPage: PRODUCT,
    ...(isTest ? { testClockId: await createClock(api, NOON) } : {}),
    ...changes,
  });
  return { ...subscription, ...visit(api, subscription.fwdUrl) };
}

/** As {@link checkout}, paid. */
export async function paid(...given: Parameters<typeof checkout>): Promise<Checkout> {
  const opened = await checkout(...given);
  await opened.give(card('good'));
  return opened;
}

/** Creates a payment. The payer's browser has the IP address `address`, or a new one. */
export async function payment(
  api: ApiEnvironment,
  locale: Locale,
  address?: string,
): Promise<Visit & { xIntentId: string }> {
  const body = intentBody({ locale, description: 'Two garden chairs' });
  const made = await api.call('POST', '/payments/create-intent', { body });
  const { xIntentId, fwdUrl } = made.json as { xIntentId: string; fwdUrl: string };
  return { xIntentId, ...visit(api, fwdUrl, address) };
}

/** Makes the merchant pause or cancel the subscription. */
export async function command(
  api: ApiEnvironment,
  name: 'pause' | 'cancel',
  { subscriptionId }: Checkout,
): Promise<void> {
  const path = `/subscription/merchant/${name}`;
  const { status, text } = await api.call('POST', path, { body: { subscriptionId } });
  if (status !== 200) throw new Error(text);
}

/** The token of the form on the page. */
export async function formTokenOf({ look }: Visit): Promise<string> {
  const token = fieldsOf((await look()).text).find(({ name }) => name === 'form_token');
  return token?.value ?? '';
}

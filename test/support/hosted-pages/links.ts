import { and, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { subscriptionLinks, subscriptions } from '../../../db/schema/subscriptions.ts';
import { PUBLIC_URL, subscriptionBody } from '../api-environment.ts';
import type { Answer, ApiEnvironment } from '../api-environment.ts';
import { fieldsOf } from './page-text.ts';
import { browse, postForm } from './visits.ts';

const DAY = 86_400_000;

export const cookieOf = (answer: Answer): string =>
  String(answer.headers['set-cookie'] ?? '').split(';')[0] ?? '';

/** Status and redirect target. */
export const outcome = ({ status, headers }: Answer) => [status, headers['location']];

/** Fields of a request for a link of either kind, which are stored as they are. */
export const LINK_FIELDS = {
  customerDetails: { name: 'Ada', customerAddress: { country: 'GB', postalCode: 'N1' } },
  callbackUrl: 'https://merchant.example/back',
  cancelUrl: 'https://merchant.example/no',
  receiptId: 'r-1',
  description: 'Tea',
  phoneNumberRequired: true,
};

/** The path of a new link. */
export const pathOf = ({ json }: { json: unknown }) =>
  (json as { shortUrl: string }).shortUrl.slice(PUBLIC_URL.length);

/** Creates a link that expires in a day, and returns its path. */
export async function makeLink(
  api: ApiEnvironment,
  changes: Record<string, unknown> = {},
): Promise<string> {
  const made = await api.call('POST', '/subscription/link/merchant/generate-link', {
    body: subscriptionBody({
      callbackUrl: undefined,
      expiryDate: Date.now() + api.clock.aheadMs + DAY,
      ...changes,
    }),
  });
  expect(made.status).toBe(200);
  return pathOf(made);
}

export const PAYMENT_LINK = '/link/merchant/generate-link';

/** The body of a valid link to pay once, which expires in a day. */
export function paymentLinkBody(changes: object = {}, nowAt = Date.now()): object {
  return {
    amount: 2_500,
    currency: 'USD',
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    expiryDate: nowAt + DAY,
    ...changes,
  };
}

/** Creates a link to pay 25.00 USD once, and returns its path. */
export async function makePaymentLink(api: ApiEnvironment, changes: object = {}): Promise<string> {
  const body = paymentLinkBody(changes, Date.now() + api.clock.aheadMs);
  const made = await api.call('POST', PAYMENT_LINK, { body });
  expect(made.status).toBe(200);
  return pathOf(made);
}

/** The payments that a link created, oldest first. */
export async function paymentsOf(api: ApiEnvironment, path: string) {
  const { merchantId, id } = await rowOf(api, path);
  return api.db
    .select()
    .from(paymentIntents)
    .where(and(eq(paymentIntents.merchantId, merchantId), eq(paymentIntents.linkId, id)))
    .orderBy(paymentIntents.id);
}

/**
 * Opens the link's page in a new browser. Without cookies, only the form's hidden fields identify the browser.
 * `address`: the browser's address, if the API trusts a proxy.
 */
export async function openLink(
  api: ApiEnvironment,
  path: string,
  { keepsCookies = true, address }: { keepsCookies?: boolean; address?: string } = {},
) {
  const from: Record<string, string> = address === undefined ? {} : { 'x-forwarded-for': address };
  const page = await browse(api, path, { headers: from });
  expect(page.status).toBe(200);
  const hidden = fieldsOf(page.text)
    .filter(({ label }) => label === undefined)
    .map(({ name, value }) => [name, value ?? '']);
  const fields = Object.fromEntries(hidden) as Record<string, string>;
  const cookie = cookieOf(page);
  const headers = { ...from, ...(keepsCookies ? { cookie } : {}) };
  return {
    page,
    cookie,
    fields,
    open: (method = 'GET') => browse(api, path, { headers }, method),
    submit: (typed: Record<string, string> = {}, more: Record<string, string> = {}) =>
      postForm(api, path, { ...fields, ...typed }, { ...headers, ...more }),
  };
}

export async function rowOf({ db }: ApiEnvironment, path: string) {
  const code = path.slice('/l/'.length);
  const [row] = await db.select().from(subscriptionLinks).where(eq(subscriptionLinks.code, code));
  return row!;
}

/** The subscriptions that a link created, oldest first. */
export async function soldBy(api: ApiEnvironment, path: string) {
  const { merchantId, id } = await rowOf(api, path);
  return api.db
    .select()
    .from(subscriptions)
    .where(and(eq(subscriptions.merchantId, merchantId), eq(subscriptions.linkId, id)))
    .orderBy(subscriptions.id);
}

/** Submits the link's form. Returns the created subscription and its checkout's path. */
export async function sell(api: ApiEnvironment, path: string) {
  const browser = await openLink(api, path);
  const sent = await browser.submit();
  expect(sent.status).toBe(303);
  const sold = await soldBy(api, path);
  const subscriptionId = sold.at(-1)!.id;
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  return { browser, subscriptionId, ref, checkout: String(sent.headers['location']) };
}

import { and, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { subscriptionLinks } from '../../db/schema/subscription-links.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { PUBLIC_URL, subscriptionBody } from './api-world.ts';
import type { Answer, ApiWorld, CallOptions } from './api-world.ts';
import { fieldsOf } from './page-text.ts';

const DAY = 86_400_000;
export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export const cookieOf = (answer: Answer): string =>
  String(answer.headers['set-cookie'] ?? '').split(';')[0] ?? '';

/** Status and redirect target. */
export const outcome = ({ status, headers }: Answer) => [status, headers['location']];

/** The actions of a merchant and its payers on links. */
export function linksIn(world: () => ApiWorld) {
  /** Creates a link that expires in a day, and returns its path. */
  async function makeLink(changes: Record<string, unknown> = {}): Promise<string> {
    const made = await world().call('POST', '/subscription/link/merchant/generate-link', {
      body: subscriptionBody({
        callbackUrl: undefined,
        expiryDate: Date.now() + world().clock.aheadMs + DAY,
        ...changes,
      }),
    });
    expect(made.status).toBe(200);
    return (made.json as { shortUrl: string }).shortUrl.slice(PUBLIC_URL.length);
  }

  const browse = (path: string, options: CallOptions = {}, method = 'GET') =>
    world().call(method, path, { as: null, ...options });

  /** Opens the link's page in a new browser. Without cookies, only the form's hidden fields identify the browser. */
  async function openLink(path: string, keepsCookies = true) {
    const page = await browse(path);
    expect(page.status).toBe(200);
    const hidden = fieldsOf(page.text)
      .filter(({ label }) => label === undefined)
      .map(({ name, value }) => [name, value ?? '']);
    const fields = Object.fromEntries(hidden) as Record<string, string>;
    const cookie = cookieOf(page);
    const headers = keepsCookies ? { cookie } : {};
    return {
      page,
      cookie,
      fields,
      open: (method = 'GET') => browse(path, { headers }, method),
      submit: (typed: Record<string, string> = {}, more: Record<string, string> = {}) =>
        browse(
          path,
          {
            raw: new URLSearchParams({ ...fields, ...typed }).toString(),
            headers: { ...FORM, ...headers, ...more },
          },
          'POST',
        ),
    };
  }

  async function rowOf(path: string) {
    const [row] = await world()
      .db.select()
      .from(subscriptionLinks)
      .where(eq(subscriptionLinks.code, path.slice('/l/'.length)));
    return row!;
  }

  /** The subscriptions that a link created, oldest first. */
  async function soldBy(path: string) {
    const { merchantId, id } = await rowOf(path);
    return world()
      .db.select()
      .from(subscriptions)
      .where(and(eq(subscriptions.merchantId, merchantId), eq(subscriptions.linkId, id)))
      .orderBy(subscriptions.id);
  }

  /** Submits the link's form. Returns the created subscription and its checkout's path. */
  async function sell(path: string) {
    const browser = await openLink(path);
    const sent = await browser.submit();
    expect(sent.status).toBe(303);
    const sold = await soldBy(path);
    const subscriptionId = sold.at(-1)!.id;
    const ref = { merchantId: world().merchant.merchantId, subscriptionId };
    return { browser, subscriptionId, ref, checkout: String(sent.headers['location']) };
  }

  const cancel = (subscriptionId: string) =>
    world().call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });

  return { makeLink, browse, openLink, rowOf, soldBy, sell, cancel };
}

import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { outboxEvents } from '../../../db/schema/webhooks.ts';

import { portalToken } from '../../../runtime/payer-links.ts';
import { SESSION_KEY, subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventually } from '../../support/eventually.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { askForPortal, takePortalRequests } from '../../support/hosted-pages/portal.ts';
import { browse, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const untilMidnight = () => DAY_MS - (Date.now() % DAY_MS);
const TITLE = 'Your subscriptions with Acme Ltd';
const SENT =
  'If Acme Ltd knows this address, you will get an e-mail with the link in a few minutes.';

let payers = 0;

/** Creates a subscription for a payer with a new e-mail address. */
async function payer(api: ApiEnvironment, { as = api.merchant, isPaid = true } = {}) {
  payers += 1;
  const email = `payer${payers}@example.com`;
  const body = subscriptionBody({ customerDetails: { name: 'Ada Example', email } });
  const made = await api.call('POST', '/subscription/create', { as, body });
  const { subscriptionId, fwdUrl } = made.json as { subscriptionId: string; fwdUrl: string };
  if (isPaid) await visit(api, fwdUrl).give(`payment_token=tok_${subscriptionId}_4242`);
  const { json } = await api.call('GET', `/subscription/get-subscription/${subscriptionId}`, {
    as,
  });
  const { customerId } = json as { customerId: string };
  return { subscriptionId, email, customerId };
}

/** What the merchants of this API were told. */
async function requests({ db }: ApiEnvironment) {
  const rows = await db
    .select({ body: outboxEvents.body })
    .from(outboxEvents)
    .where(eq(outboxEvents.type, 'customer.portal_requested'));
  return rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
}

/** The requests that are not among `before`, once there are `count`. */
const news = (api: ApiEnvironment, before: readonly Record<string, unknown>[], count: number) =>
  eventually(async () => {
    const known = new Set(before.map(({ eventId }) => eventId));
    const found = (await requests(api)).filter(({ eventId }) => !known.has(eventId));
    expect(found).toHaveLength(count);
    return found;
  });

test('a payer who asks gets a link to the own page by e-mail, at most one in ten minutes and five a day [D-62]', async ({
  api,
}) => {
  await takePortalRequests(api);
  const { email, customerId } = await payer(api);
  const before = await requests(api);
  const { page, ask } = await askForPortal(api);
  expect(headingOf(page)).toBe(TITLE);
  expect(page.text).toContain('Enter the e-mail address that you gave Acme Ltd.');
  const sent = await ask(email.toUpperCase());
  expect(sent.status).toBe(200);
  expect(sent.text).toContain(SENT);
  const [told] = await news(api, before, 1);
  expect(told).toEqual({
    eventId: expect.stringMatching(/^evt_/) as string,
    eventType: 'customer.portal_requested',
    eventTime: expect.any(Number) as number,
    sequence: 1,
    customerId,
    portalId: expect.stringMatching(/^prt_/) as string,
    expiresAt: Number(told?.['eventTime']) + 60 * MINUTE_MS,
    language: 'en',
  });

  const { merchantId } = api.merchant;
  const id = String(told?.['portalId']);
  const token = portalToken({ sessionKey: SESSION_KEY }, { merchantId, id });
  expect(headingOf(await browse(api, `/portal/${token}`))).toBe(TITLE);

  // Two at once, then one every ten minutes of a day
  const { ask: askAgain } = await askForPortal(api);
  await Promise.all([ask(email), askAgain(email)]);
  api.clock.aheadMs += untilMidnight();
  for (let count = 0; count < 7; count += 1) {
    api.clock.aheadMs += 10 * MINUTE_MS;
    await ask(email);
  }
  const all = await news(api, before, 6);
  expect(all.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
});

test('an unknown address, one of another merchant, and ones that never paid get the same answer and no link [D-62]', async ({
  api,
}) => {
  await takePortalRequests(api);
  const theirs = await payer(api, { as: api.other });
  const unpaid = await payer(api, { isPaid: false });
  const expired = await payer(api, { isPaid: false });
  await api.db
    .update(subscriptions)
    .set({ status: 'ENDED' })
    .where(eq(subscriptions.id, expired.subscriptionId));
  const known = await payer(api);
  const before = await requests(api);
  const { ask } = await askForPortal(api);
  const emails = ['nobody@example.com', theirs.email, unpaid.email, expired.email, known.email];
  for (const email of emails) {
    const { status, text } = await ask(email);
    expect(status).toBe(200);
    expect(text).toContain(SENT);
  }
  const [told] = await news(api, before, 1);
  expect(told).toMatchObject({ customerId: known.customerId });
});

test('a mistyped address is refused, a foreign form too, and a stranger asks 10 times an hour [D-62]', async ({
  api,
}) => {
  await takePortalRequests(api);
  const { path, page, ask, post } = await askForPortal(api);
  const wrong = await ask('ada@');
  expect(wrong.status).toBe(400);
  expect(fieldsOf(wrong.text).find(({ name }) => name === 'email')?.value).toBe('ada@');
  expect((await post({ email: 'ada@example.com' })).status).toBe(403);
  const form_token = fieldsOf(page.text).find(({ name }) => name === 'form_token')?.value ?? '';
  const embedded = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' };
  expect((await post({ form_token, email: 'ada@example.com' }, embedded)).status).toBe(403);
  for (let count = 0; count < 10; count += 1) await ask(`stranger${count}@example.com`);
  expect((await ask('stranger@example.com')).status).toBe(429);
  const elsewhere = await askForPortal(api);
  expect((await elsewhere.ask('ada@example.com')).status).toBe(200);
  expect((await browse(api, path)).status).toBe(200);
});

test('there is no such page while no active endpoint takes the event [D-62]', async ({
  createApi,
}) => {
  const api = await createApi();
  const { path, page, post } = await askForPortal(api);
  expect(page.status).toBe(404);
  expect((await post({ email: 'ada@example.com' })).status).toBe(404);
  const configId = await takePortalRequests(api);
  expect((await browse(api, path)).status).toBe(200);
  await api.call('DELETE', `/webhook/${configId}`);
  expect((await browse(api, path)).status).toBe(404);
});

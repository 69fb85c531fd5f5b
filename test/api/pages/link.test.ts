import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { customers } from '../../../db/schema/customers.ts';
import { makeCustomer } from '../../support/fixtures/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { Answer } from '../../support/api-environment.ts';
import {
  cookieOf,
  makeLink,
  openLink,
  outcome,
  rowOf,
  sell,
  soldBy,
} from '../../support/hosted-pages/links.ts';
import { browse, comeBack, FORM, postForm } from '../../support/hosted-pages/visits.ts';
import { fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { eventTypes } from '../../support/fixtures/events.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** An answer without the values that are new in every answer: request id, date and nonce. */
function comparable({ status, text, headers }: Answer) {
  const { 'request-id': _id, date: _date, 'content-security-policy': policy, ...rest } = headers;
  const nonce = /'nonce-([^']+)'/.exec(String(policy))?.[1] ?? '';
  return { status, text: text.replaceAll(nonce, 'NONCE'), headers: rest };
}

describe('the page of a subscription link', () => {
  test('shows the product and asks for missing payer details [IF-2.8, IF-4.4, D-11]', async ({
    api,
  }) => {
    const path = await makeLink(api, {
      productPage: { name: 'Tea & <b>biscuits</b>', description: '<script>alert(1)</script>' },
      customerDetails: { name: 'Ada' },
      phoneNumberRequired: true,
      cycleCount: 1,
    });
    const { page } = await openLink(api, path);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.text).toContain('<h1 dir="auto">Tea &amp; &lt;b>biscuits&lt;/b></h1>');
    expect(page.text).toContain('&lt;script>alert(1)&lt;/script>');
    expect(page.text).not.toContain('<script');
    expect(page.text).toContain('Acme Ltd');
    expect(page.text).toContain('Test mode: no money moves');
    expect(linesOf(page.text)).toEqual([
      ['Today', 'US$19.99'],
      ['In all', 'US$19.99 in 1 payment'],
    ]);
    expect(page.text).toContain(`<form method="post" action="${path}">`);
    expect(fieldsOf(page.text).slice(2)).toEqual([
      { name: 'email', label: 'E-mail address', autocomplete: 'email' },
      { name: 'contactNumber', label: 'Phone number', autocomplete: 'tel' },
    ]);
    expect(page.text).toContain('<button type="submit">Continue</button>');
    expect(page.text).not.toContain('Cancel and return');
  });

  test('asks for no details when the customer that the link names has all of them [D-11]', async ({
    api,
  }) => {
    const bob = { name: 'Bob', email: 'bob@example.com' };
    const customerId = await makeCustomer(api, 'merchant', bob);
    const path = await makeLink(api, { customerDetails: {}, customerId });
    const { page } = await openLink(api, path);
    expect(fieldsOf(page.text).map(({ name }) => name)).toEqual(['form_token', 'visit']);
    expect(page.text).not.toContain('bob@example.com');
  });

  test('writes nothing when it is opened by GET, HEAD, prefetch or a bot [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api);
    const [rows, link] = [await api.countRows(), await rowOf(api, path)];
    const browser = await openLink(api, path);
    await browser.open();
    expect((await browser.open('HEAD')).status).toBe(200);
    await browse(api, path, { headers: { 'sec-purpose': 'prefetch' } });
    await browse(api, path, { headers: { 'user-agent': 'Slackbot-LinkExpanding 1.0' } });
    expect(await api.countRows()).toEqual(rows);
    expect(await rowOf(api, path)).toEqual(link);
  });

  test('sets a cookie for its own path that outlives the link by a day [D-37]', async ({ api }) => {
    const expiryDate = Date.now() + DAY;
    const path = await makeLink(api, { expiryDate });
    const before = Date.now();
    const { page, open } = await openLink(api, path);
    const parts =
      /^visit=[0-9A-Za-z]{22}\.[\w-]{43}; Path=(.*); Max-Age=(\d+); HttpOnly; SameSite=Lax; Secure$/.exec(
        String(page.headers['set-cookie']),
      );
    expect(parts?.[1]).toBe(path);
    expect(Number(parts?.[2])).toBeLessThanOrEqual(Math.ceil((expiryDate - before + DAY) / 1000));
    expect(Number(parts?.[2])).toBeGreaterThanOrEqual((expiryDate - Date.now() + DAY) / 1000);
    // A browser with a valid cookie gets no new cookie.
    expect((await open()).headers['set-cookie']).toBeUndefined();
  });

  test('ignores a forged cookie and the cookie of another link [D-37]', async ({ api }) => {
    const [path, other] = [await makeLink(api), await makeLink(api)];
    const own = (await openLink(api, path)).cookie;
    const foreign = (await openLink(api, other)).cookie;
    for (const cookie of [foreign, own.replace(/.$/, '~'), 'visit=x', 'visit=', 'visit=.']) {
      const page = await browse(api, path, { headers: { cookie } });
      expect([page.status, cookieOf(page)]).toEqual([200, expect.stringMatching(/^visit=/)]);
      expect(cookieOf(page)).not.toBe(own);
    }
  });
});

describe('an unusable link', () => {
  test('shows one page when it is unknown, expired or used up, which names the merchant if the link is known [D-37]', async ({
    api,
  }) => {
    const [expired, usedUp] = [
      await makeLink(api, { expiryDate: Date.now() + HOUR }),
      await makeLink(api),
    ];
    await sell(api, usedUp);
    api.clock.aheadMs = 2 * HOUR;
    const rows = await api.countRows();
    const pages = [
      await browse(api, '/l/AAAAAAAAAAAA'),
      await browse(api, expired),
      await browse(api, usedUp),
      await browse(api, '/l/short'),
      await browse(api, '/l/%00'),
    ];
    const posts = await Promise.all(
      ['/l/AAAAAAAAAAAA', '/l/short'].map((path) =>
        browse(api, path, { raw: 'visit=x', headers: FORM }, 'POST'),
      ),
    );
    api.clock.aheadMs = 0;
    expect(pages[0]!.status).toBe(410);
    expect(pages[0]!.text).toContain('<h1>This link cannot be used</h1>');
    expect(pages[0]!.text).not.toContain('<form');
    const [unknown, , , ...others] = pages;
    for (const page of [...others, ...posts]) {
      expect(comparable(page)).toEqual(comparable(unknown!));
    }
    for (const page of pages.slice(1, 3)) {
      expect(page.status).toBe(410);
      const named = page.text
        .replaceAll(/nonce="[^"]*"/g, '')
        .replace(' · Acme Ltd</title>', '</title>')
        .replace('<p class="from" dir="auto">Acme Ltd</p>', '')
        .replace('Ask Acme Ltd for', 'Ask the sender for');
      expect(named).toBe(unknown!.text.replaceAll(/nonce="[^"]*"/g, ''));
    }
    expect(await api.countRows()).toEqual(rows);
  });

  test('refuses a form that was opened while the link was still usable [D-37]', async ({ api }) => {
    const [expired, usedUp] = [
      await makeLink(api, { expiryDate: Date.now() + HOUR }),
      await makeLink(api),
    ];
    const [late, second] = [await openLink(api, expired), await openLink(api, usedUp)];
    await sell(api, usedUp);
    const rows = await api.countRows();
    expect((await second.submit()).status).toBe(410);
    api.clock.aheadMs = HOUR;
    const answer = await late.submit();
    api.clock.aheadMs = 0;
    expect(answer.status).toBe(410);
    expect(await api.countRows()).toEqual(rows);
  });
});

describe('the submitted form of a link', () => {
  test('creates a subscription and redirects to its checkout [IF-4.4, D-37, D-51]', async ({
    api,
  }) => {
    const path = await makeLink(api, { receiptId: 'r-1', description: 'Tea', upfrontAmount: 500 });
    const rows = await api.countRows();
    const { subscriptionId, ref, checkout } = await sell(api, path);
    expect(checkout).toMatch(/^\/checkout\/[0-9A-Za-z]{22}$/);
    const added = Object.entries(await api.countRows())
      .map(([name, count]) => [name, count - rows[name]!] as const)
      .filter(([, count]) => count !== 0);
    expect(Object.fromEntries(added)).toEqual({
      checkout_session: 1,
      customer: 1,
      event_stream: 1,
      feed_entry: 1,
      link_use: 1,
      outbox_event: 2,
      payment_intent: 1,
      subscription: 1,
      subscription_entry: 1,
    });
    const read = await api.call('GET', `/subscription/get-subscription/${subscriptionId}`);
    expect(read.json).toMatchObject({
      status: 'CREATED',
      amount: 1_999,
      upfrontAmount: 500,
      description: 'Tea',
    });
    expect(read.json).not.toHaveProperty('metadata');
    expect(await eventTypes(api, subscriptionId)).toEqual([
      'intent.created',
      'subscription.created',
    ]);
    expect(api.workflows.calls).toContainEqual({ name: 'start', ref });
    expect((await rowOf(api, path)).uses).toBe(1);
    const page = await browse(api, checkout);
    expect(page.text).toContain('<button type="submit">Pay US$5.00</button>');
  });

  test('creates no intent yet when the link has a trial [D-§4]', async ({ api }) => {
    const path = await makeLink(api, { trialPeriodCount: 7, trialPeriodInterval: 'DAY' });
    const before = await api.countRows();
    const { checkout } = await sell(api, path);
    expect((await api.countRows())['payment_intent']).toBe(before['payment_intent']);
    await comeBack(api, checkout, 'payment_token=tok_trial');
    expect((await browse(api, checkout)).text).toContain('<h1>Your free trial has started</h1>');
  });

  test('creates the subscription without its workflow while Temporal is unavailable [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api);
    api.workflows.faults.isDown = true;
    const { subscriptionId } = await sell(api, path);
    api.workflows.faults.isDown = false;
    const [row] = await soldBy(api, path);
    expect([row!.id, row!.workflowStartedAt]).toEqual([subscriptionId, null]);
  });

  test('stores valid details and takes no use with invalid details [D-11, D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, {
      customerDetails: { name: 'Ada', customerAddress: { country: 'GB' } },
      phoneNumberRequired: true,
    });
    const rows = await api.countRows();
    const { cookie, submit } = await openLink(api, path);
    const sent = await submit({ email: 'ada@', contactNumber: '+44 "20" 7946' });
    expect(outcome(sent)).toEqual([303, path]);
    const cookies = `${cookie}; ${cookieOf(sent)}`;
    const wrong = await browse(api, path, { headers: { cookie: cookies } });
    expect(wrong.status).toBe(200);
    expect(wrong.text).toContain('aria-describedby="email-problem" aria-invalid="true"');
    expect(wrong.text).toContain('value="ada@"');
    expect(wrong.text).toContain('value="+44 &quot;20&quot; 7946"');
    expect(await api.countRows()).toEqual(rows);
    expect((await rowOf(api, path)).uses).toBe(0);

    const typed = { email: 'ada@example.com', contactNumber: '+44 20 7946 0000' };
    expect((await submit({ ...typed, name: 'Mallory' })).status).toBe(303);
    const [row] = await soldBy(api, path);
    const details = { name: 'Ada', customerAddress: { country: 'GB' }, ...typed };
    expect(row!.customerDetails).toEqual(details);
    const customer = await api.call('GET', `/customer/${row!.customerId}`);
    expect(customer.json).toEqual({ customerId: row!.customerId, customerDetails: details });
  });

  test('creates a subscription of the named customer and neither shows nor changes the customer’s record [D-11]', async ({
    api,
  }) => {
    const customerId = await makeCustomer(api, 'merchant', { name: 'Bob' });
    const path = await makeLink(api, { customerDetails: {}, customerId });
    const before = await api.countRows();
    const { submit } = await openLink(api, path);
    const sent = await submit({ email: 'bob@example.com' });
    expect(sent.status).toBe(303);
    const [row] = await soldBy(api, path);
    expect(row!.customerId).toBe(customerId);
    expect(row!.customerDetails).toEqual({ email: 'bob@example.com' });
    expect((await api.countRows())['customer']).toBe(before['customer']);
    const [customer] = await api.db.select().from(customers).where(eq(customers.id, customerId));
    expect(customer!.details).toEqual({ name: 'Bob' });

    const checkout = String(sent.headers['location']);
    const cardPage = await browse(api, checkout);
    expect(cardPage.text).toContain('autocomplete="cc-name"');
    expect(cardPage.text).not.toContain('Bob');
    const changePath = `${checkout}?email`;
    const [token] = fieldsOf((await browse(api, changePath)).text);
    const change = { form_token: token?.value ?? '', email: 'eve@example.com' };
    expect((await postForm(api, changePath, change)).status).toBe(303);
    expect((await soldBy(api, path))[0]!.customerDetails).toEqual({ email: 'eve@example.com' });
    const [same] = await api.db.select().from(customers).where(eq(customers.id, customerId));
    expect(same!.details).toEqual({ name: 'Bob' });
  });

  test.for<[string, Record<string, string>, Record<string, string>]>([
    ['without its token', { form_token: '' }, {}],
    ['with a wrong token', { form_token: 'x' }, {}],
    ['with the id of another visit', { visit: 'A'.repeat(22) }, {}],
    ['without the id of a visit', { visit: '' }, {}],
    ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['from another origin', {}, { origin: 'https://evil.example' }],
  ])('is refused and takes no use when it comes %s', async ([, fields, headers], { api }) => {
    const path = await makeLink(api);
    const rows = await api.countRows();
    const { submit } = await openLink(api, path);
    const answer = await submit(fields, headers);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('<h1>This form is not valid any more</h1>');
    expect(answer.text).toContain(`<a class="button" href="${path}">Open the page</a>`);
    expect(await api.countRows()).toEqual(rows);
    expect((await rowOf(api, path)).uses).toBe(0);
  });

  test('leaves no link code, visit id or checkout token in the log [D-§8]', async ({ api }) => {
    const path = await makeLink(api);
    const { browser, checkout } = await sell(api, path);
    const lines = JSON.stringify(api.logLines);
    expect(lines).toContain('POST /l/:code');
    for (const secret of [path.slice(3), browser.fields['visit']!, checkout.slice(10)]) {
      expect(lines).not.toContain(secret);
    }
  });
});

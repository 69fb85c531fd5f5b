import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { loadSnapshot } from '../../../db/repositories/subscriptions/row.ts';
import { writeChange } from '../../../db/repositories/subscriptions/write-change.ts';
import { linkUses } from '../../../db/schema/subscriptions.ts';
import { applyCheckoutExpiry } from '../../../domain/subscription/apply-command.ts';
import { untilAvailable } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  cookieOf,
  makeLink,
  openLink,
  outcome,
  rowOf,
  sell,
  soldBy,
} from '../../support/hosted-pages/links.ts';
import { browse, comeBack } from '../../support/hosted-pages/visits.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';

const cancel = (api: ApiEnvironment, subscriptionId: string) =>
  api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });

const HOUR = 3_600_000;
/** Each use of a shareable subscription link creates a subscription with its own checkout. */
describe('a browser that used a link', () => {
  test('is redirected to its own checkout, even when the link is used up or expired [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, { expiryDate: Date.now() + HOUR / 2 });
    const { browser, checkout } = await sell(api, path);
    expect(outcome(await browser.open())).toEqual([303, checkout]);
    expect(outcome(await browser.open('HEAD'))).toEqual([303, checkout]);
    expect(outcome(await browser.submit())).toEqual([303, checkout]);
    expect((await browse(api, path)).status).toBe(410);
    // The link has expired.
    api.clock.aheadMs = 0.9 * HOUR;
    const later = await browser.open();
    api.clock.aheadMs = 0;
    expect(outcome(later)).toEqual([303, checkout]);
    // The checkout is paid.
    await comeBack(api, checkout, 'payment_token=tok_link_paid');
    expect(outcome(await browser.open())).toEqual([303, checkout]);
    expect(await soldBy(api, path)).toHaveLength(1);
  });

  test.for([1, 10])(
    'takes one of a link’s %i uses with five parallel submits, with and without cookies [D-37]',
    async (multiUseLimit, { api }) => {
      for (const keepsCookies of [true, false]) {
        const path = await makeLink(api, { multiUseLimit });
        const { submit } = await openLink(api, path, { keepsCookies });
        const answers = await Promise.all(Array.from({ length: 5 }, () => untilAvailable(submit)));
        const places = new Set(answers.map((answer) => outcome(answer).join(' ')));
        expect([...places]).toEqual([expect.stringMatching(/^303 \/checkout\/[0-9A-Za-z]{22}$/)]);
        expect(await soldBy(api, path)).toHaveLength(1);
        expect((await rowOf(api, path)).uses).toBe(1);
      }
    },
  );

  test('takes one use with submits from two tabs that it opened without a cookie [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, { multiUseLimit: 10 });
    const [first, second] = [await openLink(api, path), await openLink(api, path)];
    // The cookie of the second page replaces the cookie of the first.
    const headers = { cookie: second.cookie };
    const answers = await Promise.all([first.submit({}, headers), second.submit({}, headers)]);
    expect(outcome(answers[0])).toEqual(outcome(answers[1]));
    expect(answers[0].status).toBe(303);
    expect((await rowOf(api, path)).uses).toBe(1);
  });
});

describe('a link with limited uses', () => {
  test('allows exactly its 10 uses in 60 parallel submits [D-37, IF-4.4]', async ({ api }) => {
    const path = await makeLink(api, { multiUseLimit: 10 });
    const browsers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => openLink(api, path, { address: `10.0.0.${at}` })),
    );
    const answers = await Promise.all(browsers.map(({ submit }) => untilAvailable(submit)));
    const odd = answers.filter(({ status }) => status !== 303 && status !== 410);
    const logged = api.logLines.filter(({ msg }) => msg === 'request failed');
    expect(odd, JSON.stringify(logged)).toEqual([]);
    const sold = answers.filter(({ status }) => status === 303);
    expect(sold).toHaveLength(10);
    expect(new Set(sold.map(({ headers }) => headers['location'])).size).toBe(10);
    expect(await soldBy(api, path)).toHaveLength(10);
    expect((await rowOf(api, path)).uses).toBe(10);
  });
});

describe('an IP address', () => {
  const address = '203.0.113.20';
  const heading = '<h1>This link was begun too often from your network</h1>';

  test('begins at most 5 uses of a link in 10 minutes, also by parallel submits [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, { multiUseLimit: 30 });
    const browsers = await Promise.all(
      Array.from({ length: 12 }, () => openLink(api, path, { address })),
    );
    const answers = await Promise.all(browsers.map(({ submit }) => untilAvailable(submit)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 5 }, () => 303),
      ...Array.from({ length: 7 }, () => 429),
    ]);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.text).toContain(heading);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(500);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(600);
    expect((await rowOf(api, path)).uses).toBe(5);
    expect(await soldBy(api, path)).toHaveLength(5);

    // The limit does not refuse a repeat of a begun use, another address or another link.
    const begun = browsers[answers.findIndex(({ status }) => status === 303)]!;
    expect((await begun.submit()).status).toBe(303);
    const elsewhere = await openLink(api, path, { address: '203.0.113.21' });
    expect((await elsewhere.submit()).status).toBe(303);
    const second = await openLink(api, await makeLink(api), { address });
    expect((await second.submit()).status).toBe(303);
    expect((await rowOf(api, path)).uses).toBe(6);
  });

  test('is refused also after its uses were returned, until 10 minutes have passed [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, { multiUseLimit: 30 });
    for (let use = 1; use <= 5; use += 1) {
      const { submit } = await openLink(api, path, { address });
      expect((await submit()).status).toBe(303);
      await cancel(api, (await soldBy(api, path)).at(-1)!.id);
    }
    expect((await rowOf(api, path)).uses).toBe(0);
    const { submit } = await openLink(api, path, { address });
    expect((await submit()).status).toBe(429);
    api.clock.aheadMs = 10 * 60_000;
    expect((await submit()).status).toBe(303);
    expect((await rowOf(api, path)).uses).toBe(1);
  });

  test('is stored only as a hash; for an IPv6 address, as the hash of its /64 network [D-37]', async ({
    api,
  }) => {
    const path = await makeLink(api, { multiUseLimit: 30 });
    const begin = async (from: string) =>
      (await (await openLink(api, path, { address: from })).submit()).status;
    for (let host = 1; host <= 5; host += 1) {
      expect(await begin(`2001:db8:7:8::${host}`)).toBe(303);
    }
    expect(await begin('2001:db8:7:8:ffff::1')).toBe(429);
    expect(await begin('2001:db8:7:9::1')).toBe(303);
    const { id } = await rowOf(api, path);
    const counted = await api.db.select().from(linkUses).where(eq(linkUses.linkId, id));
    expect(counted.map(({ addressHash }) => addressHash.length)).toEqual(
      Array.from({ length: 6 }, () => 32),
    );
    expect(new Set(counted.map(({ addressHash }) => addressHash.toString('hex'))).size).toBe(2);
  });
});

describe('a use of a link', () => {
  test('has a checkout that expires after an hour [D-37]', async ({ api }) => {
    const path = await makeLink(api, { multiUseLimit: 30 });
    const { ref, checkout } = await sell(api, path);
    const { state } = (await loadSnapshot(api.db, ref))!;
    expect(state.checkoutExpiresAt - state.createdAt).toBe(3_600_000);
    api.clock.aheadMs = HOUR;
    expect((await browse(api, checkout)).text).toContain('<h1>This page has expired</h1>');
  });

  test('is returned to the link when its unpaid checkout is cancelled [D-37]', async ({ api }) => {
    const path = await makeLink(api);
    const { browser, subscriptionId, checkout } = await sell(api, path);
    expect((await cancel(api, subscriptionId)).status).toBe(200);
    expect((await rowOf(api, path)).uses).toBe(0);
    const again = await browser.open();
    expect([again.status, cookieOf(again)]).toEqual([200, expect.stringMatching(/^visit=/)]);
    expect(cookieOf(again)).not.toBe(browser.cookie);
    // The old form leads to the old checkout, which answers 410.
    expect(outcome(await browser.submit())).toEqual([303, checkout]);
    expect((await browse(api, checkout)).status).toBe(410);

    const next = await sell(api, path);
    expect(next.checkout).not.toBe(checkout);
    expect((await rowOf(api, path)).uses).toBe(1);
    expect((await browse(api, path)).status).toBe(410);
    // A second cancel of the first subscription returns no use.
    expect((await cancel(api, subscriptionId)).status).toBe(400);
    expect((await rowOf(api, path)).uses).toBe(1);
  });

  test('is returned to the link when its checkout expires [D-37]', async ({ api }) => {
    const path = await makeLink(api);
    const { ref, browser } = await sell(api, path);
    const snapshot = await loadSnapshot(api.db, ref);
    const nowAt = snapshot!.state.checkoutExpiresAt;
    const change = applyCheckoutExpiry(snapshot!.state, nowAt);
    const expiry = { change, transitionId: `${ref.subscriptionId}:2`, command: null, nowAt };
    expect(await writeChange(api.db, expiry)).toEqual({ kind: 'recorded' });
    expect((await rowOf(api, path)).uses).toBe(0);
    // A repeated transition returns no second use.
    expect(await writeChange(api.db, expiry)).toMatchObject({ kind: 'repeated' });
    expect((await rowOf(api, path)).uses).toBe(0);
    expect((await browser.open()).status).toBe(200);
  });

  test('is not returned to the link when the outcome is unknown or the payment was made [D-37, D-§4]', async ({
    api,
  }) => {
    const path = await makeLink(api);
    const { subscriptionId, ref, checkout } = await sell(api, path);
    await comeBack(api, checkout, 'payment_token=tok_unknown_of_a_link');
    expect((await cancel(api, subscriptionId)).status).toBe(200);
    expect((await rowOf(api, path)).uses).toBe(1);
    api.workflows.faults.card = 'paid late';
    await api.workflows.lookUp(ref);
    api.workflows.faults.card = null;
    expect((await rowOf(api, path)).uses).toBe(1);

    const paid = await makeLink(api);
    const sale = await sell(api, paid);
    await comeBack(api, sale.checkout, 'payment_token=tok_good_of_a_link');
    expect((await cancel(api, sale.subscriptionId)).status).toBe(200);
    expect((await rowOf(api, paid)).uses).toBe(1);
  });
});

describe('a checkout that a subscription link created', () => {
  test('has no button to the merchant’s site and no redirect when the request for the link had no callbackUrl [IF-4.4, D-44]', async ({
    api,
  }) => {
    const path = await makeLink(api, { customerDetails: {} });
    const { submit } = await openLink(api, path);
    const sent = await submit({ name: 'Ada', email: 'ada@example.com' });
    const checkout = String(sent.headers['location']);
    const open = await browse(api, checkout);
    expect(fieldsOf(open.text)).toContainEqual({
      name: 'name',
      label: 'Name on card',
      autocomplete: 'cc-name',
      value: 'Ada',
    });
    await comeBack(api, checkout, 'payment_token=tok_ends_here');
    const result = await browse(api, checkout);
    expect(result.text).toContain('<h1>Thank you: your payment was received</h1>');

    const cancelled = await sell(api, await makeLink(api));
    await cancel(api, cancelled.subscriptionId);
    const over = await browse(api, cancelled.checkout);
    expect(over.status).toBe(410);
    const hrefs = ({ text }: { text: string }) =>
      [...text.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, href]) => href);
    expect(hrefs(open)).toEqual([`${checkout}?email`]);
    expect(hrefs(result)).toEqual([
      expect.stringMatching(/^\/m\/mer_\w+\/cancel\?reference=in_\w+$/),
      expect.stringMatching(/^\/m\/mer_\w+\/withdraw\?reference=in_\w+$/),
    ]);
    expect(hrefs(over)).toEqual([]);
    for (const { text } of [open, result, over]) {
      expect(text).not.toContain('http-equiv="refresh"');
    }
  });

  test('has a button to callbackUrl with the subscription’s id [IF-4.4, D-44]', async ({ api }) => {
    const path = await makeLink(api, {
      callbackUrl: 'https://merchant.example/b?x=1',
      receiptId: 'r',
    });
    const { checkout, subscriptionId } = await sell(api, path);
    await comeBack(api, checkout, 'payment_token=tok_leads_on');
    expect((await browse(api, checkout)).text).toContain(
      `<a class="button" href="https://merchant.example/b?x=1&amp;subscription_id=${subscriptionId}` +
        '&amp;status=ACTIVE&amp;receipt_id=r">Continue to Acme Ltd</a>',
    );
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadSnapshot, recordTransition } from '../../db/repositories/subscriptions/transitions.ts';
import { applyCheckoutExpiry } from '../../domain/subscription/apply-command.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { cookieOf, linksIn, outcome } from './links.ts';
import { fieldsOf } from './page-text.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const { browse, cancel, makeLink, openLink, rowOf, sell, soldBy } = linksIn(() => world);

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
describe('a browser that used a link', () => {
  test('is redirected to its checkout, also when the link is used up or expired [D-37]', async () => {
    const path = await makeLink();
    const { browser, checkout } = await sell(path);
    expect(outcome(await browser.open())).toEqual([303, checkout]);
    expect(outcome(await browser.open('HEAD'))).toEqual([303, checkout]);
    expect(outcome(await browser.submit())).toEqual([303, checkout]);
    expect((await browse(path)).status).toBe(410);
    // The link has expired.
    world.clock.aheadMs = DAY - HOUR;
    const later = await browser.open();
    world.clock.aheadMs = 0;
    expect(outcome(later)).toEqual([303, checkout]);
    // The checkout is paid.
    await browse(`${checkout}/return?payment_token=tok_link_paid`);
    expect(outcome(await browser.open())).toEqual([303, checkout]);
    expect(await soldBy(path)).toHaveLength(1);
  });

  test.each([1, 10])(
    'takes one of %i uses by five parallel submits, with and without cookies [D-37]',
    async (multiUseLimit) => {
      for (const keepsCookies of [true, false]) {
        const path = await makeLink({ multiUseLimit });
        const { submit } = await openLink(path, keepsCookies);
        const answers = await Promise.all(Array.from({ length: 5 }, () => submit()));
        const places = new Set(answers.map((answer) => outcome(answer).join(' ')));
        expect([...places]).toEqual([expect.stringMatching(/^303 \/checkout\/[0-9A-Za-z]{22}$/)]);
        expect(await soldBy(path)).toHaveLength(1);
        expect((await rowOf(path)).uses).toBe(1);
      }
    },
  );

  test('takes one use by submits from two tabs that it opened without a cookie [D-37]', async () => {
    const path = await makeLink({ multiUseLimit: 10 });
    const [first, second] = [await openLink(path), await openLink(path)];
    // The cookie of the second page replaces the cookie of the first.
    const headers = { cookie: second.cookie };
    const answers = await Promise.all([first.submit({}, headers), second.submit({}, headers)]);
    expect(outcome(answers[0])).toEqual(outcome(answers[1]));
    expect(answers[0].status).toBe(303);
    expect((await rowOf(path)).uses).toBe(1);
  });
});

describe('a link with limited uses', () => {
  test('sells exactly its 10 uses to 1,000 parallel submits [D-37, IF-4.4]', async () => {
    const path = await makeLink({ multiUseLimit: 10 });
    const browsers = await Promise.all(Array.from({ length: 1_000 }, () => openLink(path)));
    // A slow machine may not get the link's lock within 5 s. The payer submits again.
    const submitWithRetries = async ({ submit }: (typeof browsers)[number]) => {
      let answer = await submit();
      for (let tries = 1; tries < 5 && answer.status === 503; tries += 1) answer = await submit();
      return answer;
    };
    const answers = await Promise.all(browsers.map(submitWithRetries));
    expect(answers.filter(({ status }) => status !== 303 && status !== 410)).toEqual([]);
    const sold = answers.filter(({ status }) => status === 303);
    expect(sold).toHaveLength(10);
    expect(new Set(sold.map(({ headers }) => headers['location'])).size).toBe(10);
    expect(await soldBy(path)).toHaveLength(10);
    expect((await rowOf(path)).uses).toBe(10);
  });

  test('sells once to 20 parallel submits when it has the default of one use [D-37, IF-4.4]', async () => {
    const path = await makeLink();
    const browsers = await Promise.all(Array.from({ length: 20 }, () => openLink(path)));
    const answers = await Promise.all(browsers.map(({ submit }) => submit()));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      303,
      ...Array.from({ length: 19 }, () => 410),
    ]);
    expect(await soldBy(path)).toHaveLength(1);
  });
});

describe('a use of a link', () => {
  test('is returned to the link when its unpaid checkout is cancelled [D-37]', async () => {
    const path = await makeLink();
    const { browser, subscriptionId, checkout } = await sell(path);
    expect((await cancel(subscriptionId)).status).toBe(200);
    expect((await rowOf(path)).uses).toBe(0);
    const again = await browser.open();
    expect([again.status, cookieOf(again)]).toEqual([200, expect.stringMatching(/^visit=/)]);
    expect(cookieOf(again)).not.toBe(browser.cookie);
    // The old form leads to the old checkout, which answers 410.
    expect(outcome(await browser.submit())).toEqual([303, checkout]);
    expect((await browse(checkout)).status).toBe(410);

    const next = await sell(path);
    expect(next.checkout).not.toBe(checkout);
    expect((await rowOf(path)).uses).toBe(1);
    expect((await browse(path)).status).toBe(410);
    // A second cancel of the first subscription returns no use.
    expect((await cancel(subscriptionId)).status).toBe(400);
    expect((await rowOf(path)).uses).toBe(1);
  });

  test('is returned to the link when its checkout expires [D-37]', async () => {
    const path = await makeLink();
    const { ref, browser } = await sell(path);
    const snapshot = await loadSnapshot(world.db, ref);
    const nowAt = snapshot!.state.checkoutExpiresAt;
    const change = applyCheckoutExpiry(snapshot!.state, nowAt);
    const expiry = { change, transitionId: `${ref.subscriptionId}:2`, command: null, nowAt };
    expect(await recordTransition(world.db, expiry)).toEqual({ kind: 'recorded' });
    expect((await rowOf(path)).uses).toBe(0);
    // A repeated transition returns no second use.
    expect(await recordTransition(world.db, expiry)).toMatchObject({ kind: 'repeated' });
    expect((await rowOf(path)).uses).toBe(0);
    expect((await browser.open()).status).toBe(200);
  });

  test('is not returned when the outcome is unknown or the payment was made [D-37, D-§4]', async () => {
    const path = await makeLink();
    const { subscriptionId, ref, checkout } = await sell(path);
    await browse(`${checkout}/return?payment_token=tok_unknown_of_a_link`);
    expect((await cancel(subscriptionId)).status).toBe(200);
    expect((await rowOf(path)).uses).toBe(1);
    world.workflows.faults.card = 'paid late';
    await world.workflows.lookUp(ref).finally(() => {
      world.workflows.faults.card = null;
    });
    expect((await rowOf(path)).uses).toBe(1);

    const paid = await makeLink();
    const sale = await sell(paid);
    await browse(`${sale.checkout}/return?payment_token=tok_good_of_a_link`);
    expect((await cancel(sale.subscriptionId)).status).toBe(200);
    expect((await rowOf(paid)).uses).toBe(1);
  });
});

describe('a checkout of a link', () => {
  test('has no link and no redirect to a merchant when it has no callbackUrl [IF-4.4, D-44]', async () => {
    const path = await makeLink({ customerDetails: {} });
    const { submit } = await openLink(path);
    const sent = await submit({ name: 'Ada', email: 'ada@example.com' });
    const checkout = String(sent.headers['location']);
    const open = await browse(checkout);
    expect(fieldsOf(open.text)).toContainEqual({
      name: 'name',
      label: 'Name on card',
      autocomplete: 'cc-name',
      value: 'Ada',
    });
    await browse(`${checkout}/return?payment_token=tok_ends_here`);
    const result = await browse(checkout);
    expect(result.text).toContain('<h1>Thank you: your payment was received</h1>');

    const cancelled = await sell(await makeLink());
    await cancel(cancelled.subscriptionId);
    const over = await browse(cancelled.checkout);
    expect(over.status).toBe(410);
    for (const { text } of [open, result, over]) {
      expect(text).not.toContain('<a ');
      expect(text).not.toContain('http-equiv="refresh"');
    }
  });

  test('redirects to its callbackUrl with the subscription’s id [IF-4.4, D-44]', async () => {
    const path = await makeLink({ callbackUrl: 'https://merchant.example/b?x=1', receiptId: 'r' });
    const { checkout, subscriptionId } = await sell(path);
    await browse(`${checkout}/return?payment_token=tok_leads_on`);
    expect((await browse(checkout)).text).toContain(
      `<a class="button" href="https://merchant.example/b?x=1&amp;subscription_id=${subscriptionId}` +
        '&amp;status=ACTIVE&amp;receipt_id=r">Continue to Acme Ltd</a>',
    );
  });
});

test('an address is refused with 429 after twenty unknown links in a minute [D-37]', async () => {
  const fresh = await createApiWorld();
  const guess = (at: number) =>
    fresh.call('GET', `/l/${String(at).padStart(12, '0')}`, { as: null });
  for (let at = 0; at < 20; at += 1) expect((await guess(at)).status).toBe(410);
  const refused = await guess(20);
  await fresh.close();
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(refused.text).toContain('<h1>Too many tries</h1>');
});

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';
import { cardOf, PAYING_CARD } from '../support/payer.ts';
import {
  fieldsOf,
  focused,
  heading,
  openPayer,
  payByCard,
  picture,
  SHOP_URL,
  tooWide,
  typeCard,
} from '../support/payer-browser.ts';
import type { PayerOptions } from '../support/payer-browser.ts';
import { openShop } from '../support/shop.ts';
import type { Shop } from '../support/shop.ts';
import { connectDevServer, createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

const NO_BROWSER = chromiumMissing();
const DECLINING_CARD = cardOf('4000 0000 0000 0002');
const DECLINED =
  'Your payment was declined and nothing was charged. Check the details and try again, or use another card.';

let world: World;
let shop: Shop;
let browser: Browser;
const toClose: (() => Promise<void>)[] = [];

beforeAll(async () => {
  if (NO_BROWSER !== null) return;
  browser = await launchChromium();
  toClose.push(() => browser.close());
  const server = await connectDevServer();
  toClose.push(() => server.close());
  world = await createWorld(server);
  toClose.push(() => world.close());
  shop = await openShop(world);
  toClose.push(() => shop.close());
});
afterAll(async () => {
  for (const close of toClose.toReversed()) await close();
});
beforeEach((context) => {
  if (NO_BROWSER !== null) context.skip(NO_BROWSER);
});
afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
});

interface Created {
  subscriptionId: string;
  fwdUrl: string;
}

/** A subscription made over HTTP, as its merchant, its payer and the gateway see it. */
async function subscribe(terms: object = {}) {
  const { subscriptionId, fwdUrl } = await shop.merchant.post<Created>('/subscription/create', {
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: `${SHOP_URL}/thanks`,
    cancelUrl: `${SHOP_URL}/basket`,
    currency: 'USD',
    amount: 1_999,
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    productPage: { name: 'Garden Letters', description: 'One letter a month.' },
    ...terms,
  });
  return {
    subscriptionId,
    fwdUrl,
    news: async (count: number) =>
      (await shop.news(subscriptionId, count)).map((line) =>
        line.slice('2026-11-20 12:00 '.length),
      ),
    /** Outcome and amount of every charge in the gateway's own book. */
    book: async () =>
      (await world.book({ merchantId: world.merchantId, subscriptionId })).map(
        ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
      ),
  };
}

/** What the merchant was told of an intent or a setup session of its own, once `count` events came. */
async function newsOf(field: 'intentId' | 'setupMethodId', id: string, count: number) {
  const received = () => shop.receiver.received.filter(({ event }) => event[field] === id);
  await vi.waitUntil(() => received().length >= count, { timeout: 30_000, interval: 20 });
  return received().map(({ event }) => `${event.eventType} ${String(event['status'])}`);
}

const bookOfIntent = async (intentId: string) =>
  (await world.control('GET', `/control/charges?intentId=${intentId}`)).charges.map(
    ({ outcome, amountMinor }) => `${outcome} ${amountMinor}`,
  );

const payer = (options?: PayerOptions): Promise<Page> => openPayer(browser, options);

describe('the checkout, in a browser', () => {
  test('is paid without script, and leads on to the merchant [IF-4.3, D-44]', async () => {
    const life = await subscribe();
    const page = await payer();
    await page.goto(life.fwdUrl);
    await picture(page, 'checkout');
    expect(await heading(page)).toBe('Garden Letters');
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    await page.getByRole('link', { name: 'Continue to Test merchant' }).click();
    await page.waitForURL(`${SHOP_URL}/**`);
    expect(page.url()).toBe(
      `${SHOP_URL}/thanks?subscription_id=${life.subscriptionId}&status=ACTIVE`,
    );
    expect(await life.book()).toEqual(['succeeded 1999']);
  });

  test('is paid with script on, too, and goes on to the merchant by itself [D-44]', async () => {
    const life = await subscribe();
    const page = await payer({ script: true });
    const errors: string[] = [];
    page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
    await page.goto(life.fwdUrl);
    await payByCard(page);
    await page.waitForURL(`${SHOP_URL}/**`);
    expect(await heading(page)).toBe('The shop');
    // Nothing that the page's own policy had to stop.
    expect(errors).toEqual([]);
    expect(await life.book()).toEqual(['succeeded 1999']);
  });

  test('says in one neutral text that a card was declined, and takes the next [D-§4]', async () => {
    const life = await subscribe();
    const page = await payer();
    await page.goto(life.fwdUrl);
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    await picture(page, 'checkout-declined');
    expect(page.url()).toBe(life.fwdUrl);
    // The name is known; the number and the CVC are the gateway's alone.
    expect(await page.getByLabel('Name on card').inputValue()).toBe('Ada Example');
    expect(await page.getByLabel('Card number').inputValue()).toBe('');

    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    expect(await life.book()).toEqual(['declined 1999', 'succeeded 1999']);
    expect(await life.news(7)).toEqual([
      'intent.created CREATED 1999 USD',
      'subscription.created CREATED 1999 USD',
      'intent.checkout_opened CREATED 1999 USD',
      'intent.failed FAILED 1999 USD, card_declined',
      'intent.success SUCCESS 1999 USD',
      expect.stringContaining('subscription.cycle_charged ACTIVE 1999 USD, cycle 1, 11 left'),
      expect.stringContaining('subscription.active ACTIVE 1999 USD'),
    ]);
  });

  test('pays once when its button is clicked twice [D-32]', async () => {
    const life = await subscribe();
    const page = await payer({ width: 360 });
    await page.goto(life.fwdUrl);
    await picture(page, 'checkout-phone');
    await typeCard(page);
    await page.getByRole('button').dblclick();
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await life.book()).toEqual(['succeeded 1999']);
    const news = await life.news(6);
    expect(news.filter((line) => line.startsWith('intent.success'))).toHaveLength(1);
    expect(news.filter((line) => line.startsWith('subscription.cycle_charged'))).toHaveLength(1);
  });

  test('pays once for a payer who goes back, forward and reloads: the form is gone [D-32]', async () => {
    const life = await subscribe();
    const page = await payer();
    await page.goto(`${shop.url}/health`);
    await page.goto(life.fwdUrl);
    await payByCard(page);
    const paid = 'Thank you: your payment was received';
    expect(await heading(page)).toBe(paid);

    await page.goBack();
    expect(page.url()).toBe(life.fwdUrl);
    expect(await page.locator('input').count()).toBe(0);
    await page.goForward();
    expect(await heading(page)).toBe(paid);
    await page.reload();
    expect(await heading(page)).toBe(paid);
    expect(await life.book()).toEqual(['succeeded 1999']);
  });

  test('two tabs that both pay make one charge [D-32]', async () => {
    const life = await subscribe();
    const first = await payer();
    const second = await payer();
    for (const page of [first, second]) {
      await page.goto(life.fwdUrl);
      await typeCard(page);
    }
    await Promise.all([first, second].map((page) => page.getByRole('button').click()));
    for (const page of [first, second]) {
      await page.getByText('Thank you: your payment was received').waitFor();
    }
    expect(await life.book()).toEqual(['succeeded 1999']);
  });

  test('that has expired says so and asks for nothing [D-§4]', async () => {
    const now = Date.parse('2027-03-01T12:00:00Z');
    const { testClockId } = await shop.merchant.post<{ testClockId: string }>(
      '/test-clock/create',
      { now },
    );
    const life = await subscribe({ testClockId });
    await shop.merchant.post('/test-clock/advance', { testClockId, to: now + 24 * 3_600_000 });
    const page = await payer();
    const response = await page.goto(life.fwdUrl);
    expect(response?.status()).toBe(410);
    expect(await heading(page)).toBe('This checkout has expired');
    expect(await page.locator('input, button').count()).toBe(0);
    await page.getByRole('link', { name: 'Return to Test merchant' }).click();
    expect(page.url()).toBe(
      `${SHOP_URL}/basket?subscription_id=${life.subscriptionId}&status=ENDED`,
    );
    expect(await life.book()).toEqual([]);
  });

  test('is left by its link, and is still open for who comes back [IF-4.3, D-44]', async () => {
    const life = await subscribe();
    const page = await payer();
    await page.goto(life.fwdUrl);
    await page.getByRole('link', { name: 'Cancel and return to Test merchant' }).click();
    expect(page.url()).toBe(
      `${SHOP_URL}/basket?subscription_id=${life.subscriptionId}&status=CREATED`,
    );
    await page.goBack();
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
  });
});

describe('a payer', () => {
  test('with the keyboard alone reaches every field in order and pays with Enter [issue 4]', async () => {
    const life = await subscribe();
    const page = await payer();
    await page.goto(life.fwdUrl);
    const order: string[] = [];
    const typed: Record<string, string> = {
      'Name on card': PAYING_CARD.name,
      'Card number': PAYING_CARD.number,
      Expiry: PAYING_CARD.expiry,
      CVC: PAYING_CARD.cvc,
    };
    for (let step = 0; step < 7; step += 1) {
      await page.keyboard.press('Tab');
      const name = await focused(page);
      order.push(name);
      if (typed[name] === undefined) continue;
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type(typed[name]);
    }
    expect(order).toEqual([
      'Test mode: no money moves. Test cards',
      'Name on card',
      'Card number',
      'Expiry',
      'CVC',
      'Pay 19.99 USD',
      'Cancel and return to Test merchant',
    ]);
    await page.getByLabel('CVC').focus();
    await page.keyboard.press('Enter');
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await life.book()).toEqual(['succeeded 1999']);
  });

  test('of a phone 360 px wide never pushes a page to the side [issue 4]', async () => {
    const life = await subscribe({
      productPage: { name: 'Garden'.repeat(20), description: 'x'.repeat(200) },
    });
    const page = await payer({ width: 360 });
    await page.goto(life.fwdUrl);
    expect(await tooWide(page)).toBe(0);
    await page.locator('summary').click();
    expect(await tooWide(page)).toBe(0);
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').isVisible()).toBe(true);
    expect(await tooWide(page)).toBe(0);
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    expect(await tooWide(page)).toBe(0);
  });

  test('who hears the page is told what each field is, and what is wrong with it [D-11, issue 4]', async () => {
    const life = await subscribe({ customerDetails: {}, phoneNumberRequired: true });
    const page = await payer();
    await page.goto(life.fwdUrl);
    expect(await fieldsOf(page)).toEqual([
      'Name, required',
      'E-mail address, required',
      'Phone number, required',
    ]);
    await page.getByLabel('Name').fill('Ada Example');
    // Good enough for the browser, and not for us.
    await page.getByLabel('E-mail address').fill('ada@example');
    await page.getByLabel('Phone number').fill('+44 20 7946 0000');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.waitForLoadState();
    expect(await fieldsOf(page)).toEqual([
      'Name, required',
      expect.stringMatching(/^E-mail address, required, invalid: .*e-mail/),
      'Phone number, required',
    ]);
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await page.getByRole('button', { name: 'Continue to payment' }).click();
    await page.waitForLoadState();

    await payByCard(page, DECLINING_CARD);
    expect(await fieldsOf(page)).toEqual([
      `Name on card, required: ${DECLINED}`,
      `Card number, required: ${DECLINED}`,
      `Expiry, required: ${DECLINED}`,
      `CVC, required: ${DECLINED}`,
    ]);
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    expect(await page.getByRole('main').count()).toBe(1);
  });
});

const LINK_TERMS = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: {},
  productPage: { name: 'Garden Letters', description: 'One letter a month.' },
};

const makeLink = async (changes: object = {}): Promise<string> => {
  const expiryDate = Date.now() + 86_400_000;
  const { shortUrl } = await shop.merchant.post<{ shortUrl: string }>(
    '/subscription/link/merchant/generate-link',
    { ...LINK_TERMS, expiryDate, ...changes },
  );
  return shortUrl;
};

async function sayWhoYouAre(page: Page): Promise<void> {
  await page.getByLabel('Name').fill('Ada Example');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForLoadState();
}

describe('a link, in a browser', () => {
  test('is opened, begun and paid; who comes back sees their own, everybody else that it is used up [D-37]', async () => {
    const shortUrl = await makeLink();
    const page = await payer({ width: 360 });
    await page.goto(shortUrl);
    expect(await heading(page)).toBe('Garden Letters');
    await picture(page, 'link');
    expect(await fieldsOf(page)).toEqual(['Name, required', 'E-mail address, required']);
    expect(await tooWide(page)).toBe(0);
    await sayWhoYouAre(page);
    const checkoutUrl = page.url();
    expect(checkoutUrl).toMatch(/\/checkout\/\w+$/);

    // The same browser comes back to its checkout, before and after it is paid.
    await page.goto(shortUrl);
    expect(page.url()).toBe(checkoutUrl);
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    await page.goto(shortUrl);
    expect(await heading(page)).toBe('Thank you: your payment was received');

    const stranger = await payer();
    const response = await stranger.goto(shortUrl);
    expect(response?.status()).toBe(410);
    expect(await heading(stranger)).toBe('This link cannot be used');
    expect(await stranger.locator('input, button').count()).toBe(0);
  });

  test('that is sent twice by one click too many begins one checkout [D-37]', async () => {
    const shortUrl = await makeLink({ multiUseLimit: 2 });
    const page = await payer();
    await page.goto(shortUrl);
    await page.getByLabel('Name').fill('Ada Example');
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await page.getByRole('button', { name: 'Continue' }).dblclick();
    await page.getByLabel('Card number').waitFor();

    const second = await payer();
    await second.goto(shortUrl);
    await sayWhoYouAre(second);
    expect(await second.getByLabel('Card number').isVisible()).toBe(true);
    const third = await payer();
    expect((await third.goto(shortUrl))?.status()).toBe(410);
  });

  test('that has expired says so, also to who had it open [D-37]', async () => {
    const shortUrl = await makeLink({ expiryDate: Date.now() + 3_000 });
    const page = await payer();
    await page.goto(shortUrl);
    await vi.waitFor(async () => expect((await fetch(shortUrl)).status).toBe(410), {
      timeout: 20_000,
      interval: 100,
    });
    await sayWhoYouAre(page);
    expect(await heading(page)).toBe('This link cannot be used');
    await page.goto(shortUrl);
    expect(await heading(page)).toBe('This link cannot be used');
  });
});

describe('a hosted payment, in a browser', () => {
  test('is declined, then paid once by two clicks, and leads on to the merchant [D-§7, D-44]', async () => {
    const { xIntentId, fwdUrl } = await shop.merchant.post<{ xIntentId: string; fwdUrl: string }>(
      '/payments/create-intent',
      {
        amount: 4_200,
        currency: 'EUR',
        description: 'Two tickets',
        customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
        callbackUrl: `${SHOP_URL}/paid`,
        receiptId: 'r-1',
      },
    );
    const page = await payer({ width: 360 });
    await page.goto(fwdUrl);
    expect(await heading(page)).toBe('Two tickets');
    await picture(page, 'payment');
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    expect(await tooWide(page)).toBe(0);
    await typeCard(page);
    await page.getByRole('button', { name: 'Pay 42.00 EUR' }).dblclick();
    await page.getByText('Thank you: your payment was received').waitFor();
    await page.getByRole('link', { name: 'Continue to Test merchant' }).click();
    expect(page.url()).toBe(
      `${SHOP_URL}/paid?xpay_intent_id=${xIntentId}&status=SUCCESS&receipt_id=r-1`,
    );
    expect(await bookOfIntent(xIntentId)).toEqual(['declined 4200', 'succeeded 4200']);
    expect(await newsOf('intentId', xIntentId, 4)).toEqual([
      'intent.created CREATED',
      'intent.checkout_opened CREATED',
      'intent.failed FAILED',
      'intent.success SUCCESS',
    ]);
  });
});

describe('a setup session, in a browser', () => {
  test('saves a card, charges nothing, and tells the merchant which [IF-4.13, D-44]', async () => {
    const { setupMethodId, fwdUrl } = await shop.merchant.post<{
      setupMethodId: string;
      fwdUrl: string;
    }>('/setup-method/create', {
      currency: 'USD',
      billingDetails: { name: 'Ada Example' },
      callbackUrl: `${SHOP_URL}/saved`,
    });
    const page = await payer({ width: 360 });
    await page.goto(fwdUrl);
    expect(await heading(page)).toBe('Save a card with Test merchant');
    expect(await fieldsOf(page)).toEqual(['E-mail address, required']);
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await page.getByRole('button', { name: 'Continue to your card' }).click();
    await page.waitForLoadState();
    await picture(page, 'setup');
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').innerText()).toMatch(
      /^Your card was declined and was not/,
    );
    expect(await tooWide(page)).toBe(0);
    await payByCard(page);
    expect(await heading(page)).toBe('Your card was saved');
    await page.getByRole('link', { name: 'Continue to Test merchant' }).click();

    const saved = await shop.merchant.get<Record<string, string>>(`/setup-method/${setupMethodId}`);
    expect(saved).toMatchObject({ status: 'SUCCESS' });
    const { pmId, customerId } = saved;
    expect(page.url()).toBe(
      `${SHOP_URL}/saved?setup_method_id=${setupMethodId}&pm_id=${pmId}&customer_id=${customerId}&status=SUCCESS`,
    );
    expect(await newsOf('setupMethodId', setupMethodId, 1)).toEqual([
      'setup_method.success SUCCESS',
    ]);
  });
});

/** One that pays by card on a clock of its own, and the page for another card. */
async function subscribed() {
  const now = Date.parse('2027-01-15T12:00:00Z');
  const clock = await shop.merchant.post<{ testClockId: string }>('/test-clock/create', { now });
  const { testClockId } = clock;
  const life = await subscribe({ testClockId });
  const page = await payer();
  await page.goto(life.fwdUrl);
  await payByCard(page);
  const { subscriptionId } = life;
  const read = () =>
    shop.merchant.get<Record<string, unknown>>(`/subscription/get-subscription/${subscriptionId}`);
  return {
    ...life,
    page,
    read,
    updateUrl: String((await read())['updatePaymentMethodLink']),
    advance: (to: string) =>
      shop.merchant.post('/test-clock/advance', { testClockId, to: Date.parse(to) }),
  };
}

describe('another card, in a browser', () => {
  test('replaces the one before and is the one charged next [D-33]', async () => {
    const life = await subscribed();
    const { page } = life;
    await page.goto(life.updateUrl);
    expect(await heading(page)).toBe('Change your card');
    await payByCard(page, cardOf('5555 5555 5555 4444'));
    expect(await heading(page)).toBe('Your card was replaced');
    await life.advance('2027-02-15T12:00:00Z');
    expect(await life.read()).toMatchObject({
      status: 'ACTIVE',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4444' } },
    });
    expect(await life.book()).toEqual(['succeeded 1999', 'succeeded 1999']);
  });

  test('pays what is due while UNPAID; one that is declined is kept, and says so [D-30, D-33]', async () => {
    const life = await subscribed();
    const { page, subscriptionId } = life;
    const decline = { subscriptionId, code: 'insufficient_funds', count: 2 };
    await world.control('POST', '/control/declines', decline);
    await life.advance('2027-02-15T12:00:00Z');
    await page.setViewportSize({ width: 360, height: 800 });
    await page.goto(life.updateUrl);
    const pay = page.getByRole('button', { name: 'Save card and pay 19.99 USD' });
    expect(await pay.isVisible()).toBe(true);
    await picture(page, 'update');
    await payByCard(page, cardOf('5555 5555 5555 4444'));
    expect(await page.getByRole('alert').innerText()).toBe(
      'Your new card was saved, but the payment of 19.99 USD was declined. You can use another card.',
    );
    expect(await tooWide(page)).toBe(0);
    expect(await life.read()).toMatchObject({
      status: 'UNPAID',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4444' } },
    });
    await typeCard(page);
    await pay.dblclick();
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await life.read()).toMatchObject({
      status: 'ACTIVE',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4242' } },
    });
    expect(await life.book()).toEqual([
      'succeeded 1999',
      'declined 1999',
      'declined 1999',
      'succeeded 1999',
    ]);
  });

  test('is not taken while the subscription is paused or over, and the page says why [D-33]', async () => {
    const life = await subscribed();
    const { page, subscriptionId } = life;
    const said = async () => {
      await page.goto(life.updateUrl);
      expect(await page.locator('input, button').count()).toBe(0);
      return [await heading(page), await page.locator('main p').first().innerText()];
    };
    await shop.merchant.post('/subscription/merchant/pause', { subscriptionId });
    expect(await said()).toEqual([
      'Your card cannot be changed here',
      'This subscription is paused, and nothing is charged. Your card can be changed once it goes on.',
    ]);
    await shop.merchant.post('/subscription/merchant/cancel', { subscriptionId });
    expect(await said()).toEqual([
      'Your card cannot be changed here',
      'This subscription has ended. Nothing more will be charged.',
    ]);
  });
});

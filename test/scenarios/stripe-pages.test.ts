import { eq } from 'drizzle-orm';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { paymentMethods } from '../../db/schema/customers.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { DECLINED, onHostedPages } from '../support/hosted-pages.ts';
import { clickThrough, heading, SHOP_URL } from '../support/payer-browser.ts';
import { startStripe } from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';
import { enterAccount } from '../support/stripe-merchant.ts';
import { createEnvironment } from '../support/test-environment.ts';

const PAYING = '4242 4242 4242 4242';
const CONTINUE = 'Continue to enter your card';
const PAID = 'Thank you: your payment was received';

/**
 * Starts a Stripe double whose pages are on another site (localhost) than our pages (127.0.0.1), as Stripe's
 * pages are.
 */
async function startForeignStripe(): Promise<StripeWorld> {
  const port = await freePort();
  return startStripe({ port, publicUrl: `http://localhost:${port}` });
}

/** In this environment the merchant has an account at the Stripe double. */
const test = onHostedPages()
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('world', { scope: 'file' }, async ({}, { onCleanup }) => {
    const world = await startForeignStripe();
    onCleanup(() => world.close());
    return world;
  })
  .extend('env', { scope: 'file' }, async ({ server, world }, { onCleanup }) => {
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    onCleanup(() => env.close());
    await enterAccount(env, world);
    return env;
  });

/** Opens our page at `url`, which asks nothing and leads to Stripe's page. */
async function openAtStripe(page: Page, url: string): Promise<void> {
  // The browser leaves our page while it loads, which Playwright may report as an error.
  await page.goto(url).catch(() => null);
  await page.waitForURL('http://localhost:*/checkout/**');
}

/** Presses the button of our page and waits for Stripe's page. */
async function leaveToStripe(page: Page, button = CONTINUE): Promise<void> {
  await page.getByRole('button', { name: button }).click();
  await page.waitForURL('http://localhost:*/checkout/**');
}

/** Types a card on Stripe's page and submits it. */
async function typeAtStripe(page: Page, number = PAYING): Promise<void> {
  await page.getByLabel('Card number').fill(number);
  await page.getByLabel('Expiry').fill('12 / 34');
  await page.getByLabel('CVC').fill('123');
  await page.getByLabel('Cardholder name').fill('Ada Example');
  await page.getByRole('button').click();
}

/** Enters a card on Stripe's page and waits until the browser is back on our page at `url`. */
async function enterAtStripe(page: Page, url: string, number = PAYING): Promise<void> {
  await typeAtStripe(page, number);
  await page.waitForURL(url);
}

interface DoubleCharge {
  readonly status: string;
  readonly amountMinor: number;
  readonly metadata: { readonly subscriptionId?: string; readonly intentId?: string };
}

/** Status and amount of every charge at Stripe for a subscription or an intent. */
async function chargesFor({ control }: StripeWorld, id: string): Promise<string[]> {
  const { charges } = await control('GET', 'charges');
  return (charges as DoubleCharge[])
    .filter(({ metadata }) => metadata.subscriptionId === id || metadata.intentId === id)
    .map(({ status, amountMinor }) => `${status} ${amountMinor}`);
}

describe('a checkout of a Stripe merchant, in a browser,', () => {
  test('is paid on Stripe’s page after the payer went back twice, without JavaScript [D-11, D-32]', async ({
    world,
    payer,
    subscribe,
  }) => {
    const { subscriptionId, fwdUrl, news } = await subscribe();
    const page = await payer();
    const returns: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/return?')) returns.push(request.url());
    });
    await openAtStripe(page, fwdUrl);
    expect(await page.getByText('Test merchant · Garden Letters').innerText()).toMatch(
      /^Test merchant · Garden Letters · Today: US\$19\.99 · Then: US\$19\.99 every month, from [^·]* · In all: US\$239\.88 in 12 payments, the last on [^·]* · Dates are in UTC\. As soon as you have entered it, US\$19\.99 is charged\. By continuing, you allow Test merchant to charge this card for each payment of this subscription, until it ends or is cancelled\.$/,
    );
    await clickThrough(page, page.getByRole('link', { name: 'Back' }));
    expect(page.url()).toBe(`${fwdUrl}?back`);
    expect(await page.locator('main').innerText()).toContain(
      'You enter your card on a page of Stripe, which processes cards for Test merchant. ' +
        'As soon as you have entered it, US$19.99 is charged.',
    );
    expect(await page.getByLabel('Card number').count()).toBe(0);
    await leaveToStripe(page);
    await page.goBack();
    expect(page.url()).toBe(`${fwdUrl}?back`);
    await leaveToStripe(page);
    await enterAtStripe(page, fwdUrl);
    expect(await heading(page)).toBe(PAID);
    expect(await chargesFor(world, subscriptionId)).toEqual(['succeeded 1999']);

    // The token in the return URL was redeemed. To load the URL again changes nothing.
    expect(returns).toHaveLength(1);
    await page.goto(returns[0] ?? '');
    expect(page.url()).toBe(fwdUrl);
    expect(await heading(page)).toBe(PAID);
    await page.goBack();
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await chargesFor(world, subscriptionId)).toEqual(['succeeded 1999']);
    expect(await news(6)).toEqual([
      'intent.created CREATED 1999 USD',
      'subscription.created CREATED 1999 USD',
      'intent.checkout_opened CREATED 1999 USD',
      'intent.success SUCCESS 1999 USD',
      expect.stringContaining('subscription.cycle_charged ACTIVE 1999 USD, cycle 1, 11 left'),
      expect.stringContaining('subscription.active ACTIVE 1999 USD'),
    ]);
  });

  test('opens another page of Stripe after a declined card, and is then paid [D-§4]', async ({
    world,
    payer,
    subscribe,
  }) => {
    const { subscriptionId, fwdUrl } = await subscribe();
    const page = await payer({ script: true });
    const blocked: string[] = [];
    page.on(
      'console',
      (line) => line.text().includes('Content Security') && blocked.push(line.text()),
    );
    await openAtStripe(page, fwdUrl);
    const first = page.url();
    await enterAtStripe(page, fwdUrl, '4000 0000 0000 0341');
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    await leaveToStripe(page);
    expect(page.url()).not.toBe(first);
    await enterAtStripe(page, fwdUrl);
    expect(await heading(page)).toBe(PAID);
    expect(await chargesFor(world, subscriptionId)).toEqual(['failed 1999', 'succeeded 1999']);
    expect(blocked).toEqual([]);
  });
});

describe('on the other pages of a Stripe merchant, in a browser,', () => {
  test('a payment is made once when the button is clicked twice [D-32]', async ({
    world,
    shop,
    payer,
  }) => {
    const made = await shop.merchant.post<{ xIntentId: string; fwdUrl: string }>(
      '/payments/create-intent',
      {
        amount: 4_200,
        currency: 'EUR',
        customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
        callbackUrl: `${SHOP_URL}/paid`,
      },
    );
    const page = await payer();
    await page.goto(`${made.fwdUrl}?back`);
    await page.getByRole('button', { name: CONTINUE }).dblclick();
    // The second click ends the first navigation, which `waitForURL` may report as an error.
    await expect.poll(() => page.url()).toMatch(/^http:\/\/localhost:\d+\/checkout\//);
    await enterAtStripe(page, made.fwdUrl);
    expect(await heading(page)).toBe(PAID);
    expect(await chargesFor(world, made.xIntentId)).toEqual(['succeeded 4200']);
  });

  test('a card is saved after 3D Secure, without a charge [IF-4.13]', async ({ shop, payer }) => {
    const { setupMethodId, fwdUrl } = await shop.merchant.post<{
      setupMethodId: string;
      fwdUrl: string;
    }>('/setup-method/create', {
      currency: 'USD',
      billingDetails: { name: 'Ada Example', email: 'ada@example.com' },
      callbackUrl: `${SHOP_URL}/saved`,
    });
    const page = await payer();
    await openAtStripe(page, fwdUrl);
    await typeAtStripe(page, '4000 0025 0000 3155');
    await page.getByRole('button', { name: 'Complete' }).click();
    await page.waitForURL(fwdUrl);
    expect(await heading(page)).toBe('Your card was saved');
    expect(await shop.merchant.get(`/setup-method/${setupMethodId}`)).toMatchObject({
      status: 'SUCCESS',
    });
  });

  test('a new card replaces the previous one and belongs to the same Stripe customer [D-33]', async ({
    world,
    env,
    payer,
    subscribe,
  }) => {
    const { subscriptionId, fwdUrl, read } = await subscribe();
    const page = await payer();
    await openAtStripe(page, fwdUrl);
    await enterAtStripe(page, fwdUrl);
    const { updatePaymentMethodLink, customerId } = await read();
    const updateUrl = String(updatePaymentMethodLink);

    await page.goto(updateUrl);
    expect(await heading(page)).toBe('Change your card');
    await leaveToStripe(page);
    await enterAtStripe(page, `${updateUrl}?outcome`, '5555 5555 5555 4444');
    expect(await heading(page)).toBe('Your card was replaced');
    expect(await read()).toMatchObject({
      status: 'ACTIVE',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4444' } },
    });
    expect(await chargesFor(world, subscriptionId)).toEqual(['succeeded 1999']);
    const methods = await env.db
      .select({ id: paymentMethods.gatewayMethodId })
      .from(paymentMethods)
      .where(eq(paymentMethods.customerId, String(customerId)));
    expect(methods).toHaveLength(2);
    expect(new Set(methods.map(({ id }) => id.split('/')[0])).size).toBe(1);
  });
});

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import type { Shop } from '../support/shop.ts';
import { DECLINED, onHostedPages } from '../support/hosted-pages.ts';
import { cardOf } from '../../tools/scripts/client/payer.ts';
import {
  clickThrough,
  fieldsOf,
  heading,
  payByCard,
  SHOP_URL,
  tooWide,
  typeCard,
} from '../support/payer-browser.ts';

const DECLINING_CARD = cardOf('4000 0000 0000 0002');
const test = onHostedPages();

const LINK_TERMS = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: {},
  productPage: { name: 'Garden Letters', description: 'One letter a month.' },
};

const makeLink = async (shop: Shop, changes: object = {}): Promise<string> => {
  const expiryDate = Date.now() + 86_400_000;
  const { shortUrl } = await shop.merchant.post<{ shortUrl: string }>(
    '/subscription/link/merchant/generate-link',
    { ...LINK_TERMS, expiryDate, ...changes },
  );
  return shortUrl;
};

async function enterNameAndEmail(page: Page): Promise<void> {
  await page.getByLabel('Name').fill('Ada Example');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await clickThrough(page, page.getByRole('button', { name: 'Continue' }));
}

describe('a subscription link, in a browser,', () => {
  test('shows the checkout to the payer who began the checkout, and a 410 page to other payers, when the link is used up [D-37]', async ({
    shop,
    payer,
  }) => {
    const shortUrl = await makeLink(shop);
    const page = await payer({ width: 360 });
    await page.goto(shortUrl);
    expect(await heading(page)).toBe('Garden Letters');
    expect(await fieldsOf(page)).toEqual(['Name, required', 'E-mail address, required']);
    expect(await tooWide(page)).toBe(0);
    await enterNameAndEmail(page);
    const checkoutUrl = page.url();
    expect(checkoutUrl).toMatch(/\/checkout\/\w+$/);

    // The same browser comes back to its checkout, before and after the payment.
    await page.goto(shortUrl);
    expect(page.url()).toBe(checkoutUrl);
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    await page.goto(shortUrl);
    expect(await heading(page)).toBe('Thank you: your payment was received');

    const other = await payer();
    const response = await other.goto(shortUrl);
    expect(response?.status()).toBe(410);
    expect(await heading(other)).toBe('This link cannot be used');
    expect(await other.locator('input, button').count()).toBe(0);
  });
});

describe('a hosted payment, in a browser,', () => {
  test('is paid once when its button is clicked twice [D-§7, D-44]', async ({
    shop,
    payer,
    payments,
  }) => {
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
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    expect(await tooWide(page)).toBe(0);
    await typeCard(page);
    await page.getByRole('button', { name: 'Pay €42.00' }).dblclick();
    await page.getByText('Thank you: your payment was received').waitFor();
    await clickThrough(page, page.getByRole('link', { name: 'Continue to Test merchant' }));
    expect(page.url()).toBe(
      `${SHOP_URL}/paid?xpay_intent_id=${xIntentId}&status=SUCCESS&receipt_id=r-1`,
    );
    expect(await payments.book({ intentId: xIntentId })).toEqual([
      'declined 4200 x1',
      'succeeded 4200 x1',
    ]);
    expect(await payments.story(xIntentId)).toEqual([
      'intent.created CREATED',
      'intent.checkout_opened CREATED',
      'intent.failed FAILED',
      'intent.success SUCCESS',
    ]);
  });
});

describe('a setup session, in a browser,', () => {
  test('saves a card without a charge and adds the session, method and customer ids to callbackUrl [IF-4.13, D-44]', async ({
    shop,
    payer,
    payments,
  }) => {
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
    await clickThrough(page, page.getByRole('button', { name: 'Continue to your card' }));
    await payByCard(page, DECLINING_CARD);
    expect(await page.getByRole('alert').innerText()).toMatch(
      /^Your card was declined and was not/,
    );
    expect(await tooWide(page)).toBe(0);
    await payByCard(page);
    expect(await heading(page)).toBe('Your card was saved');
    await clickThrough(page, page.getByRole('link', { name: 'Continue to Test merchant' }));

    const saved = await shop.merchant.get<Record<string, string>>(`/setup-method/${setupMethodId}`);
    expect(saved).toMatchObject({ status: 'SUCCESS' });
    const { pmId, customerId } = saved;
    expect(page.url()).toBe(
      `${SHOP_URL}/saved?setup_method_id=${setupMethodId}&pm_id=${pmId}&customer_id=${customerId}&status=SUCCESS`,
    );
    expect(await payments.story(setupMethodId)).toEqual(['setup_method.success SUCCESS']);
  });
});

describe('a new card, in a browser,', () => {
  test('is charged for the owed cycle in UNPAID and is kept even if this charge is declined [D-30, D-33]', async ({
    shop,
    payer,
    subscribe,
  }) => {
    const { testClockId, advance } = await shop.createClock(Date.parse('2027-01-15T12:00:00Z'));
    const subscription = await subscribe({ testClockId });
    const page = await payer();
    await page.goto(subscription.fwdUrl);
    await payByCard(page);
    const { updatePaymentMethodLink } = await subscription.read();
    await subscription.declineNext('insufficient_funds', 2);
    await advance(Date.parse('2027-02-15T12:00:00Z'));
    await page.setViewportSize({ width: 360, height: 800 });
    await page.goto(String(updatePaymentMethodLink));
    const pay = page.getByRole('button', { name: 'Save card and pay US$19.99' });
    expect(await pay.isVisible()).toBe(true);
    await payByCard(page, cardOf('5555 5555 5555 4444'));
    expect(await page.getByRole('alert').innerText()).toBe(
      'Your new card was saved, but the payment of US$19.99 was declined. You can use another card.',
    );
    expect(await tooWide(page)).toBe(0);
    expect(await subscription.read()).toMatchObject({
      status: 'UNPAID',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4444' } },
    });
    await typeCard(page);
    await pay.dblclick();
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await subscription.read()).toMatchObject({
      status: 'ACTIVE',
      paymentMetadata: { cardMetadata: { lastFourDigit: '4242' } },
    });
    expect(await subscription.book()).toEqual([
      'succeeded 1999',
      'declined 1999',
      'declined 1999',
      'succeeded 1999',
    ]);
  });
});

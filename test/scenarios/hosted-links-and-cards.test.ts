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

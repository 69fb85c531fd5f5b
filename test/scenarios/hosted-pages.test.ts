import { describe, expect } from 'vitest';

import { DECLINED, onHostedPages } from '../support/hosted-pages.ts';
import { cardOf, PAYING_CARD } from '../../tools/scripts/client/payer.ts';
import {
  clickThrough,
  fieldsOf,
  focused,
  heading,
  payByCard,
  receiptOf,
  SHOP_URL,
  tooWide,
  typeCard,
} from '../support/payer-browser.ts';

/** The height of a small phone's screen. */
const PHONE_SCREEN_PX = 667;
const DECLINING_CARD = cardOf('4000 0000 0000 0002');
const test = onHostedPages();

describe('the checkout, in a browser,', () => {
  test('is paid without JavaScript, then shows a receipt and a button to callbackUrl [IF-4.3, D-44]', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe();
    const page = await payer();
    await page.goto(subscription.fwdUrl);
    expect(await heading(page)).toBe('Garden Letters');
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    expect(await receiptOf(page)).toMatchObject({
      Paid: 'US$19.99',
      Product: 'Garden Letters',
      Merchant: 'Test merchant',
      Card: 'Visa ending in 4242',
    });
    await clickThrough(page, page.getByRole('link', { name: 'Continue to Test merchant' }));
    expect(page.url()).toBe(
      `${SHOP_URL}/thanks?subscription_id=${subscription.subscriptionId}&status=ACTIVE`,
    );
    expect(await subscription.book()).toEqual(['succeeded 1999']);
  });

  test('shows no second form and stays paid once when its payer goes back or reloads [D-32]', async ({
    shop,
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe();
    const page = await payer();
    await page.goto(`${shop.url}/health`);
    await page.goto(subscription.fwdUrl);
    await payByCard(page);
    const paid = 'Thank you: your payment was received';
    expect(await heading(page)).toBe(paid);

    await page.goBack();
    expect(page.url()).toBe(subscription.fwdUrl);
    expect(await page.locator('input').count()).toBe(0);
    await page.goForward();
    expect(await heading(page)).toBe(paid);
    await page.reload();
    expect(await heading(page)).toBe(paid);
    expect(await subscription.book()).toEqual(['succeeded 1999']);
  });

  test('is paid once when two tabs submit it at the same time [D-32]', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe();
    const first = await payer();
    const second = await payer();
    for (const page of [first, second]) {
      await page.goto(subscription.fwdUrl);
      await typeCard(page);
    }
    await Promise.all([first, second].map((page) => page.getByRole('button').click()));
    for (const page of [first, second]) {
      await page.getByText('Thank you: your payment was received').waitFor();
    }
    expect(await subscription.book()).toEqual(['succeeded 1999']);
  });
});

describe('the hosted pages', () => {
  test('can be filled in and submitted in order by keyboard alone', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe();
    const page = await payer();
    await page.goto(subscription.fwdUrl);
    const order: string[] = [];
    const typed: Record<string, string> = {
      'Name on card': PAYING_CARD.name,
      'Card number': PAYING_CARD.number,
      Expiry: PAYING_CARD.expiry,
      CVC: PAYING_CARD.cvc,
    };
    for (let step = 0; step < 8; step += 1) {
      await page.keyboard.press('Tab');
      const name = await focused(page);
      order.push(name);
      if (typed[name] === undefined) continue;
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type(typed[name]);
    }
    expect(order).toEqual([
      'Test mode: no money moves. Test cards',
      'Change e-mail address',
      'Name on card',
      'Card number',
      'Expiry',
      'CVC',
      'Pay US$19.99',
      'Cancel and return to Test merchant',
    ]);
    await page.getByLabel('CVC').focus();
    await page.keyboard.press('Enter');
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await subscription.book()).toEqual(['succeeded 1999']);
  });

  test('show the offer beside the form on a wide screen and above it on a phone, and never scroll sideways for a long name', async ({
    payer,
    subscribe,
  }) => {
    for (const locale of ['en', 'ar']) {
      const productPage = { name: 'Garden'.repeat(20), description: 'x'.repeat(200) };
      const subscription = await subscribe({ locale, productPage });
      const placesAt = async (width: number) => {
        const page = await payer({ width });
        await page.goto(subscription.fwdUrl);
        expect(await tooWide(page)).toBe(0);
        const offer = (await page.locator('section:has(h1)').boundingBox())!;
        const form = (await page.locator('section:has(form)').boundingBox())!;
        return { offer, form };
      };
      const phone = await placesAt(360);
      expect(phone.form.y).toBeGreaterThan(phone.offer.y + phone.offer.height);
      expect(phone.form.x).toBe(phone.offer.x);
      const wide = await placesAt(1_280);
      const [first, second] = locale === 'ar' ? [wide.form, wide.offer] : [wide.offer, wide.form];
      expect(second.x).toBeGreaterThan(first.x + first.width);
      expect(wide.form.y).toBeLessThan(wide.offer.y + wide.offer.height);
    }
  });

  test('give a screen reader the name and the error of each field, and take another card after a declined one [D-11, D-§4]', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe({ customerDetails: {}, phoneNumberRequired: true });
    const page = await payer({ width: 375 });
    await page.goto(subscription.fwdUrl);
    expect(await fieldsOf(page)).toEqual([
      'Name, required',
      'E-mail address, required',
      'Phone number, required',
    ]);
    await page.getByLabel('Name').fill('Ada Example');
    // The browser accepts this address, our validation does not.
    await page.getByLabel('E-mail address').fill('ada@example');
    await page.getByLabel('Phone number').fill('+44 20 7946 0000');
    await clickThrough(page, page.getByRole('button', { name: 'Continue to payment' }));
    expect(await fieldsOf(page)).toEqual([
      'Name, required',
      expect.stringMatching(/^E-mail address, required, invalid: .*e-mail/),
      'Phone number, required',
    ]);
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await clickThrough(page, page.getByRole('button', { name: 'Continue to payment' }));

    await payByCard(page, DECLINING_CARD);
    expect(await fieldsOf(page)).toEqual([
      `Name on card, required: ${DECLINED}`,
      `Card number, required: ${DECLINED}`,
      `Expiry, required: ${DECLINED}`,
      `CVC, required: ${DECLINED}`,
    ]);
    expect(await page.getByRole('alert').innerText()).toBe(DECLINED);
    expect(await focused(page)).toBe(DECLINED);
    expect(await page.title()).toBe('Error: Garden Letters · Test merchant');
    const alert = (await page.getByRole('alert').boundingBox())!;
    expect(alert.y + alert.height).toBeLessThan(PHONE_SCREEN_PX);
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    expect(await page.getByRole('main').count()).toBe(1);
    expect(page.url()).toBe(subscription.fwdUrl);
    // The name is filled in. Number and CVC are empty, because they go to the gateway only.
    expect(await page.getByLabel('Name on card').inputValue()).toBe('Ada Example');
    expect(await page.getByLabel('Card number').inputValue()).toBe('');
    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    expect(await subscription.book()).toEqual(['declined 1999', 'succeeded 1999']);
  });
});

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
const PHONE_HEIGHT_PX = 844;
const ACCEPTED = 'Visa · Mastercard · American Express · Diners Club · Discover · JCB · UnionPay';
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

  test('takes the payment from the saved card of a returning customer [D-11]', async ({
    payer,
    subscribe,
  }) => {
    const first = await subscribe();
    const page = await payer();
    await page.goto(first.fwdUrl);
    await payByCard(page);
    const { customerId } = await first.read();
    const second = await subscribe({ customerId, customerDetails: {}, amount: 2_900 });
    await page.goto(second.fwdUrl);
    await page.getByRole('button', { name: 'Pay with Visa 4242' }).click();
    await page.getByText('Thank you: your payment was received').waitFor();
    expect(await second.book()).toEqual(['succeeded 2900']);
    expect(await second.news(6)).toEqual([
      'intent.created CREATED 2900 USD',
      'subscription.created CREATED 2900 USD',
      'intent.checkout_opened CREATED 2900 USD',
      'intent.success SUCCESS 2900 USD',
      expect.stringContaining('subscription.cycle_charged ACTIVE 2900 USD, cycle 1, 11 left'),
      expect.stringContaining('subscription.active ACTIVE 2900 USD'),
    ]);
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
  test('are paid by keyboard alone, after a mistyped e-mail address, a mistyped card and a declined one', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe({ customerDetails: {} });
    const page = await payer({ script: true });
    const press = (key: string) => page.keyboard.press(key);
    const type = async (text: string) => {
      await press('ControlOrMeta+A');
      await page.keyboard.type(text);
    };
    const pressAndLoad = (key: string) => Promise.all([page.waitForEvent('load'), press(key)]);
    /** Presses Tab until the element has the focus, which must be visible. Returns each element that had it. */
    const tabTo = async (name: string) => {
      const order: string[] = [];
      while (order.at(-1) !== name && order.length < 20) {
        await press('Tab');
        order.push(await focused(page));
      }
      expect(await page.evaluate('document.activeElement.matches(":focus-visible")')).toBe(true);
      return order;
    };
    await page.goto(subscription.fwdUrl);
    expect(await tabTo('Name')).toEqual(['Test mode: test cards', 'Name']);
    await type('Ada Example');
    expect(await tabTo('E-mail address')).toEqual(['E-mail address']);
    await type('ada@example');
    await pressAndLoad('Enter');
    expect(await focused(page)).toBe('E-mail address');
    await type('ada@example.com');
    await pressAndLoad('Enter');

    expect(await tabTo('Card number')).toEqual([
      'Test mode: test cards',
      'Change e-mail address',
      'Name on card',
      'Card number',
    ]);
    await type('4242 4242 4242 4243');
    await tabTo('Expiry');
    await type(PAYING_CARD.expiry);
    await tabTo('CVC');
    await type(PAYING_CARD.cvc);
    expect(await tabTo('Cancel and return to Test merchant')).toEqual([
      'Pay US$19.99',
      'Cancel and return to Test merchant',
    ]);
    await press('Shift+Tab');
    await press('Enter');
    expect(await focused(page)).toBe('Card number');
    expect(await page.title()).toBe('Error: Garden Letters · Test merchant');
    await type(DECLINING_CARD.number);
    await press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await focused(page)).toBe(DECLINED);

    await tabTo('Card number');
    await type(PAYING_CARD.number);
    await tabTo('Expiry');
    await type(PAYING_CARD.expiry);
    await tabTo('CVC');
    await type(PAYING_CARD.cvc);
    await press('Enter');
    await page.getByText('Thank you: your payment was received').waitFor();
    await tabTo('Continue to Test merchant');
    await pressAndLoad('Enter');
    expect(page.url()).toContain(`${SHOP_URL}/thanks?subscription_id=`);
    expect(await subscription.book()).toEqual(['declined 1999', 'succeeded 1999']);
  });

  test('have the button of a trial in test mode on the first screen of a phone, and name the accepted cards', async ({
    payer,
    subscribe,
  }) => {
    const trial = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
    const page = await payer({ width: 390 });
    await page.goto((await subscribe(trial)).fwdUrl);
    const { y, height } = (await page.getByRole('button').boundingBox())!;
    expect(y + height).toBeLessThan(PHONE_HEIGHT_PX);
    await page.getByText(ACCEPTED).waitFor();
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

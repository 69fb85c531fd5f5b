import { describe, expect, test } from 'vitest';
import { DECLINED, hostedWorld } from '../support/hosted-world.ts';
import { cardOf, PAYING_CARD } from '../support/payer.ts';
import {
  fieldsOf,
  focused,
  heading,
  payByCard,
  picture,
  SHOP_URL,
  tooWide,
  typeCard,
} from '../support/payer-browser.ts';

const DECLINING_CARD = cardOf('4000 0000 0000 0002');
const { payer, shop, subscribe } = hostedWorld();

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
    await page.goto(`${shop().url}/health`);
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
    const { testClockId } = await shop().merchant.post<{ testClockId: string }>(
      '/test-clock/create',
      { now },
    );
    const life = await subscribe({ testClockId });
    await shop().merchant.post('/test-clock/advance', { testClockId, to: now + 24 * 3_600_000 });
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
  test('with the keyboard alone reaches every field in order and pays with Enter [design §2]', async () => {
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

  test('of a phone 360 px wide never pushes a page to the side [design §2]', async () => {
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

  test('who hears the page is told what each field is, and what is wrong with it [D-11, design §2]', async () => {
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

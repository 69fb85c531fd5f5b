import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { checkoutSessions } from '../../db/schema/checkouts.ts';
import { onHostedPages } from '../support/hosted-pages.ts';
import { PAYING_CARD } from '../../tools/scripts/client/payer.ts';
import { clickThrough, fieldsOf, focused, heading, payByCard } from '../support/payer-browser.ts';

const test = onHostedPages();

/** Cards with a wrong number, expiry and CVC, each with the error texts of the three fields. */
const MISTYPED = [
  [
    { number: '4242 4242 4242 424', expiry: '13 / 34', cvc: '12' },
    'The card number is too short. Check that no digit is missing.',
    'Enter month and year as they are printed on the card, such as 08 / 29.',
    'Enter the 3 digits on the back of the card.',
  ],
  [
    { number: '3782 822463 10006', expiry: '12+34', cvc: '123' },
    'The card number is not right. Compare each digit with your card.',
    'Enter month and year as they are printed on the card, such as 08 / 29.',
    'Enter the 4 digits on the front of the card.',
  ],
] as const;

describe('a payer with typing errors, in a browser,', () => {
  test('mistypes number, expiry and CVC twice and the CVC once more, and then pays, and no decline was counted [D-61]', async ({
    env,
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe();
    const page = await payer();
    await page.goto(subscription.fwdUrl);
    for (const [typed, number, expiry, cvc] of MISTYPED) {
      await payByCard(page, { name: 'Ada Example', ...typed });
      // The payer stays on our page, with the product, the consent and the test cards.
      expect(page.url()).toContain(`${subscription.fwdUrl}?mistyped=`);
      expect(await page.title()).toBe('Error: Garden Letters · Test merchant');
      expect(await heading(page)).toBe('Garden Letters');
      expect(await page.getByText('By continuing, you allow').count()).toBe(1);
      expect(await page.getByText('Test cards').count()).toBe(1);
      expect(await fieldsOf(page)).toEqual([
        'Name on card, required',
        `Card number, required, invalid: ${number}`,
        `Expiry, required, invalid: ${expiry}`,
        `CVC, required, invalid: ${cvc}`,
      ]);
      expect(await focused(page)).toBe('Card number');
      expect(await page.getByLabel('Name on card').inputValue()).toBe('Ada Example');
      expect(await page.getByLabel('Card number').inputValue()).toBe('');
      expect(await page.getByLabel('Expiry').inputValue()).toBe('');
      expect(await page.getByLabel('CVC').inputValue()).toBe('');
      expect(await page.getByRole('alert').innerText()).toBe(
        'Correct the marked fields. Nothing was charged.',
      );
    }
    await payByCard(page, { ...PAYING_CARD, cvc: '12' });
    expect(await focused(page)).toBe('CVC');

    await payByCard(page);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    // Back leads through the form's addresses, and the browser never asks to send a form again.
    await page.goBack();
    expect(await page.locator('input').count()).toBe(0);
    expect(await heading(page)).toBe('Thank you: your payment was received');
    await page.goForward();
    expect(await subscription.book()).toEqual(['succeeded 1999']);
    expect(await subscription.news(6)).toEqual([
      'intent.created CREATED 1999 USD',
      'subscription.created CREATED 1999 USD',
      'intent.checkout_opened CREATED 1999 USD',
      'intent.success SUCCESS 1999 USD',
      expect.stringContaining('subscription.cycle_charged ACTIVE 1999 USD, cycle 1, 11 left'),
      expect.stringContaining('subscription.active ACTIVE 1999 USD'),
    ]);
    const [session] = await env.db
      .select({ tries: checkoutSessions.tries, lastErrorCode: checkoutSessions.lastErrorCode })
      .from(checkoutSessions)
      .where(eq(checkoutSessions.subscriptionId, subscription.subscriptionId));
    expect(session).toEqual({ tries: 1, lastErrorCode: null });
  });
});

describe('a payer who mistypes an e-mail address, in a browser,', () => {
  test.for([true, false])(
    'goes back and forward, reloads and opens a second tab, and the form is sent once for each click, with JavaScript: %s [D-11]',
    async (script, { payer, subscribe }) => {
      const { fwdUrl, book } = await subscribe({ customerDetails: {} });
      const page = await payer({ script });
      let forms = 0;
      page.context().on('request', (request) => {
        if (request.method() === 'POST' && request.url() === fwdUrl) forms += 1;
      });
      const button = page.getByRole('button', { name: 'Continue to payment' });
      await page.goto(fwdUrl);
      await page.getByLabel('Name').fill('Ada Example');
      await page.getByLabel('E-mail address').fill('ada@example');
      await clickThrough(page, button);
      const tab = await page.context().newPage();
      for (const step of [
        () => page.reload(),
        () => page.goBack(),
        () => page.goForward(),
        () => tab.goto(fwdUrl),
      ]) {
        await step();
        for (const shown of [page, tab].filter((each) => each.url() === fwdUrl)) {
          expect(await fieldsOf(shown)).toEqual([
            'Name, required',
            'E-mail address, required, invalid: Enter an e-mail address, such as ann@example.com.',
          ]);
          expect(await shown.getByLabel('Name').inputValue()).toBe('Ada Example');
        }
      }
      expect(forms).toBe(1);

      await page.getByLabel('E-mail address').fill('ada@example.com');
      await Promise.all([page.getByLabel('Card number').waitFor(), button.dblclick()]);
      await tab.reload();
      await payByCard(tab);
      await page.goBack();
      for (const shown of [page, tab]) {
        expect(await heading(shown)).toBe('Thank you: your payment was received');
      }
      expect(await book()).toEqual(['succeeded 1999']);
    },
  );
});

describe('the checkout on a phone, in a browser,', () => {
  test('shows an English name and the card number from left to right on the right side of an Arabic page', async ({
    payer,
    subscribe,
  }) => {
    const subscription = await subscribe({ locale: 'ar' });
    const page = await payer({ width: 360 });
    await page.goto(subscription.fwdUrl);
    const style = (selector: string) =>
      page.evaluate<string>(
        `(() => { const { direction, textAlign } = getComputedStyle(document.querySelector('${selector}'));
          return direction + ' ' + textAlign; })()`,
      );
    // The English name reads from left to right and begins on the right, as the rest of the page.
    expect(await style('h1')).toBe('ltr right');
    expect(await style('h2')).toBe('rtl start');
    expect(await style('#number')).toBe('ltr right');
    expect(await style('dd')).toBe('rtl start');
  });
});

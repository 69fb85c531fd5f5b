import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { customers } from '../../../db/schema/customers.ts';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { consentOf, fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import {
  expectSeeOther,
  hasCardForm,
  headingOf,
  refreshOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import { intentBody, readIntent } from '../../support/fixtures/payments.ts';

/** Creates a hosted payment and opens its page. */
async function open(api: ApiEnvironment, changes: object = {}) {
  const made = await api.call('POST', '/payments/create-intent', { body: intentBody(changes) });
  expect(made.status).toBe(200);
  const { xIntentId: intentId, fwdUrl } = made.json as { xIntentId: string; fwdUrl: string };
  return { intentId, ...visit(api, fwdUrl) };
}

const statusOf = async (api: ApiEnvironment, intentId: string) =>
  (await readIntent(api, intentId))['status'];

test('the payment page shows purpose, merchant and amount [D-§7]', async ({ api }) => {
  const { look } = await open(api, { description: 'Two <i>chairs</i> & a table' });
  const page = await look();
  expect(page.status).toBe(200);
  expect(headingOf(page)).toBe('Two &lt;i>chairs&lt;/i> &amp; a table');
  expect(page.text).toContain('<p class="from" dir="auto">Acme Ltd</p>');
  expect(linesOf(page.text)).toEqual([['To pay, once', 'US$25.00']]);
  expect(page.text).toContain('<button type="submit">Pay US$25.00</button>');
  expect(consentOf(page.text)).toBeUndefined();
});

test('the payment page and its receipt show the product of productPage [IF-2.8, D-§7]', async ({
  api,
}) => {
  const { look, give } = await open(api, {
    description: 'Order 7',
    productPage: { name: 'Tea & <b>biscuits</b>', description: 'Two boxes' },
  });
  const page = await look();
  expect(headingOf(page)).toBe('Tea &amp; &lt;b>biscuits&lt;/b>');
  expect(page.text).toContain('Two boxes');
  expect(page.text).not.toContain('Order 7');
  const paid = await give('payment_token=tok_pays_product');
  expect(linesOf(paid.text)).toContainEqual(['Product', 'Tea &amp; &lt;b>biscuits&lt;/b>']);
});

test('the payment page asks for consent to later charges when the card is saved [D-§7]', async ({
  api,
}) => {
  const { look } = await open(api, { tokenise: true });
  expect(consentOf((await look()).text)).toBe(
    'By continuing, you allow Acme Ltd to charge this card later for payments that you agree with ' +
      'them, until you withdraw this permission.',
  );
});

test('a paid payment page shows a receipt and a button to callbackUrl that keeps the URL’s query [D-44]', async ({
  api,
}) => {
  const { intentId, give } = await open(api, {
    receiptId: 'r 1',
    description: 'Two chairs',
  });
  const page = await give('payment_token=tok_pays_1');
  expect(await statusOf(api, intentId)).toBe('SUCCESS');
  expect(headingOf(page)).toBe('Thank you: your payment was received');
  expect(page.text).toContain('US$25.00 was paid to Acme Ltd.');
  expect(linesOf(page.text)).toEqual([
    ['Paid', 'US$25.00'],
    ['Product', 'Two chairs'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Date', expect.stringMatching(/^\d+ \w+ \d{4}$/)],
    ['Reference', 'r 1'],
  ]);
  expect(refreshOf(page)).toBeUndefined();
  expect(page.text).toContain(
    `<a class="button" href="https://merchant.example/back?order=7&amp;xpay_intent_id=${intentId}` +
      '&amp;status=SUCCESS&amp;receipt_id=r+1">Continue to Acme Ltd</a>',
  );
  // A payment of its own cannot be cancelled.
  const leave = `href="/m/${api.merchant.merchantId}`;
  expect(
    page.text
      .split(leave)
      .slice(1)
      .map((rest) => rest.split('"')[0]),
  ).toEqual(['/withdraw?reference=r+1']);
});

test('checkout_opened is emitted once when a browser opens the payment page, but not for HEAD or prefetch [D-51]', async ({
  api,
}) => {
  const { intentId, look } = await open(api);
  expect((await look({}, 'HEAD')).status).toBe(200);
  await look({ headers: { 'sec-purpose': 'prefetch' } });
  expect(await eventTypes(api, intentId)).toEqual(['intent.created']);
  await Promise.all([look(), look(), look()]);
  expect(await eventTypes(api, intentId)).toEqual(['intent.created', 'intent.checkout_opened']);
  const { merchantId } = api.merchant;
  expect(api.workflows.calls).toContainEqual({
    name: 'wakeStream',
    ref: { merchantId, streamId: intentId },
  });
});

test('the cancel link leads to cancelUrl with the callback parameters [D-44]', async ({ api }) => {
  const { intentId, look } = await open(api, { cancelUrl: 'https://merchant.example/basket' });
  const page = await look();
  expect(page.text).toContain(
    `<a href="https://merchant.example/basket?xpay_intent_id=${intentId}&amp;status=CREATED">` +
      'Cancel and return to Acme Ltd</a>',
  );
  expect(await statusOf(api, intentId)).toBe('CREATED');
});

test('an expired payment page answers 410, emits no checkout_opened and takes no card [D-41]', async ({
  api,
}) => {
  const { intentId, look, comeBack, path } = await open(api);
  api.clock.aheadMs += 24 * 3_600_000 + 1;
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([410, 'This page has expired']);
  expect(page.text).toContain('status=CANCELLED');
  expect(hasCardForm(page)).toBe(false);
  expectSeeOther(await comeBack('payment_token=tok_too_late'), path);
  expect(
    api.orders.calls.filter(({ order }) => 'intentId' in order && order.intentId === intentId),
  ).toEqual([]);
  expect(await eventTypes(api, intentId)).toEqual(['intent.created']);
});

test('a cancelled payment page answers 410 [D-41]', async ({ api }) => {
  const { intentId, look } = await open(api);
  const cancelled = await api.call('POST', `/payments/cancel/${intentId}`);
  expect(cancelled.status).toBe(200);
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([410, 'This payment was cancelled']);
});

test('the receipt of a payment shows a refund in part and in full [D-40]', async ({ api }) => {
  const { intentId, give, look } = await open(api);
  await give('payment_token=tok_refunded');
  const part = { xIntentId: intentId, amount: 1_000 };
  expect((await api.call('POST', '/payments/merchant/refund', { body: part })).status).toBe(200);
  const partly = await look();
  expect(headingOf(partly)).toBe('Thank you: your payment was received');
  expect(linesOf(partly.text).slice(0, 3)).toEqual([
    ['Paid', 'US$25.00'],
    ['Refunded', 'US$10.00'],
    ['Merchant', 'Acme Ltd'],
  ]);
  const refund = { xIntentId: intentId };
  expect((await api.call('POST', '/payments/merchant/refund', { body: refund })).status).toBe(200);
  const page = await look();
  expect(headingOf(page)).toBe('This payment was refunded');
  expect(page.text).toContain('&amp;status=REFUNDED">Continue to Acme Ltd</a>');
  expect(linesOf(page.text)[1]).toEqual(['Refunded', 'US$25.00']);
  expect(linesOf(page.text).at(-1)).toEqual(['Reference', intentId]);
});

test('the payment page first asks for missing details and stores these details in intent and customer [D-11]', async ({
  api,
}) => {
  const { intentId, look, post, path } = await open(api, {
    customerDetails: { name: 'Ada' },
    phoneNumberRequired: true,
  });
  expect(fieldsOf((await look()).text).slice(1)).toEqual([
    { name: 'email', label: 'E-mail address', autocomplete: 'email' },
    { name: 'contactNumber', label: 'Phone number', autocomplete: 'tel' },
  ]);
  const wrong = await post({ email: 'ada@', contactNumber: '+44 20 7946 0000' });
  expect(wrong.status).toBe(400);

  const given = { email: 'ada@example.com', contactNumber: '+44 20 7946 0000' };
  expectSeeOther(await post({ ...given, name: 'Mallory' }), path);
  expect(hasCardForm(await look())).toBe(true);
  const intent = await readIntent(api, intentId);
  expect(intent['customerDetails']).toEqual({ name: 'Ada', ...given });
  const [customer] = await api.db
    .select({ details: customers.details })
    .from(customers)
    .innerJoin(paymentIntents, eq(paymentIntents.customerId, customers.id))
    .where(eq(paymentIntents.id, intentId));
  expect(customer!.details).toEqual({ name: 'Ada', ...given });
});

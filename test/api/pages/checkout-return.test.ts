import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentAttempts, paymentIntents } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import { statusOf } from '../../support/fixtures/subscriptions.ts';
import { openCheckout, sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { browse, comeBack, expectSeeOther, ownReturn } from '../../support/hosted-pages/visits.ts';
import { consentOf, linesOf } from '../../support/hosted-pages/page-text.ts';

test('a paid checkout shows a receipt and a button to callbackUrl that keeps the URL’s query [D-44, IF-4.3]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api, {
    callbackUrl: 'https://merchant.example/back?a=1&b=%20#top',
    receiptId: 'r 1',
    productPage: { name: 'Tea & biscuits', description: 'A box every month' },
    upfrontAmount: 500,
  });
  expectSeeOther(await comeBack(api, path, 'payment_token=tok_pays'), path);
  expect(await statusOf(api, subscriptionId)).toBe('ACTIVE');

  const page = await browse(api, path);
  const url =
    'https://merchant.example/back?a=1&amp;b=%20' +
    `&amp;subscription_id=${subscriptionId}&amp;status=ACTIVE&amp;receipt_id=r+1#top`;
  expect(page.status).toBe(200);
  expect(page.text).not.toContain('http-equiv="refresh"');
  expect(page.text).toContain(`<a class="button" href="${url}">Continue to Acme Ltd</a>`);
  expect(page.text).toContain('<h1>Thank you: your payment was received</h1>');
  expect(page.text).toContain('The next payment is US$19.99 on 28\u00a0February\u00a02026 (UTC).');
  expect(linesOf(page.text)).toEqual([
    ['Paid', 'US$5.00'],
    ['Product', 'Tea &amp; biscuits'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Date', '31 January 2026 (UTC)'],
    ['Reference', 'r 1'],
  ]);
});

test('the receipt of a checkout stays that of the first payment after a renewal with another card [D-44]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  await comeBack(api, path, 'payment_token=tok_pays_1111');
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  const [intent] = await api.db
    .select({ id: paymentIntents.id })
    .from(paymentIntents)
    .where(eq(paymentIntents.subscriptionId, subscriptionId));
  const receipt = [
    ['Paid', 'US$19.99'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 1111'],
    ['Date', '31 January 2026 (UTC)'],
    ['Reference', intent!.id],
  ];
  expect(linesOf((await browse(api, path)).text)).toEqual(receipt);

  await api.workflows.execute(ref, {
    kind: 'replacePaymentMethod',
    commandId: 'tok_renews_2222',
    paymentToken: 'tok_renews_2222',
    checkoutSessionId: (await sessionOf(api, subscriptionId)).id,
  });
  await api.workflows.fallDue(ref);
  const later = await browse(api, path);
  expect(later.text).toContain('on 31\u00a0March\u00a02026 (UTC).');
  expect(linesOf(later.text)).toEqual(receipt);
});

test('a checkout with a trial saves the card, starts the trial and charges nothing [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api, {
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
  });
  expectSeeOther(await comeBack(api, path, 'payment_token=tok_saved'), path);
  expect(await statusOf(api, subscriptionId)).toBe('TRIALING');
  const page = await browse(api, path);
  expect(page.text).toContain('<h1>Your free trial has started</h1>');
  expect(page.text).toContain(
    'Nothing was charged today. The first payment is US$19.99 on 7\u00a0February\u00a02026 (UTC).',
  );
  expect(linesOf(page.text)).toEqual([
    ['Paid', 'Nothing'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Reference', subscriptionId],
  ]);
});

test('a paid checkout of a single cycle ends the subscription and shows the result [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api, { cycleCount: 1 });
  const asked = await browse(api, path);
  expect(linesOf(asked.text)).toEqual([
    ['Today', 'US$19.99'],
    ['In all', 'US$19.99 in 1 payment'],
  ]);
  // The page asks for no consent, because there is no later charge to permit.
  expect(consentOf(asked.text)).toBeUndefined();
  await comeBack(api, path, 'payment_token=tok_single');
  expect(await statusOf(api, subscriptionId)).toBe('ENDED');
  const page = await browse(api, path);
  expect([page.status, page.text.includes('This was the last payment.')]).toEqual([200, true]);
});

test('after a declined card, a checkout shows one neutral text and takes another card [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  expectSeeOther(await comeBack(api, path, 'payment_token=tok_insufficient_funds'), path);
  expect(await statusOf(api, subscriptionId)).toBe('CREATED');

  const page = await browse(api, path);
  expect(page.status).toBe(200);
  expect(page.text).toContain(
    '<p class="bad" id="declined" role="alert">Your payment was declined and nothing was charged. ' +
      'Check the details and try again, or use another card.</p>',
  );
  expect(page.text).not.toContain('insufficient');
  expect(page.text.match(/aria-describedby="declined"/g)).toHaveLength(4);

  expectSeeOther(await comeBack(api, path, 'payment_token=tok_second_pays'), path);
  expect(await statusOf(api, subscriptionId)).toBe('ACTIVE');
  expect((await sessionOf(api, subscriptionId)).tries).toBe(2);
});

test('a card that the tokeniser refuses counts as a try and shows the text of a decline [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  expectSeeOther(await comeBack(api, path, 'payment_error=incorrect_card_number'), path);
  expect((await browse(api, path)).text).toContain('Your payment was declined');
  expect(await sessionOf(api, subscriptionId)).toMatchObject({
    tries: 1,
    lastErrorCode: 'incorrect_card_number',
  });
});

test('a return from the tokeniser without a token or error, or with an invalid token, makes no attempt [D-44]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  const sent = api.workflows.calls.length;
  for (const query of [
    '',
    'payment_token=',
    'payment_token=a%20b',
    `payment_token=${'x'.repeat(201)}`,
  ]) {
    expectSeeOther(await comeBack(api, path, query), path);
  }
  expect((await sessionOf(api, subscriptionId)).tries).toBe(0);
  expect(api.workflows.calls).toHaveLength(sent);
});

test('after a decline or a payment, a reload of the checkout’s return URL makes no second attempt', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  const declined = 'payment_token=tok_card_declined_reload';
  for (let load = 0; load < 3; load += 1) expectSeeOther(await comeBack(api, path, declined), path);
  const paid = 'payment_token=tok_paid_reload';
  await Promise.all([comeBack(api, path, paid), comeBack(api, path, paid)]);
  expectSeeOther(await comeBack(api, path, paid), path);

  const attempts = await api.db
    .select({ number: paymentAttempts.attemptNumber, state: paymentAttempts.state })
    .from(paymentAttempts)
    .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
    .where(eq(paymentIntents.subscriptionId, subscriptionId))
    .orderBy(paymentAttempts.attemptNumber);
  expect(attempts).toEqual([
    { number: 1, state: 'DECLINED' },
    { number: 2, state: 'SUCCEEDED' },
  ]);
});

test('a HEAD request to a checkout’s return URL makes no payment [D-44]', async ({ api }) => {
  const { path, subscriptionId } = await openCheckout(api);
  const answer = await comeBack(api, path, 'payment_token=tok_head', { method: 'HEAD' });
  expectSeeOther(answer, path);
  expect(await statusOf(api, subscriptionId)).toBe('CREATED');
});

test('the checkout and return URLs show a page that reloads while the outcome is unknown', async ({
  api,
}) => {
  const { path } = await openCheckout(api);
  const query = 'payment_token=tok_unknown';
  const url = ownReturn(path, query).replace('&', '&amp;');
  const returned = await comeBack(api, path, query);
  expect(returned.status).toBe(200);
  expect(returned.text).toContain(`<meta http-equiv="refresh" content="3; url=${url}"/>`);
  expect(returned.text).toContain('<h1>Your payment is being processed</h1>');

  const reopened = await browse(api, path);
  expect(reopened.text).toContain(`<meta http-equiv="refresh" content="3; url=${path}"/>`);
  expect(reopened.text).not.toContain('Card number');

  // A second card is not charged while the outcome is unknown.
  const another = await comeBack(api, path, 'payment_token=tok_another');
  expect(another.text).toContain('<h1>Your payment is being processed</h1>');
});

test('a checkout that was cancelled while its outcome was unknown first shows "processing" and later the outcome [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  await comeBack(api, path, 'payment_token=tok_unknown_then_cancelled');
  const cancelled = await api.call('POST', '/subscription/merchant/cancel', {
    body: { subscriptionId },
  });
  expect(cancelled.status).toBe(200);

  const meanwhile = await browse(api, path);
  expect(meanwhile.text).toContain('<h1>Your payment is being processed</h1>');
  expect(meanwhile.text).not.toContain('Nothing was charged');

  api.workflows.faults.card = 'paid late';
  await api.workflows.lookUp({ merchantId: api.merchant.merchantId, subscriptionId });
  api.workflows.faults.card = null;
  const settled = await browse(api, path);
  expect(settled.text).toContain('<h1>This subscription has ended</h1>');
  expect(settled.text).toContain('1 payment was received. Nothing more will be charged.');
});

test('while Temporal is unavailable, a checkout’s return URL shows a 503 page; a later load of the URL pays', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  const query = 'payment_token=tok_outage';
  const url = ownReturn(path, query).replace('&', '&amp;');
  api.workflows.faults.isDown = true;
  const away = await comeBack(api, path, query);
  api.workflows.faults.isDown = false;

  expect(away.status).toBe(503);
  expect(away.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(away.text).toContain('Nothing is lost: reload it in a moment');
  expect(away.text).toContain(`<meta http-equiv="refresh" content="10; url=${url}"/>`);

  expectSeeOther(await comeBack(api, path, query), path);
  expect(await statusOf(api, subscriptionId)).toBe('ACTIVE');
});

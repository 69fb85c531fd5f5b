import { expect } from 'vitest';
import { intentsOf } from '../../support/fixtures/payments.ts';
import { test } from '../../support/api-environment.ts';
import { declineNext, statusOf } from '../../support/fixtures/subscriptions.ts';
import { openCheckout, sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { browse, comeBack, expectSeeOther, headingOf } from '../../support/hosted-pages/visits.ts';
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
  expect(page.text).toContain('The next payment is US$19.99 on 28\u00a0February\u00a02026.');
  expect(linesOf(page.text)).toEqual([
    ['Paid', 'US$5.00'],
    ['Product', 'Tea &amp; biscuits'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Date', '31 January 2026'],
    ['Reference', 'r 1'],
  ]);
});

test('the receipt of a checkout stays that of the first payment after a renewal with another card [D-44]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  await comeBack(api, path, 'payment_token=tok_pays_1111');
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  const [intent] = await intentsOf(api, subscriptionId);
  const receipt = [
    ['Paid', 'US$19.99'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 1111'],
    ['Date', '31 January 2026'],
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
  expect(later.text).toContain('on 31\u00a0March\u00a02026.');
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
    'Nothing was charged today. The first payment is US$19.99 on 7\u00a0February\u00a02026.',
  );
  expect(linesOf(page.text)).toEqual([
    ['Next payment', 'US$19.99 on 7 February 2026'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Reference', subscriptionId],
  ]);
});

test('a checkout of a single cycle asks for consent to save the card, ends the subscription when paid, and shows the result [D-§4]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api, { cycleCount: 1 });
  const asked = await browse(api, path);
  expect(linesOf(asked.text)).toEqual([
    ['Today', 'US$19.99'],
    ['In all', 'US$19.99 in 1 payment'],
  ]);
  // The merchant may charge the saved card of the customer later.
  expect(consentOf(asked.text)).toBe(
    'By continuing, you allow Acme Ltd to charge this card later for payments that you agree with ' +
      'them, until you withdraw this permission.',
  );
  await comeBack(api, path, 'payment_token=tok_single');
  expect(await statusOf(api, subscriptionId)).toBe('ENDED');
  const page = await browse(api, path);
  expect([page.status, page.text.includes('This was the last payment.')]).toEqual([200, true]);
});

test('a checkout that was unpaused before its first payment thanks for no payment [D-§4, D-44]', async ({
  api,
}) => {
  const trial = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
  const { path, subscriptionId } = await openCheckout(api, trial);
  await comeBack(api, path, 'payment_token=tok_in_trial');
  const send = (command: string, fields: object = {}) =>
    api.call('POST', `/subscription/merchant/${command}`, { body: { subscriptionId, ...fields } });
  expect((await send('pause')).status).toBe(200);
  expect((await send('unpause', { newNextPaymentDate: Date.UTC(2026, 2, 1) })).status).toBe(200);
  expect(await statusOf(api, subscriptionId)).toBe('ACTIVE');
  const page = await browse(api, path);
  expect([page.status, headingOf(page), linesOf(page.text)]).toEqual([
    200,
    'This checkout is complete',
    [],
  ]);
});

test('a checkout names the amount of the cycle that is owed, not the edited one, as the next payment [D-15, D-44]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  await comeBack(api, path, 'payment_token=tok_edited_later');
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  await declineNext(api, { ref }, 'card_declined');
  const send = (command: string, fields: object = {}) =>
    api.call('POST', `/subscription/${command}`, { body: { subscriptionId, ...fields } });
  expect((await send('merchant/pause')).status).toBe(200);
  expect((await send('edit', { newAmount: 3_000 })).status).toBe(200);
  const unpause = { newNextPaymentDate: Date.UTC(2026, 3, 1) };
  expect((await send('merchant/unpause', unpause)).status).toBe(200);
  expect(await statusOf(api, subscriptionId)).toBe('ACTIVE');
  expect((await browse(api, path)).text).toContain(
    'The next payment is US$19.99 on 1\u00a0April\u00a02026.',
  );
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

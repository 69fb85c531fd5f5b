import { expect } from 'vitest';
import { test as apiTest } from '../../support/api-environment.ts';
import { makeHosted } from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { hasCardForm, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const test = apiTest.extend('apiOptions', { scope: 'file' }, { trustedProxies: 1 });

test('in test mode, one IP address can try forty cards in one checkout and then pay in it [D-61]', async ({
  api,
}) => {
  const subscription = await createSubscription(api);
  const { give } = visit(api, subscription.fwdUrl, '203.0.113.16');
  for (let card = 1; card <= 40; card += 1) {
    expect(hasCardForm(await give(`payment_token=tok_card_declined_test_${card}`))).toBe(true);
  }
  await give('payment_token=tok_good_last');
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
});

test('in test mode, a payment is locked after a hundred cards, and the same IP address can pay another payment', async ({
  api,
}) => {
  const address = '203.0.113.17';
  const { comeBack, look } = visit(api, (await makeHosted(api)).fwdUrl, address);
  const decline = (id: number) => comeBack(`payment_error=invalid_cvc&payment_error_id=${id}`);
  for (let card = 1; card <= 99; card += 1) await decline(card);
  expect(hasCardForm(await look())).toBe(true);
  await decline(100);
  const locked = await look();
  expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
  const next = visit(api, (await makeHosted(api)).fwdUrl, address);
  const paid = await next.give('payment_token=tok_pays_after_a_hundred_cards');
  expect(headingOf(paid)).toBe('Thank you: your payment was received');
});

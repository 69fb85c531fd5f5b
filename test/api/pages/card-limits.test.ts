import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentAttempts, paymentIntents } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  createSubscription,
  declineNext,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { linesOf } from '../../support/hosted-pages/page-text.ts';
import {
  lastFourOf,
  openUpdatePage,
  updateLinkOf,
} from '../../support/hosted-pages/update-page.ts';
import {
  expectSeeOther,
  hasCardForm,
  headingOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import { makeHosted } from '../../support/fixtures/payments.ts';

const DAY_MS = 24 * 3_600_000;
const LIVE = { mode: 'live' } as const;

/** The bank now waits for the confirmation of the intent's charge. */
async function sendToBank({ db }: ApiEnvironment, intentId: string): Promise<void> {
  await db
    .update(paymentAttempts)
    .set({ state: 'UNKNOWN', payerUrl: 'https://bank.example/', settledAt: null })
    .where(eq(paymentAttempts.intentId, intentId));
  await db.update(paymentIntents).set({ status: 'PENDING' }).where(eq(paymentIntents.id, intentId));
}

test('after ten declines of a card in a day, its next charge waits, and a new card is charged at once [D-30, D-33]', async ({
  api,
}) => {
  const testClockId = await createClock(api, Date.UTC(2027, 0, 31, 12));
  const subscription = await subscriptionIn(api, 'ACTIVE', { testClockId });
  const { subscriptionId } = subscription;
  const firstDueAt = Date.UTC(2027, 1, 28, 12);
  await declineNext(api, subscription, 'card_declined');
  for (let minutes = 1; minutes <= 10; minutes += 1) {
    const newNextPaymentDate = firstDueAt + minutes * 60_000;
    const body = { subscriptionId, newNextPaymentDate };
    expect((await api.call('POST', '/subscription/edit', { body })).status).toBe(200);
    await declineNext(api, subscription, 'card_declined');
  }
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'UNPAID',
    nextPaymentDate: firstDueAt + DAY_MS,
  });
  const { updatePaymentMethodLink } = await readSubscription(api, subscription);
  const { look, give } = visit(api, String(updatePaymentMethodLink));
  const asked = await look();
  expect(linesOf(asked.text)).toEqual([
    ['Card now', 'Visa ending in 4242'],
    ['Due since', '28 February 2027'],
    ['What happened', 'The card was declined'],
    ['Next try', '1 March 2027 at 12:00, with the present card'],
  ]);
  expect(asked.text).toContain('Save card and pay');
  await give('payment_token=tok_paid_at_once_1111');
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
});

test('the update page of a live merchant is locked after five cards; the link of the next day takes another card', async ({
  createApi,
}) => {
  const api = await createApi(LIVE);
  const { subscription, give, comeBack, path } = await openUpdatePage(api, 'ACTIVE');
  for (let card = 1; card <= 4; card += 1) await give(`payment_token=tok_stolen_card_lock_${card}`);
  const locked = await give('payment_token=tok_stolen_card_lock_5');
  expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
  expectSeeOther(await comeBack('payment_token=tok_good_sixth_1111'), `${path}?outcome`);
  expect(await lastFourOf(api, subscription)).toBe('4242');
  api.clock.aheadMs += DAY_MS;
  const fresh = visit(api, await updateLinkOf(api, subscription));
  await fresh.give('payment_token=tok_good_anew_1111');
  expect(await lastFourOf(api, subscription)).toBe('1111');
  api.clock.aheadMs -= DAY_MS;
});

test('the locked update page says that the fifth card is saved when its payment was declined [D-30]', async ({
  createApi,
}) => {
  const api = await createApi(LIVE);
  const { give } = await openUpdatePage(api, 'UNPAID');
  for (let card = 1; card <= 4; card += 1)
    await give(`payment_token=tok_unsaved_card_declined_${card}`);
  const locked = await give('payment_token=tok_card_declined_fifth_1111');
  expect([locked.status, headingOf(locked)]).toEqual([403, 'Your new card was saved']);
  expect(locked.text).toContain('but the payment of US$19.99 was declined.');
});

test('while the bank waits for the confirmation of the fifth card, the payment page of a live merchant leads to the bank and takes no sixth card [D-33]', async ({
  createApi,
}) => {
  const api = await createApi(LIVE);
  const { fwdUrl, xIntentId } = await makeHosted(api);
  const { look, give, comeBack, path } = visit(api, fwdUrl);
  await give('payment_token=tok-card_declined-the-first');
  for (let id = 1; id <= 4; id += 1) await give(`payment_error=invalid_cvc&payment_error_id=${id}`);
  expect(headingOf(await look())).toBe('This page takes no more cards');
  await sendToBank(api, xIntentId);
  const page = await look();
  expect([page.status, hasCardForm(page)]).toEqual([200, false]);
  expect(page.text).toContain('Your bank wants you to confirm the payment of US$');
  expect(page.text).toContain(`href="${path}/bank/${xIntentId}"`);
  expect(page.text).not.toContain('another card');
  const before = api.orders.calls.length;
  await comeBack('payment_token=tok_good_sixth');
  expect(api.orders.calls.length).toBe(before);
});

test('after the expiry of a payment page whose bank waits, the page leads only to the bank, and a card that comes back leaves the charge at the bank [D-33]', async ({
  api,
}) => {
  const { fwdUrl, xIntentId } = await makeHosted(api);
  const { look, give, comeBack, path } = visit(api, fwdUrl);
  await give('payment_token=tok-card_declined-the-first');
  await sendToBank(api, xIntentId);
  expect(hasCardForm(await look())).toBe(true);
  const charged = api.orders.charges.length;
  api.clock.aheadMs += DAY_MS;
  const page = await look();
  expect([page.status, hasCardForm(page)]).toEqual([200, false]);
  expect(page.text).toContain(`href="${path}/bank/${xIntentId}"`);
  expectSeeOther(await comeBack('payment_token=tok_good_second'), path);
  expect(api.orders.charges).toHaveLength(charged);
  const attempts = await api.db
    .select({ state: paymentAttempts.state, payerLeftAt: paymentAttempts.payerLeftAt })
    .from(paymentAttempts)
    .where(eq(paymentAttempts.intentId, xIntentId));
  expect(attempts).toEqual([{ state: 'UNKNOWN', payerLeftAt: null }]);
});

test('after the bank’s decline, the payment page says the reason of that card, not of an earlier one [D-40]', async ({
  api,
}) => {
  const { fwdUrl, xIntentId } = await makeHosted(api);
  const { look, give } = visit(api, fwdUrl);
  await give('payment_token=tok-expired_card-at-once');
  expect((await look()).text).toContain('The card has expired.');
  await api.db
    .update(paymentAttempts)
    .set({ errorCode: 'insufficient_funds', payerAskedAt: Date.now() })
    .where(eq(paymentAttempts.intentId, xIntentId));
  const page = await look();
  expect(page.text).toContain('There was not enough money in the account.');
  expect(page.text).not.toContain('expired');
});

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

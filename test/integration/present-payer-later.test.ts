import { describe, expect } from 'vitest';
import { onAskingBank as test } from '../support/asking-bank.ts';
import { ADA, answerBank, ASKING_CARD, enterCard, PAYING_CARD } from '../support/bank-visits.ts';
import { atStripe, passTwentyMinutes } from '../support/stripe-merchant.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import { eventsOf } from '../support/subscriptions.ts';

/** A payer with a card whose bank asks for a confirmation pays an owed cycle with a new card, or pays once. */

const PAID = 'Thank you: your payment was received';
const LEAVE = 'Continue to your bank';
const NOT_CONFIRMED = 'The payment was not confirmed, and nothing was charged. You can try again.';
const UNPAID = [
  'subscription.created',
  'subscription.trialing',
  'intent.created',
  'intent.failed',
  'subscription.unpaid',
  'subscription.retries_exhausted',
];
const CYCLE_PAID = ['intent.success', 'subscription.cycle_charged', 'subscription.active'];

describe('a new card for an owed cycle, whose bank asks for a confirmation,', () => {
  test('leads to the bank and pays the cycle once [D-30, D-33]', async ({ env, owing }) => {
    const it = await owing();
    const leave = await enterCard(await openPage(it.link), ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    const paid = await answerBank(leave, 'complete');
    expect([paid.title, paid.html]).toEqual([PAID, expect.stringContaining('is used from now on')]);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.attempts()).toEqual([
      'scheduled DECLINED authentication_required',
      'new_method SUCCEEDED',
    ]);
    expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
    expect(await it.events()).toEqual([...UNPAID, ...CYCLE_PAID]);
    await it.expectNothingFurther();
  });

  test('is kept when the payer refuses, who can then confirm its payment [D-30, D-33]', async ({
    env,
    owing,
  }) => {
    const it = await owing();
    const leave = await enterCard(await openPage(it.link), ASKING_CARD);
    const refused = await answerBank(leave, 'fail');
    expect(refused.html).toContain(NOT_CONFIRMED);
    const form = refused.forms.find(({ button }) => button === 'Confirm with your bank');
    const again = await submitForm(refused, form!, {});
    expect((await answerBank(again, 'complete')).title).toBe(PAID);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.attempts()).toEqual([
      'scheduled DECLINED authentication_required',
      'new_method DECLINED authentication_required',
      'authentication SUCCEEDED',
    ]);
    expect(await it.events()).toEqual([
      ...UNPAID,
      'intent.failed',
      'subscription.retries_exhausted',
      ...CYCLE_PAID,
    ]);
    await it.expectNothingFurther();
  });

  test('leads to the bank also when it replaces a card that waits there [D-33]', async ({
    env,
    owing,
  }) => {
    const it = await owing();
    const first = await enterCard(await openPage(it.link), ASKING_CARD);
    expect(first.title).toBe(LEAVE);
    const second = await enterCard(await openPage(it.link, first.browser), ASKING_CARD);
    expect(second.title).not.toBe(PAID);
    await expect
      .poll(it.atStripe)
      .toEqual(['requires_payment_method 0', 'canceled 0', 'requires_action 0']);
    const onward = async () =>
      (await openPage(it.link, first.browser)).links.find(({ text }) => text === LEAVE)?.url ?? '';
    await expect.poll(onward).toContain('/bank/');
    const leave = await openPage(await onward(), first.browser);
    expect((await answerBank(leave, 'complete')).title).toBe(PAID);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.events()).toEqual([...UNPAID, 'intent.failed', ...CYCLE_PAID]);
    await it.expectNothingFurther();
  });
});

describe('a payment that is made once, whose bank asks for a confirmation,', () => {
  const ORDER = {
    amount: 4_200,
    currency: 'EUR',
    customerDetails: ADA,
    callbackUrl: 'https://shop.example/paid',
  };
  const QUESTION = 'Your bank wants you to confirm the payment of €42.00';

  test.for(['complete', 'fail', 'never', 'other tab'] as const)(
    'is paid at most once when the payer answers: %s [D-40]',
    async (answer, { env, shop, world }) => {
      const made = await shop.merchant.post<{ xIntentId: string; fwdUrl: string }>(
        '/payments/create-intent',
        ORDER,
      );
      const { xIntentId: intentId, fwdUrl } = made;
      const ref = { merchantId: env.merchantId, intentId };
      const leave = await enterCard(await openPage(fwdUrl), ASKING_CARD);
      expect(leave.title).toBe(LEAVE);
      const waiting = await openPage(fwdUrl, leave.browser);
      expect(waiting.html).toContain(QUESTION);
      let shown = waiting;
      if (answer === 'complete') shown = await answerBank(leave, 'complete');
      if (answer === 'fail') shown = await answerBank(leave, 'fail');
      if (answer === 'never') {
        await passTwentyMinutes(env, intentId);
        await env.orders.recheck('payment', { ...ref, token: null });
        await expect.poll(() => atStripe(world, intentId)).toEqual(['canceled 0']);
        shown = await answerBank(leave, 'complete');
      }
      if (answer === 'other tab') {
        expect((await enterCard(waiting, PAYING_CARD)).title).toBe(PAID);
        shown = await answerBank(leave, 'complete');
      }
      const isPaid = answer === 'complete' || answer === 'other tab';
      expect(isPaid ? shown.title : shown.alert).toBe(isPaid ? PAID : NOT_CONFIRMED);
      const charges = {
        complete: ['succeeded 4200'],
        fail: ['requires_payment_method 0'],
        never: ['canceled 0'],
        'other tab': ['canceled 0', 'succeeded 4200'],
      }[answer];
      expect(await atStripe(world, intentId)).toEqual(charges);
      const made42 = ['intent.created', 'intent.checkout_opened'];
      const events = {
        complete: [...made42, 'intent.success'],
        fail: [...made42, 'intent.failed'],
        never: [...made42, 'intent.failed'],
        'other tab': [...made42, 'intent.failed', 'intent.success'],
      }[answer];
      const stream = { merchantId: env.merchantId, subscriptionId: intentId };
      const types = async () => (await eventsOf(env.db, stream)).map(({ eventType }) => eventType);
      expect(await types()).toEqual(events);
      await env.orders.recheck('payment', { ...ref, token: null });
      expect([await atStripe(world, intentId), await types()]).toEqual([charges, events]);
    },
  );

  test('leads to the bank and is paid once when a link began it [D-37]', async ({
    shop,
    world,
  }) => {
    const { shortUrl } = await shop.merchant.post<{ shortUrl: string }>(
      '/link/merchant/generate-link',
      { ...ORDER, expiryDate: Date.now() + 86_400_000 },
    );
    const begin = await openPage(shortUrl);
    const page = await submitForm(begin, begin.forms[0]!, {});
    const leave = await enterCard(page, ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    expect((await answerBank(leave, 'complete')).title).toBe(PAID);
    expect((await openPage(page.url)).title).toBe(PAID);
    const { data } = await world.stripe.paymentIntents.list({ limit: 1 });
    expect(data.map(({ status, amount_received: a }) => `${status} ${a}`)).toEqual([
      'succeeded 4200',
    ]);
  });
});

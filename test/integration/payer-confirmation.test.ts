import { expect, vi, describe } from 'vitest';
import { onAskingBank } from '../support/asking-bank.ts';
import { Browser, openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { submitForm as answerPage } from '../support/stripe.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { ADA, answerBank, ASKING_CARD, enterCard, PAYING_CARD } from '../support/bank-visits.ts';
import { atStripe, passTwentyMinutes } from '../support/stripe-merchant.ts';
import { eventsOf } from '../support/subscriptions.ts';
import type { Shop } from '../support/shop.ts';
import type { StripeWorld } from '../support/stripe.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * A payer whose bank asks for a confirmation: of an owed payment, over HTTP, with the Stripe double and its 3-D Secure
 * page; in a checkout; with a new card for an owed cycle; and of a payment that is made once.
 */

const test = onAskingBank.extend(
  'atBank',
  ({ env, shop, world }) =>
    () =>
      checkoutIn(env, shop, world),
);

const QUESTION = 'Your bank wants you to confirm the payment of US$19.99';
const PAID = 'Thank you: your payment was received';
const LEAVE = 'Continue to your bank';
const NOT_CONFIRMED = 'The payment was not confirmed, and nothing was charged. You can try again.';

/** The events up to the decline with which the bank asks for the payer's confirmation, and those of this decline. */
const UNPAID = [
  'subscription.created',
  'subscription.trialing',
  'intent.created',
  'intent.failed',
  'subscription.unpaid',
  'subscription.retries_exhausted',
];
const CYCLE_PAID = ['intent.success', 'subscription.cycle_charged', 'subscription.active'];

/** Presses the button "Confirm with your bank" and returns the address of the bank's page. */
async function pressConfirm(page: Page): Promise<string> {
  const form = page.forms.find(({ button }) => button === 'Confirm with your bank');
  if (!form) throw new Error(`no such button: ${page.html}`);
  const leave = await submitForm(page, form, {});
  expect([leave.title, leave.links.map(({ text }) => text)]).toEqual([LEAVE, [LEAVE]]);
  expect(leave.links[0]?.url).toBe(leave.refreshUrl);
  return leave.refreshUrl ?? '';
}

/**
 * Confirms or refuses on the bank's page, returns to the payer's page, and reloads this page until it shows
 * the outcome.
 */
async function answer(link: string, bankUrl: string, outcome: 'complete' | 'fail'): Promise<Page> {
  const { location } = await answerPage(bankUrl, { outcome });
  const back = new URL(location ?? '');
  expect(back.origin).toBe('https://pay.example');
  let page = await openPage(new URL(link).origin + back.pathname + back.search);
  // A look-up that was due anyway may have shown the outcome already.
  if (page.refreshUrl !== null) expect(page.title).toBe('Your payment is being processed');
  await vi.waitUntil(
    async () => {
      page = await openPage(page.refreshUrl ?? page.url);
      return page.refreshUrl === null;
    },
    { timeout: 60_000, interval: 50 },
  );
  return page;
}

test('a payer who confirms with the bank pays the owed cycle once [D-30, D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const page = await openPage(it.link);
  expect(page.html).toContain(QUESTION);
  const paid = await answer(it.link, await pressConfirm(page), 'complete');
  expect(paid.title).toBe(PAID);
  expect(paid.html).toContain('The payment of US$19.99 that was due went through.');
  expect(await env.state(it.ref)).toMatchObject({
    status: 'ACTIVE',
    cyclesCharged: 1,
    cooldownUntilAt: null,
    owed: null,
  });
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...UNPAID, ...CYCLE_PAID]);
  expect((await openPage(it.link)).html).not.toContain(QUESTION);
  await it.expectNothingFurther();
});

test('a payer who refuses the confirmation pays nothing, sees the refusal on the page, and can try again [D-30, D-33]', async ({
  owing,
}) => {
  const it = await owing();
  const refused = await answer(it.link, await pressConfirm(await openPage(it.link)), 'fail');
  expect([refused.url, refused.alert]).toEqual([`${it.link}?outcome`, NOT_CONFIRMED]);
  expect(await it.events()).toEqual([...UNPAID, 'intent.failed']);
  expect((await answer(it.link, await pressConfirm(refused), 'complete')).title).toBe(PAID);
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
    'authentication SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual([
    'requires_payment_method 0',
    'requires_payment_method 0',
    'succeeded 1999',
  ]);
  expect(await it.events()).toEqual([...UNPAID, 'intent.failed', ...CYCLE_PAID]);
  await it.expectNothingFurther();
});

test('a payer who never answers the bank pays nothing, and the payment is cancelled after 20 minutes [D-30, D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  expect((await openPage(it.link)).links.map(({ text }) => text)).toEqual([LEAVE]);
  await it.passTwentyMinutes();
  expect(await it.settled()).toMatchObject({
    status: 'UNPAID',
    owed: { nextRetryAt: null, lastDeclineCode: 'authentication_required' },
  });
  const late = await answerPage(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
  ]);
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'canceled 0']);
  expect((await env.events(it.ref)).at(-1)).toMatchObject({
    eventType: 'intent.failed',
    errorCode: 'authentication_required',
    nextRetryAt: null,
  });
  expect(await it.events()).toEqual([...UNPAID, 'intent.failed']);
  await it.expectNothingFurther();
});

test('two clicks in two tabs open one payment [D-32]', async ({ owing }) => {
  const it = await owing();
  const tabs = [await openPage(it.link), await openPage(it.link)];
  const [first, second] = await Promise.all(tabs.map(pressConfirm));
  expect(second).toBe(first);
  const again = await openPage(it.link);
  const [onward] = again.links;
  expect((await openPage(onward?.url ?? '')).refreshUrl).toBe(first);
  await answer(it.link, first ?? '', 'complete');
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...UNPAID, ...CYCLE_PAID]);
  await it.expectNothingFurther();
});

test('a cancelled subscription is not paid by a payer who confirms later [D-§4]', async ({
  owing,
  shop,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  const { subscriptionId } = it.ref;
  await shop.merchant.post('/subscription/merchant/cancel', { subscriptionId });
  expect(await it.settled()).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
  const late = await answerPage(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'canceled 0']);
  expect(await it.events()).toEqual([...UNPAID, 'subscription.ended', 'intent.failed']);
  await it.expectNothingFurther();
});

test('a new card replaces the confirmation and is charged at once [D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  await it.giveAnotherCard();
  await expect.poll(async () => (await env.state(it.ref)).status).toBe('ACTIVE');
  const late = await answerPage(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
    'automatic_retry SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual([
    'requires_payment_method 0',
    'canceled 0',
    'succeeded 1999',
  ]);
  expect(await it.events()).toEqual([...UNPAID, 'intent.failed', ...CYCLE_PAID]);
  await it.expectNothingFurther();
});

test('a payer reaches the bank’s page when the answer of Stripe is lost [D-40]', async ({
  owing,
  world,
}) => {
  const it = await owing();
  const page = await openPage(it.link);
  const path = '/v1/payment_intents/*/confirm';
  await world.faults('POST', 'faults', { method: 'POST', path, fault: 'lose_answer', count: 1 });
  const bankUrl = await pressConfirm(page);
  expect((await answer(it.link, bankUrl, 'complete')).title).toBe(PAID);
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...UNPAID, ...CYCLE_PAID]);
  await it.expectNothingFurther();
});

const CREATED = ['intent.created', 'subscription.created', 'intent.checkout_opened'];

/** Creates a subscription, opens its checkout and enters a card whose bank asks for a confirmation. */
async function checkoutIn(env: TestEnvironment, shop: Shop, world: StripeWorld) {
  const { subscriptionId, fwdUrl } = await shop.subscribe({ cycleCount: 3 });
  const ref = { merchantId: env.merchantId, subscriptionId };
  const intentId = intentIdOfCycle(subscriptionId, 1);
  const charges = () => atStripe(world, intentId);
  const events = async () => (await env.events(ref)).map(({ eventType }) => eventType);
  const leave = await enterCard(await openPage(fwdUrl), ASKING_CARD);
  expect(leave.title).toBe(LEAVE);
  return {
    ref,
    leave,
    fwdUrl,
    intentId,
    charges,
    events,
    expectNothingFurther: async () => {
      const before = [await events(), await charges(), await env.state(ref)];
      await env.workflows.recheck(ref);
      await shop.expectAllDelivered(subscriptionId);
      expect([await events(), await charges(), await env.state(ref)]).toEqual(before);
    },
  };
}

describe('a checkout whose bank asks the payer to confirm the charge', () => {
  test('leads to the bank and is paid once after the confirmation [D-§4, D-30]', async ({
    env,
    atBank,
  }) => {
    const { leave, ...it } = await atBank();
    expect(await it.charges()).toEqual(['requires_action 0']);
    const paid = await answerBank(leave, 'complete');
    expect(paid.title).toBe(PAID);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.charges()).toEqual(['succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, ...CYCLE_PAID]);
    expect((await openPage(it.fwdUrl)).title).toBe(PAID);
    await it.expectNothingFurther();
  });

  test('asks for a card again after the payer refused at the bank, and is then paid [D-§4]', async ({
    env,
    atBank,
  }) => {
    const { leave, ...it } = await atBank();
    const refused = await answerBank(leave, 'fail');
    expect(refused.alert).toBe(NOT_CONFIRMED);
    expect(await it.charges()).toEqual(['requires_payment_method 0']);
    expect(await env.state(it.ref)).toMatchObject({ status: 'CREATED', openAttempt: null });
    expect((await enterCard(refused, PAYING_CARD)).title).toBe(PAID);
    expect(await it.charges()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, 'intent.failed', ...CYCLE_PAID]);
    await it.expectNothingFurther();
  });

  test('is open again 20 minutes after the payer left the bank without an answer [D-§4]', async ({
    env,
    atBank,
  }) => {
    const { leave, ...it } = await atBank();
    const waiting = await openPage(it.fwdUrl);
    expect(waiting.html).toContain(QUESTION);
    expect((await openPage(waiting.links[0]?.url ?? '')).refreshUrl).toBe(leave.refreshUrl);
    await passTwentyMinutes(env, it.intentId);
    await env.workflows.recheck(it.ref);
    await expect.poll(async () => (await env.state(it.ref)).openAttempt).toBeNull();
    expect((await openPage(it.fwdUrl)).alert).toBe(NOT_CONFIRMED);
    expect(await it.charges()).toEqual(['canceled 0']);
    // The payer comes to the bank too late.
    const late = await answerBank(leave, 'complete');
    expect(late.alert).toBe(NOT_CONFIRMED);
    expect(await it.charges()).toEqual(['canceled 0']);
    expect(await it.events()).toEqual([...CREATED, 'intent.failed']);
    await it.expectNothingFurther();
  });

  test('is paid once when another tab gives another card while the bank waits [D-32]', async ({
    env,
    atBank,
  }) => {
    const { leave, ...it } = await atBank();
    const otherTab = await openPage(it.fwdUrl, leave.browser);
    expect((await enterCard(otherTab, PAYING_CARD)).title).toBe(PAID);
    // The payer confirms in the first tab, too late.
    const first = await answerBank(leave, 'complete');
    expect(first.title).toBe(PAID);
    expect(await it.charges()).toEqual(['canceled 0', 'succeeded 1999']);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.events()).toEqual([...CREATED, 'intent.failed', ...CYCLE_PAID]);
    await it.expectNothingFurther();
  });

  test('is paid once when both tabs confirm at the bank [D-32]', async ({ atBank }) => {
    const { leave, ...it } = await atBank();
    expect((await answerBank(leave, 'complete', new Browser())).title).toBe(PAID);
    expect((await answerBank(leave, 'complete')).title).toBe(PAID);
    expect(await it.charges()).toEqual(['succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, ...CYCLE_PAID]);
    await it.expectNothingFurther();
  });
});

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
  const ONCE = {
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
        ONCE,
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
});

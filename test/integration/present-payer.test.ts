import { describe, expect } from 'vitest';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { onAskingBank as test } from '../support/asking-bank.ts';
import {
  answerBank,
  ASKING_CARD,
  enterCard,
  openAndWait,
  ORDER,
  PAYING_CARD,
} from '../support/bank-visits.ts';
import { atStripe, passTwentyMinutes } from '../support/stripe-merchant.ts';
import { Browser, openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Shop } from '../support/shop.ts';
import type { StripeWorld } from '../support/stripe.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** A payer pays in the checkout of a subscription with a card whose bank asks for a confirmation. */

const PAID = 'Thank you: your payment was received';
const LEAVE = 'Continue to your bank';
const NOT_CONFIRMED = 'The payment was not confirmed, and nothing was charged. You can try again.';
const CREATED = ['intent.created', 'subscription.created', 'intent.checkout_opened'];
const FIRST_PAYMENT = ['intent.success', 'subscription.cycle_charged', 'subscription.active'];

/** Creates a subscription and opens its checkout. */
async function checkoutIn(env: TestEnvironment, shop: Shop, world: StripeWorld) {
  const { subscriptionId, fwdUrl } = await shop.merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', ORDER);
  const ref = { merchantId: env.merchantId, subscriptionId };
  const intentId = intentIdOfCycle(subscriptionId, 1);
  const charges = () => atStripe(world, intentId);
  const events = async () => (await env.events(ref)).map(({ eventType }) => eventType);
  return {
    ref,
    fwdUrl,
    intentId,
    charges,
    events,
    page: await openPage(fwdUrl),
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
    shop,
    world,
  }) => {
    const it = await checkoutIn(env, shop, world);
    const leave = await enterCard(it.page, ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    expect(await it.charges()).toEqual(['requires_action 0']);
    const paid = await answerBank(leave, 'complete');
    expect(paid.title).toBe(PAID);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.charges()).toEqual(['succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, ...FIRST_PAYMENT]);
    expect((await openPage(it.fwdUrl)).title).toBe(PAID);
    await it.expectNothingFurther();
  });

  test('asks for a card again after the payer refused at the bank, and is then paid [D-§4]', async ({
    env,
    shop,
    world,
  }) => {
    const it = await checkoutIn(env, shop, world);
    const leave = await enterCard(it.page, ASKING_CARD);
    const refused = await answerBank(leave, 'fail');
    expect(refused.alert).toBe(NOT_CONFIRMED);
    expect(await it.charges()).toEqual(['requires_payment_method 0']);
    expect(await env.state(it.ref)).toMatchObject({ status: 'CREATED', openAttempt: null });
    expect((await enterCard(refused, PAYING_CARD)).title).toBe(PAID);
    expect(await it.charges()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, 'intent.failed', ...FIRST_PAYMENT]);
    await it.expectNothingFurther();
  });

  test('is open again 20 minutes after the payer left the bank without an answer [D-§4]', async ({
    env,
    shop,
    world,
  }) => {
    const it = await checkoutIn(env, shop, world);
    const leave = await enterCard(it.page, ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    const waiting = await openPage(it.fwdUrl);
    expect(waiting.html).toContain('Your bank wants you to confirm the payment of US$19.99');
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
    shop,
    world,
  }) => {
    const it = await checkoutIn(env, shop, world);
    const leave = await enterCard(it.page, ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    const otherTab = await openPage(it.fwdUrl, it.page.browser);
    expect((await enterCard(otherTab, PAYING_CARD)).title).toBe(PAID);
    // The payer confirms in the first tab, too late.
    const first = await answerBank(leave, 'complete');
    expect(first.title).toBe(PAID);
    expect(await it.charges()).toEqual(['canceled 0', 'succeeded 1999']);
    expect(await env.state(it.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    expect(await it.events()).toEqual([...CREATED, 'intent.failed', ...FIRST_PAYMENT]);
    await it.expectNothingFurther();
  });

  test('is paid once when both tabs confirm at the bank [D-32]', async ({ env, shop, world }) => {
    const it = await checkoutIn(env, shop, world);
    const leave = await enterCard(it.page, ASKING_CARD);
    expect((await answerBank(leave, 'complete', new Browser())).title).toBe(PAID);
    expect((await answerBank(leave, 'complete')).title).toBe(PAID);
    expect(await it.charges()).toEqual(['succeeded 1999']);
    expect(await it.events()).toEqual([...CREATED, ...FIRST_PAYMENT]);
    await it.expectNothingFurther();
  });

  test('which a link began leads to the bank and is paid once [D-37]', async ({
    env,
    shop,
    world,
  }) => {
    const { shortUrl } = await shop.merchant.post<{ shortUrl: string }>(
      '/subscription/link/merchant/generate-link',
      { ...ORDER, expiryDate: Date.now() + 86_400_000 },
    );
    const begin = await openPage(shortUrl);
    const [form] = begin.forms;
    const checkout = await submitForm(begin, form!, {});
    const leave = await enterCard(checkout, ASKING_CARD);
    expect(leave.title).toBe(LEAVE);
    const paid = await answerBank(leave, 'complete');
    expect(paid.title).toBe(PAID);
    expect((await openAndWait(checkout.url, checkout.browser)).title).toBe(PAID);
    const { data } = await world.stripe.paymentIntents.list({ limit: 1 });
    expect(data.map(({ status, amount_received: a }) => `${status} ${a}`)).toEqual([
      'succeeded 1999',
    ]);
    expect(env.merchantId).toBe(data[0]?.metadata['merchantId']);
  });
});

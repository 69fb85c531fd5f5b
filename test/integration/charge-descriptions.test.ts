import { expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { cardOf, payOnPage } from '../../tools/scripts/client/payer.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import { onDevServer } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { expectNothingLeft, lastAttempt, onStripeScene } from '../support/stripe-scene.ts';

/** What the payer's bank shows of a charge, and which banks take no later charges. */

onStripeScene(
  'the first charge after a trial says so on the statement, a later one has the merchant’s words, and both a description [D-52]',
  async ({ scene }) => {
    const { env, shop, seller } = scene;
    await changeSettings(env.db, env.merchantId, { statementSuffix: 'TEA SHOP' });
    const testClockId = await env.createClock(Date.parse('2027-01-31T12:00:00Z'));
    const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
      '/subscription/create',
      {
        ...MONTHLY,
        testClockId,
        receiptId: 'order-7',
        trialPeriodCount: 10,
        trialPeriodInterval: 'DAY',
      },
    );
    const made = { merchantId: env.merchantId, subscriptionId, testClockId };
    await env.confirmStart(made);
    await seller.enterCard(made);
    await expect.poll(async () => (await env.state(made)).status).toBe('TRIALING');
    const atStripe = async () => {
      const { attempt } = await lastAttempt(scene, made);
      const { stripe } = seller.account;
      const intent = await stripe.paymentIntents.retrieve(String(attempt.gatewayChargeId));
      return [intent.description, intent.statement_descriptor_suffix];
    };
    await env.advance(testClockId, '2027-02-10T12:00:00Z');
    expect(await atStripe()).toEqual(['order-7, cycle 1', 'TRIAL OVER']);
    await env.advance(testClockId, '2027-03-10T12:00:00Z');
    expect(await atStripe()).toEqual(['order-7, cycle 2', 'TEA SHOP']);
    await expectNothingLeft(scene);
  },
);

const INDIAN = '4000003560000008';

onDevServer(
  'a card of an Indian bank pays once on a page, and is saved neither at a checkout nor for a subscription [D-42]',
  async ({ env, shop }) => {
    const ref = await env.create({ createdAt: Date.now() });
    const token = () => env.token(INDIAN);
    const refused = {
      kind: 'result',
      result: { kind: 'checkout', outcome: 'declined', errorCode: 'card_not_supported' },
    };
    expect(await env.execute(ref, checkoutCommand(await token()))).toEqual(refused);
    expect((await env.state(ref)).status).toBe('CREATED');
    await payCheckout(env, ref);
    const before = await env.state(ref);
    expect(await env.execute(ref, newMethodCommand(await token()))).toEqual(refused);
    expect(await env.state(ref)).toEqual(before);

    const { fwdUrl, xIntentId } = await shop.merchant.post<{ fwdUrl: string; xIntentId: string }>(
      '/payments/create-intent',
      {
        amount: 500,
        currency: 'USD',
        callbackUrl: MONTHLY.callbackUrl,
        customerDetails: MONTHLY.customerDetails,
      },
    );
    await payOnPage(fwdUrl, cardOf(INDIAN));
    await expect
      .poll(() => shop.merchant.get(`/payments/v2/get-intent/${xIntentId}`))
      .toMatchObject({ status: 'SUCCESS' });
  },
);

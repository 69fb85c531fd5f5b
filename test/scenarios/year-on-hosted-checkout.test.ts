import { describe, expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { openPage } from '../../tools/scripts/client/browser.ts';
import { cardOf, payOn, payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

interface Created {
  subscriptionId: string;
  fwdUrl: string;
}

/** Creates a subscription over HTTP, on its own test clock that starts at `startsAt`. */
async function subscribe(env: TestEnvironment, shop: Shop, startsAt: string, terms: object) {
  const now = Date.parse(startsAt);
  const clock = await shop.merchant.post<{ testClockId: string }>('/test-clock/create', { now });
  const { testClockId } = clock;
  const { subscriptionId, fwdUrl } = await shop.merchant.post<Created>('/subscription/create', {
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: 'https://shop.example/thanks',
    currency: 'USD',
    amount: 1_999,
    interval: 'MONTH',
    intervalCount: 1,
    testClockId,
    ...terms,
  });
  return {
    subscriptionId,
    fwdUrl,
    read: () =>
      shop.merchant.get<Record<string, unknown>>(
        `/subscription/get-subscription/${subscriptionId}`,
      ),
    advance: (to: string) => shop.advanceClock(testClockId, Date.parse(to)),
    news: (count: number) => shop.news(subscriptionId, count),
    declineNext: (code: string, count: number) =>
      env.control('POST', '/control/declines', { subscriptionId, code, count }),
    /** Outcome and amount of every charge at the gateway. */
    book: async () => {
      const ref = { merchantId: env.merchantId, subscriptionId };
      const booked = await env.book(ref);
      return booked.map(({ outcome, amountMinor }) => `${outcome} ${amountMinor}`);
    },
    /** Advances the clock, and expects no further charge and no further event. */
    expectNothingFurther: async (until: string) => {
      const ref = { merchantId: env.merchantId, subscriptionId };
      const charges = (await env.book(ref)).length;
      await shop.advanceClock(testClockId, Date.parse(until));
      expect(await env.book(ref)).toHaveLength(charges);
      await shop.expectAllDelivered(subscriptionId);
      expect(await shop.news(subscriptionId, 0)).toEqual([]);
    },
  };
}

describe('a subscription in a leap year', () => {
  test('is charged on each due day; the second retry pays the one declined month [D-05, D-30, D-51, IF-1, IF-6, D-50]', async ({
    env,
    shop,
  }) => {
    // Given a trial that ends on the 31st, and a card that was saved on the hosted page
    const subscription = await subscribe(env, shop, '2028-01-24T09:30:00Z', {
      cycleCount: 12,
      trialPeriodCount: 7,
      trialPeriodInterval: 'DAY',
    });
    const result = await payOnPage(subscription.fwdUrl);
    expect(result.title).toBe('Your free trial has started');
    expect(result.links.map(({ url }) => url)).toEqual([
      `https://shop.example/thanks?subscription_id=${subscription.subscriptionId}&status=TRIALING`,
    ]);
    expect(await subscription.news(3)).toEqual([
      '2028-01-24 09:30 subscription.created CREATED 1999 USD',
      '2028-01-24 09:30 subscription.checkout_opened CREATED 1999 USD',
      '2028-01-24 09:30 subscription.trialing TRIALING 1999 USD, next 2028-01-31 09:30',
    ]);

    // When the months pass, then each month is charged on its last day
    await subscription.advance('2028-01-31T09:29:59.999Z');
    expect(await subscription.news(0)).toEqual([]);
    expect(await subscription.book()).toEqual([]);

    await subscription.advance('2028-01-31T09:30:00Z');
    expect(await subscription.news(4)).toEqual([
      '2028-01-31 09:30 intent.created CREATED 1999 USD',
      '2028-01-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-01-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 1, 11 left, next 2028-02-29 09:30',
      '2028-01-31 09:30 subscription.active ACTIVE 1999 USD, next 2028-02-29 09:30',
    ]);

    await subscription.advance('2028-04-15T00:00:00Z');
    expect(await subscription.news(6)).toEqual([
      '2028-02-29 09:30 intent.created CREATED 1999 USD',
      '2028-02-29 09:30 intent.success SUCCESS 1999 USD',
      '2028-02-29 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 2, 10 left, next 2028-03-31 09:30',
      '2028-03-31 09:30 intent.created CREATED 1999 USD',
      '2028-03-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-03-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 3, 9 left, next 2028-04-30 09:30',
    ]);

    // When April is declined at its due date and at the first retry
    await subscription.declineNext('insufficient_funds', 2);
    await subscription.advance('2028-04-30T12:00:00Z');
    expect(await subscription.news(3)).toEqual([
      '2028-04-30 09:30 intent.created CREATED 1999 USD',
      '2028-04-30 09:30 intent.failed FAILED 1999 USD, insufficient_funds, cycle 4, retry 2028-04-30 13:30',
      '2028-04-30 09:30 subscription.unpaid UNPAID 1999 USD, insufficient_funds, cycle 4, 9 left, retry 2028-04-30 13:30, next 2028-04-30 13:30',
    ]);
    expect(await subscription.read()).toMatchObject({ status: 'UNPAID', remainingCycleCount: 9 });

    await subscription.advance('2028-04-30T21:29:59.999Z');
    expect(await subscription.news(1)).toEqual([
      '2028-04-30 13:30 intent.failed FAILED 1999 USD, insufficient_funds, cycle 4, retry 2028-04-30 21:30',
    ]);
    expect(await subscription.read()).toMatchObject({
      status: 'UNPAID',
      nextPaymentDate: Date.parse('2028-04-30T21:30:00Z'),
    });

    // Then the second retry, eight hours after the first, pays April, and May keeps its date
    await subscription.advance('2028-04-30T21:30:00Z');
    expect(await subscription.news(3)).toEqual([
      '2028-04-30 21:30 intent.success SUCCESS 1999 USD',
      '2028-04-30 21:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 4, 8 left, next 2028-05-31 09:30',
      '2028-04-30 21:30 subscription.active ACTIVE 1999 USD, next 2028-05-31 09:30',
    ]);

    await subscription.advance('2028-12-31T09:30:00Z');
    expect(await subscription.news(25)).toEqual([
      '2028-05-31 09:30 intent.created CREATED 1999 USD',
      '2028-05-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-05-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 5, 7 left, next 2028-06-30 09:30',
      '2028-06-30 09:30 intent.created CREATED 1999 USD',
      '2028-06-30 09:30 intent.success SUCCESS 1999 USD',
      '2028-06-30 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 6, 6 left, next 2028-07-31 09:30',
      '2028-07-31 09:30 intent.created CREATED 1999 USD',
      '2028-07-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-07-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 7, 5 left, next 2028-08-31 09:30',
      '2028-08-31 09:30 intent.created CREATED 1999 USD',
      '2028-08-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-08-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 8, 4 left, next 2028-09-30 09:30',
      '2028-09-30 09:30 intent.created CREATED 1999 USD',
      '2028-09-30 09:30 intent.success SUCCESS 1999 USD',
      '2028-09-30 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 9, 3 left, next 2028-10-31 09:30',
      '2028-10-31 09:30 intent.created CREATED 1999 USD',
      '2028-10-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-10-31 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 10, 2 left, next 2028-11-30 09:30',
      '2028-11-30 09:30 intent.created CREATED 1999 USD',
      '2028-11-30 09:30 intent.success SUCCESS 1999 USD',
      '2028-11-30 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle 11, 1 left, next 2028-12-31 09:30',
      '2028-12-31 09:30 intent.created CREATED 1999 USD',
      '2028-12-31 09:30 intent.success SUCCESS 1999 USD',
      '2028-12-31 09:30 subscription.cycle_charged ENDED 1999 USD, cycle 12, 0 left',
      '2028-12-31 09:30 subscription.ended ENDED 1999 USD',
    ]);
    expect(await subscription.read()).toMatchObject({
      status: 'ENDED',
      endReason: 'completed',
      remainingCycleCount: 0,
      nextPaymentDate: null,
      currentPeriodEnd: Date.parse('2029-01-31T09:30:00Z'),
    });
    expect(await subscription.book()).toEqual([
      'succeeded 1999',
      'succeeded 1999',
      'succeeded 1999',
      'declined 1999',
      'declined 1999',
      ...Array.from({ length: 9 }, () => 'succeeded 1999'),
    ]);
    await subscription.expectNothingFurther('2032-01-01T00:00:00Z');
  });
});

describe('an upfront amount', () => {
  test('replaces the first month’s amount only [D-§4, D-34, D-51, IF-1, IF-2.3, IF-6]', async ({
    env,
    shop,
  }) => {
    // Given a payer whose first card is declined and whose second card is not
    const subscription = await subscribe(env, shop, '2027-10-31T18:00:00Z', {
      amount: 2_500,
      currency: 'EUR',
      upfrontAmount: 9_900,
      cycleCount: 6,
    });
    const page = await openPage(subscription.fwdUrl);
    expect(page.forms.map(({ button }) => button)).toEqual(['Pay €99.00']);
    const declined = await payOn(page, cardOf('4000 0000 0000 0002'));
    expect(declined.alert).toBe(
      'Your payment was declined and nothing was charged. Check the details and try again, or use another card.',
    );
    expect((await subscription.read())['status']).toBe('CREATED');

    const paid = await payOn(declined);
    expect(paid.title).toBe('Thank you: your payment was received');
    expect(paid.links.map(({ url }) => url)).toEqual([
      `https://shop.example/thanks?subscription_id=${subscription.subscriptionId}&status=ACTIVE`,
    ]);
    expect(await subscription.news(7)).toEqual([
      '2027-10-31 18:00 intent.created CREATED 9900 EUR',
      '2027-10-31 18:00 subscription.created CREATED 2500 EUR',
      '2027-10-31 18:00 intent.checkout_opened CREATED 9900 EUR',
      '2027-10-31 18:00 intent.failed FAILED 9900 EUR, card_declined',
      '2027-10-31 18:00 intent.success SUCCESS 9900 EUR',
      '2027-10-31 18:00 subscription.cycle_charged ACTIVE 9900 EUR, cycle 1, 5 left, next 2027-11-30 18:00',
      '2027-10-31 18:00 subscription.active ACTIVE 2500 EUR, next 2027-11-30 18:00',
    ]);

    // When the second month comes, then the regular amount is charged
    await subscription.advance('2027-12-10T00:00:00Z');
    expect(await subscription.news(3)).toEqual([
      '2027-11-30 18:00 intent.created CREATED 2500 EUR',
      '2027-11-30 18:00 intent.success SUCCESS 2500 EUR',
      '2027-11-30 18:00 subscription.cycle_charged ACTIVE 2500 EUR, cycle 2, 4 left, next 2027-12-31 18:00',
    ]);

    // When the merchant cancels in the middle of a period, then the subscription is ENDED and its paid period
    // stays
    const { subscriptionId } = subscription;
    const cancel = () => shop.merchant.post('/subscription/merchant/cancel', { subscriptionId });
    expect(await cancel()).toEqual({});
    expect(await subscription.news(1)).toEqual([
      '2027-12-10 00:00 subscription.ended ENDED 2500 EUR',
    ]);
    expect(await subscription.read()).toMatchObject({
      status: 'ENDED',
      endReason: 'cancelled',
      remainingCycleCount: 4,
      nextPaymentDate: null,
      currentPeriodEnd: Date.parse('2027-12-31T18:00:00Z'),
    });
    await expect(cancel()).rejects.toMatchObject({
      status: 400,
      errorCode: 'operation_not_allowed',
    });
    expect(await subscription.book()).toEqual([
      'declined 9900',
      'succeeded 9900',
      'succeeded 2500',
    ]);
    await subscription.expectNothingFurther('2029-01-01T00:00:00Z');
  });
});

import { describe, expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';

/** Creates a subscription over HTTP, on its own test clock that starts at `startsAt`. */
async function subscribe(shop: Shop, startsAt: string, terms: object) {
  const { testClockId, advance } = await shop.createClock(Date.parse(startsAt));
  const subscription = await shop.subscribe({ testClockId, ...terms });
  const news = (count: number) => shop.news(subscription.subscriptionId, count);
  return {
    ...subscription,
    advance: (to: string) => advance(Date.parse(to)),
    news,
    /** Advances the clock, and expects no further charge and no further event. */
    expectNothingFurther: async (until: string) => {
      const charges = await subscription.book();
      await advance(Date.parse(until));
      expect(await subscription.book()).toEqual(charges);
      await shop.expectAllDelivered(subscription.subscriptionId);
      expect(await news(0)).toEqual([]);
    },
  };
}

/** The events of a paid month of 2028: its date, its cycle, the cycles left, and the next date. */
const paidMonth = (date: string, cycle: number, left: number, next: string) => [
  `2028-${date} 09:30 intent.created CREATED 1999 USD`,
  `2028-${date} 09:30 intent.success SUCCESS 1999 USD`,
  `2028-${date} 09:30 subscription.cycle_charged ACTIVE 1999 USD, cycle ${cycle}, ${left} left, next 2028-${next} 09:30`,
];

describe('a subscription in a leap year', () => {
  test('is charged on each due day; the second retry pays the one declined month [D-05, D-30, D-51, IF-1, IF-6, D-50]', async ({
    shop,
  }) => {
    // Given a trial that ends on the 31st, and a card that was saved on the hosted page
    const subscription = await subscribe(shop, '2028-01-24T09:30:00Z', {
      cycleCount: 12,
      trialPeriodCount: 7,
      trialPeriodInterval: 'DAY',
    });
    const result = await payOnPage(subscription.fwdUrl);
    expect(result.title).toBe('Your free trial has started');
    expect(result.links.map(({ url }) => url)).toEqual([
      `https://shop.example/thanks?subscription_id=${subscription.subscriptionId}&status=TRIALING`,
      expect.stringMatching(/\/cancel\?reference=sub_\w+$/),
      expect.stringMatching(/\/withdraw\?reference=sub_\w+$/),
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
      ...paidMonth('02-29', 2, 10, '03-31'),
      ...paidMonth('03-31', 3, 9, '04-30'),
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
      ...paidMonth('05-31', 5, 7, '06-30'),
      ...paidMonth('06-30', 6, 6, '07-31'),
      ...paidMonth('07-31', 7, 5, '08-31'),
      ...paidMonth('08-31', 8, 4, '09-30'),
      ...paidMonth('09-30', 9, 3, '10-31'),
      ...paidMonth('10-31', 10, 2, '11-30'),
      ...paidMonth('11-30', 11, 1, '12-31'),
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

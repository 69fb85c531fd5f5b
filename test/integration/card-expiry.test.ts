import { describe, expect } from 'vitest';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { checkoutCommand, newMethodCommand } from '../support/card-tokens.ts';
import { onDevServer as test } from '../support/environment.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import {
  active,
  eventsOf,
  expectNothingLeft,
  lastAttempt,
  onStripeScene,
} from '../support/stripe-scene.ts';

/** The sandbox's cards of these tests expire at the end of 12/34. */

const at = (date: string): number => Date.parse(date);

interface Charge {
  at: number;
  createdAt: string;
  cycleNumber?: number;
  trigger: string;
  errorCode?: string;
}

describe('on a test clock, a card', () => {
  test('is declined with expired_card from the end of its month on, as simulated, and not retried until the payer gives another [D-60, D-58, D-61, D-42]', async ({
    env,
    shop,
  }) => {
    const { ref, clock } = await paidOnClock(env, '2034-11-30T12:00:00Z', { cycleCount: 3 });
    const { subscriptionId } = ref;
    const simulated = await shop.merchant.post<{ data: Charge[]; status: string }>(
      '/subscription/simulate',
      { subscriptionId },
    );
    await env.advance(clock, '2034-12-31T23:59:59Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    await env.advance(clock, '2035-02-05T00:00:00Z');
    const read = async () => {
      const path = `/subscription/charges/${subscriptionId}`;
      const { data } = await shop.merchant.get<{ data: Charge[] }>(path);
      return data
        .slice(1)
        .map(({ createdAt, cycleNumber, trigger, errorCode }) => [
          createdAt,
          cycleNumber,
          trigger,
          errorCode,
        ]);
    };
    const renewals = [
      ['2034-12-30T12:00:00.000Z', 2, 'scheduled', undefined],
      ['2035-01-30T12:00:00.000Z', 3, 'scheduled', 'expired_card'],
    ];
    expect(await read()).toEqual(renewals);
    expect(
      simulated.data.flatMap((step) =>
        step.cycleNumber === undefined
          ? []
          : [[new Date(step.at).toISOString(), step.cycleNumber, step.trigger, step.errorCode]],
      ),
    ).toEqual(renewals);
    expect(simulated.status).toBe('UNPAID');

    expect(
      await shop.merchant.post('/subscription/manual-retry', { subscriptionId }),
    ).toMatchObject({ success: false, errorCode: 'expired_card' });
    expect(
      await shop.merchant.post('/subscription/merchant/one-time-charge', {
        subscriptionId,
        amount: 500,
        currency: 'USD',
      }),
    ).toMatchObject({ status: 'FAILED', errorCode: 'expired_card' });
    expect(
      await env.execute(ref, newMethodCommand(await env.token('4242424242424242', '01/36'))),
    ).toMatchObject({ kind: 'result', result: { outcome: 'paid' } });
    expect((await env.state(ref)).status).toBe('ENDED');
  });

  test.for([
    ['with a charge', {}, 'paid'],
    ['with a trial', { trialPeriodInterval: 'DAY', trialPeriodCount: 10 }, 'saved'],
  ] as const)(
    'that has expired is declined at a checkout %s [D-60, D-61]',
    async ([, trial, outcome], { env, shop }) => {
      const testClockId = await env.createClock(at('2035-01-01T00:00:00Z'));
      const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
        '/subscription/create',
        { ...MONTHLY, ...trial, testClockId },
      );
      const ref = { merchantId: env.merchantId, subscriptionId };
      await env.confirmStart(ref);
      const pay = async (expiry?: string) =>
        env.execute(ref, checkoutCommand(await env.token('4242424242424242', expiry)));
      expect(await pay()).toMatchObject({
        kind: 'result',
        result: { outcome: 'declined', errorCode: 'expired_card' },
      });
      expect((await env.state(ref)).status).toBe('CREATED');
      expect(await pay('01/35')).toMatchObject({ result: { outcome } });
    },
  );
});

onStripeScene(
  'a card whose new details last until the charge has no notice that it expires, and another one keeps it [D-63, D-50]',
  async ({ scene }) => {
    const { env, seller, shop, world } = scene;
    const made = await active(scene);
    const { subscriptionId } = made;
    const newNextPaymentDate = Date.parse('2038-01-31T12:00:00Z');
    const every = { interval: 'YEAR', intervalCount: 1 };
    await shop.merchant.post('/subscription/edit', {
      subscriptionId,
      newNextPaymentDate,
      ...every,
    });
    const expiring = {
      notice: 'payment_method.expiring',
      dueAt: Date.parse('2038-01-01T12:00:00Z'),
    };
    const planned = async () => (await env.state(made)).notices?.pending;
    expect(await planned()).toContainEqual(expiring);
    const { method } = await lastAttempt(scene, made);
    const [, paymentMethodId] = method.gatewayMethodId.split('/');
    const renew = async (expiryYear: number) => {
      const card = { lastFour: '1881', expiryMonth: 7, expiryYear };
      await world.control('POST', 'cards', { paymentMethodId, ...card });
      await seller.settled();
    };
    await renew(2037);
    expect(await planned()).toContainEqual(expiring);
    await renew(2040);
    expect(await planned()).not.toContainEqual(expiring);
    expect((await env.timeline(made)).at(-1)).toMatchObject({ what: 'card details updated' });
    await env.advance(made.testClockId, '2038-01-30T12:00:00Z');
    expect((await eventsOf(scene, subscriptionId)).slice(5)).toEqual([
      'subscription.edited',
      'subscription.renewal_upcoming',
      'subscription.renewal_upcoming',
    ]);
    await expectNothingLeft(scene);
  },
);

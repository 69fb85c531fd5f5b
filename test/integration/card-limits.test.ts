import { and, asc, eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { hasValues } from '../../db/repositories/records.ts';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { ApiRefusal } from '../../tools/scripts/client/merchant-client.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { onDevServer } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** The limits of card networks, over all subscriptions and charges of one saved card. */

const START = Date.parse('2027-01-31T12:00:00Z');
const DUE = Date.parse('2027-02-28T12:00:00Z');
const HOUR = 3_600_000;
const END = Date.parse('2027-03-30T00:00:00Z');

/** Subscriptions on one test clock, whose payer has given the same saved card. The first charge is paid. */
async function onOneCard(env: TestEnvironment, shop: Shop, count: number, limits: object) {
  await changeSettings(env.db, env.merchantId, {
    cardLimits: { perDay: 10, per30Days: 15, ...limits },
  });
  const testClockId = await env.createClock(START);
  const create = async (terms: object): Promise<SubscriptionRef> => {
    const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
      '/subscription/create',
      { ...MONTHLY, cycleCount: 2, testClockId, ...terms },
    );
    const ref = { merchantId: env.merchantId, subscriptionId };
    await env.confirmStart(ref);
    return ref;
  };
  const first = await create({});
  await payCheckout(env, first);
  const { paymentMethodId, customerId } = await env.state(first);
  const refs = [first];
  while (refs.length < count) {
    const ref = await create({ customerId });
    expect(await env.execute(ref, checkoutCommand(`saved:${paymentMethodId}`))).toMatchObject({
      kind: 'result',
      result: { outcome: 'paid' },
    });
    refs.push(ref);
  }
  const methods = await Promise.all(refs.map((ref) => env.state(ref)));
  expect(new Set(methods.map((state) => state.paymentMethodId)).size).toBe(1);
  const decline = (ref: SubscriptionRef, times: number) =>
    shop.merchant.post('/test-helpers/decline-next', {
      subscriptionId: ref.subscriptionId,
      code: 'card_declined',
      count: times,
    });
  return { testClockId, refs, customerId, pmId: String(paymentMethodId), decline };
}

/** Instant and state of each attempt on the card after the first charges. */
async function attemptsOn({ db, merchantId }: TestEnvironment, pmId: string): Promise<string[]> {
  const rows = await db
    .select({ createdAt: paymentAttempts.createdAt, state: paymentAttempts.state })
    .from(paymentAttempts)
    .where(
      and(eq(paymentAttempts.merchantId, merchantId), eq(paymentAttempts.paymentMethodId, pmId)),
    )
    .orderBy(asc(paymentAttempts.createdAt), asc(paymentAttempts.state));
  return rows
    .filter(({ createdAt }) => createdAt > START)
    .map(({ createdAt, state }) => `${new Date(createdAt).toISOString()} ${state}`);
}

const refusalOf = async (request: Promise<unknown>): Promise<object> => {
  const error = await request.catch((thrown: unknown) => thrown);
  if (!(error instanceof ApiRefusal)) throw error;
  const { status, errorCode, message } = error;
  return { status, errorCode, message };
};

describe('the limits of a card', () => {
  onDevServer(
    'hold over all its subscriptions and charges: a renewal waits, other charges are 400 with the instant [D-30]',
    async ({ env, shop }) => {
      const card = await onOneCard(env, shop, 2, { perDay: 3 });
      const { testClockId, pmId, customerId } = card;
      const [first, second] = card.refs as [SubscriptionRef, SubscriptionRef];
      // Two attempts at the due time, and the third 4 h later.
      await card.decline(first, 9);
      await card.decline(second, 9);
      await env.advance(testClockId, DUE + 5 * HOUR);
      expect(await attemptsOn(env, pmId)).toEqual([
        '2027-02-28T12:00:00.000Z DECLINED',
        '2027-02-28T12:00:00.000Z DECLINED',
        '2027-02-28T16:00:00.000Z DECLINED',
      ]);
      const instant = '2027-03-01T12:00:00.000Z';
      const states = await Promise.all(card.refs.map((ref) => env.state(ref)));
      const waiting = states.find(({ latest }) => latest.kind === 'limited')!;
      expect(waiting).toMatchObject({
        status: 'UNPAID',
        owed: { nextRetryAt: Date.parse(instant), retriesUsed: 1 },
        latest: { attempts: 3, hours: 24, actor: 'schedule' },
      });

      const refused = {
        status: 400,
        errorCode: 'bad_request',
        message: expect.stringContaining(
          `No charge is possible before ${instant}: its card has 3 unpaid attempts in 24 h, the most allowed.`,
        ) as string,
      };
      const { subscriptionId } = first;
      const { post } = shop.impatientMerchant;
      const charge = { amount: 500, currency: 'USD' };
      expect(await refusalOf(post('/subscription/manual-retry', { subscriptionId }))).toEqual(
        refused,
      );
      expect(
        await refusalOf(
          post('/subscription/merchant/one-time-charge', { subscriptionId, ...charge }),
        ),
      ).toEqual(refused);
      // The attempts of a card without a test clock are counted in real time.
      expect(
        await post('/payments/charge-tokenised-pm', { pmId, customerId, ...charge }),
      ).toMatchObject({ status: 'SUCCESS' });
      expect(await env.state(first)).toEqual(states[0]);
      // The refused charge is withdrawn, because a sweep would otherwise make it later.
      const oneTime = { merchantId: env.merchantId, kind: 'one_time' } as const;
      const refusedIntents = () =>
        env.db
          .select({ status: paymentIntents.status })
          .from(paymentIntents)
          .where(hasValues(paymentIntents, oneTime));
      expect(await refusedIntents()).toEqual([{ status: 'CANCELLED' }]);

      // No four declines are within 24 h.
      await env.advance(testClockId, END);
      const declined = (await attemptsOn(env, pmId)).filter((line) => line.endsWith('DECLINED'));
      const instants = declined.map((line) => Date.parse(line.slice(0, 24)));
      for (const [index, at] of instants.entries()) {
        expect(at - (instants[index - 3] ?? 0)).toBeGreaterThanOrEqual(24 * HOUR);
      }
      expect(declined).toHaveLength(10);
      expect(await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 })).toEqual(
        NOTHING_FOUND,
      );
      expect(await refusedIntents()).toEqual([{ status: 'CANCELLED' }]);
    },
  );

  onDevServer(
    'hold when twelve subscriptions fall due at one instant [D-30]',
    async ({ env, shop }) => {
      const { testClockId, refs, pmId, decline } = await onOneCard(env, shop, 12, { perDay: 5 });
      for (const ref of refs) await decline(ref, 1);
      await env.advance(testClockId, DUE + HOUR);
      expect(await attemptsOn(env, pmId)).toEqual(
        Array.from({ length: 5 }, () => '2027-02-28T12:00:00.000Z DECLINED'),
      );
      const states = await Promise.all(refs.map((ref) => env.state(ref)));
      const waiting = states.filter(({ latest }) => latest.kind === 'limited');
      expect(waiting.map(({ status }) => status)).toEqual(
        Array.from({ length: 7 }, () => 'ACTIVE'),
      );
      const upcoming = await shop.merchant.get<{ data: object[] }>(
        `/subscription/upcoming/${waiting[0]!.subscriptionId}`,
      );
      expect(upcoming.data[0]).toMatchObject({ date: DUE + 24 * HOUR, cycleNumber: 2 });
      await env.advance(testClockId, END);
      const after = await attemptsOn(env, pmId);
      expect(after.filter((line) => line.endsWith('SUCCEEDED'))).toHaveLength(12);
      const ended = await Promise.all(refs.map((ref) => env.state(ref)));
      expect(ended.map(({ status }) => status)).toEqual(refs.map(() => 'ENDED'));
      const [charge] = (
        await shop.merchant.get<{ data: { cycleNumber: number; cause: { text: string } }[] }>(
          `/subscription/charges/${waiting[0]!.subscriptionId}`,
        )
      ).data.filter(({ cycleNumber }) => cycleNumber === 2);
      expect(charge?.cause.text).toBe(
        'it had to wait until 2027-03-01T12:00:00.000Z: its card has 5 unpaid attempts in 24 h, the most allowed',
      );
    },
  );
});

import { describe, expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import type { Shop } from '../support/shop.ts';

/** The commands to one subscription, by instant. The test clock stops at each of these instants. */
type Commands = Record<string, (life: Life) => Promise<unknown>>;

interface Life {
  readonly subscriptionId: string;
  post(path: string, fields?: object): Promise<object>;
  declineNext(code: string, count: number): Promise<unknown>;
  payWithAnotherCard(): Promise<void>;
}

interface StateOfCustomer {
  subscriptions: { subscriptionId: string; currentPeriodEnd: number | null }[];
}

const START = '2027-01-31T12:00Z';
const at = (instant: string): number => Date.parse(instant);

const EDIT = '/subscription/edit';
const PAUSE = '/subscription/merchant/pause';
const CANCEL = '/subscription/merchant/cancel';

/**
 * A prolonged trial, two declined cycles, two pauses, weekly payments for a month, a cancellation that a resume
 * undoes, and an immediate cancellation.
 */
const EVENTFUL: Commands = {
  // The trial, which ends on 14 February, is prolonged by a week.
  '2027-02-07T12:00Z': ({ post }) => post(EDIT, { newNextPaymentDate: at('2027-02-21T12:00Z') }),
  // The retry of 22 March, 0:00, pays.
  '2027-03-20T12:00Z': ({ declineNext }) => declineNext('insufficient_funds', 2),
  '2027-04-10T12:00Z': ({ post }) => post(PAUSE, { resumeAt: at('2027-05-05T12:00Z') }),
  // After this code there is no automatic retry. The merchant's retry of 12 June pays.
  '2027-06-04T12:00Z': ({ declineNext }) => declineNext('stolen_card', 1),
  '2027-06-12T12:00Z': ({ post }) => post('/subscription/manual-retry'),
  // The payment of 5 July covers the time until 5 August. From 12 July on, each week is charged.
  '2027-07-10T12:00Z': ({ post }) =>
    post(EDIT, {
      interval: 'WEEK',
      intervalCount: 1,
      newNextPaymentDate: at('2027-07-12T12:00Z'),
    }),
  '2027-08-04T12:00Z': ({ post }) =>
    post(EDIT, {
      interval: 'MONTH',
      intervalCount: 1,
      newAmount: 2_999,
      newNextPaymentDate: at('2027-08-09T12:00Z'),
    }),
  '2027-08-20T12:00Z': ({ post }) => post(CANCEL, { atPeriodEnd: true }),
  '2027-08-25T12:00Z': ({ post }) => post('/subscription/merchant/resume'),
  '2027-09-20T12:00Z': ({ post }) => post(PAUSE),
  '2027-11-01T12:00Z': ({ post }) =>
    post('/subscription/merchant/unpause', { newNextPaymentDate: at('2027-11-15T12:00Z') }),
  '2027-12-01T12:00Z': ({ post }) => post(CANCEL),
};

/** The retry plan is used up in March. A new card pays in April. */
const DECLINED: Commands = {
  '2027-02-27T12:00Z': ({ declineNext }) => declineNext('card_declined', 5),
  '2027-04-10T12:00Z': ({ payWithAnotherCard }) => payWithAnotherCard(),
  '2027-04-15T12:00Z': ({ post }) => post(CANCEL, { atPeriodEnd: true }),
};

const CANCELLED_IN_TRIAL: Commands = { '2027-02-10T12:00Z': ({ post }) => post(CANCEL) };

/** Creates a subscription with these terms, which name its test clock, and pays its checkout. */
async function begin(shop: Shop, terms: object): Promise<Life> {
  const subscription = await shop.subscribe({ cycleCount: 60, ...terms });
  const { subscriptionId } = subscription;
  await payOnPage(subscription.fwdUrl);
  return {
    ...subscription,
    post: (path, fields = {}) => shop.merchant.post(path, { subscriptionId, ...fields }),
    async payWithAnotherCard() {
      await payOnPage(String((await subscription.read())['updatePaymentMethodLink']));
    },
  };
}

/** The date that a merchant stores: `currentPeriodEnd` of the subscription's newest event with this field. */
function storedDate(shop: Shop, subscriptionId: string): number | null {
  const newest = shop.receiver.received
    .map(({ event }) => event)
    .filter((event) => event['subscriptionId'] === subscriptionId && 'currentPeriodEnd' in event)
    .toSorted((a, b) => a.sequence - b.sequence)
    .at(-1);
  return (newest?.['currentPeriodEnd'] as number | undefined) ?? null;
}

describe('access until currentPeriodEnd', () => {
  test('starts and ends with the paid time throughout a year, by the dates that the merchant stores and by those of the customer’s state [D-34, D-§7]', async ({
    env,
    shop,
  }) => {
    const { merchant } = shop;
    const { testClockId } = await shop.createClock(at(START));
    const { customerId } = await merchant.post<{ customerId: string }>('/customer/create', {
      customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    });
    const onClock = { testClockId, customerId };
    const trial = { trialPeriodInterval: 'DAY' };
    const lives = {
      eventful: await begin(shop, { ...onClock, ...trial, trialPeriodCount: 14 }),
      declined: await begin(shop, onClock),
      cancelledInTrial: await begin(shop, { ...onClock, ...trial, trialPeriodCount: 30 }),
    };
    const commands: Record<keyof typeof lives, Commands> = {
      eventful: EVENTFUL,
      declined: DECLINED,
      cancelledInTrial: CANCELLED_IN_TRIAL,
    };
    // The paid time begins at the first of these instants, ends at the second, begins again at the third, and
    // so on.
    const paidFromAndUntil: Record<keyof typeof lives, string[]> = {
      eventful: [
        START,
        '2027-03-21T12:00Z',
        '2027-03-22T00:00Z',
        '2027-04-21T12:00Z',
        '2027-05-05T12:00Z',
        '2027-06-05T12:00Z',
        '2027-06-12T12:00Z',
        '2027-10-09T12:00Z',
        '2027-11-15T12:00Z',
        '2027-12-15T12:00Z',
      ],
      declined: [START, '2027-02-28T12:00Z', '2027-04-10T12:00Z', '2027-04-30T12:00Z'],
      cancelledInTrial: [START, '2027-03-02T12:00Z'],
    };
    const names = Object.keys(lives) as (keyof typeof lives)[];
    const hasPaid = (name: keyof typeof lives, now: number): boolean =>
      paidFromAndUntil[name].filter((edge) => at(edge) <= now).length % 2 === 1;

    /**
     * The end of each trial that the merchant has edited. An edit in TRIALING sends no event, so the merchant
     * stores this date itself.
     */
    const editedTrials = new Map<string, { at: number; until: number }>();
    const stops = new Set(
      names.flatMap((name) => [
        ...Object.keys(commands[name]).map(at),
        ...paidFromAndUntil[name].flatMap((edge) => [at(edge) - 1, at(edge)]),
        at('2028-01-31T12:00Z'),
      ]),
    );
    for (const now of [...stops].filter((stop) => stop > at(START)).toSorted((a, b) => a - b)) {
      await shop.advanceClock(testClockId, now);
      for (const name of names) {
        const command = Object.entries(commands[name]).find(([instant]) => at(instant) === now);
        await command?.[1](lives[name]);
        if (name === 'eventful' && now === at('2027-02-07T12:00Z')) {
          editedTrials.set(lives[name].subscriptionId, { at: now, until: at('2027-02-21T12:00Z') });
        }
        await shop.expectAllDelivered(lives[name].subscriptionId);
      }
      const state = await merchant.get<StateOfCustomer>(`/customer/${customerId}/state`);
      const access = names.map((name) => {
        const { subscriptionId } = lives[name];
        const edited = editedTrials.get(subscriptionId);
        const isNewer = (edited?.at ?? 0) > lastEventAt(shop, subscriptionId);
        const byEvents = isNewer ? edited?.until : storedDate(shop, subscriptionId);
        const read = state.subscriptions.find((one) => one.subscriptionId === subscriptionId);
        return [name, now < (byEvents ?? 0), now < (read?.currentPeriodEnd ?? 0)];
      });
      const paid = names.map((name) => [name, hasPaid(name, now), hasPaid(name, now)]);
      expect([new Date(now).toISOString(), access]).toEqual([new Date(now).toISOString(), paid]);
    }

    // The charges at the gateway agree with the instants above.
    const { merchantId } = env;
    const book = async ({ subscriptionId }: Life) =>
      (await env.book({ merchantId, subscriptionId })).map(
        ({ outcome, code, amountMinor }) => `${code ?? outcome} ${amountMinor}`,
      );
    expect(await book(lives.eventful)).toEqual([
      'succeeded 1999', // 21 February
      'insufficient_funds 1999',
      'insufficient_funds 1999',
      'succeeded 1999', // 22 March, until 21 April
      'succeeded 1999', // 5 May
      'stolen_card 1999',
      'succeeded 1999', // 12 June, until 5 July
      'succeeded 1999', // 5 July
      'succeeded 1999', // 12, 19 and 26 July and 2 August, until 9 August
      'succeeded 1999',
      'succeeded 1999',
      'succeeded 1999',
      'succeeded 2999', // 9 August
      'succeeded 2999', // 9 September
      'succeeded 2999', // 15 November
    ]);
    expect(await book(lives.declined)).toEqual([
      'succeeded 1999', // 31 January
      ...Array.from({ length: 5 }, () => 'card_declined 1999'),
      'succeeded 1999', // 10 April, until 30 April
    ]);
    expect(await book(lives.cancelledInTrial)).toEqual([]);

    await shop.advanceClock(testClockId, at('2030-01-31T12:00Z'));
    expect(await book(lives.eventful)).toHaveLength(15);
    expect(await book(lives.declined)).toHaveLength(7);
    for (const name of names) await shop.expectAllDelivered(lives[name].subscriptionId);
  });
});

function lastEventAt(shop: Shop, subscriptionId: string): number {
  const events = shop.receiver.received.map(({ event }) => event);
  return events.findLast((event) => event['subscriptionId'] === subscriptionId)?.eventTime ?? 0;
}

import { describe, expect } from 'vitest';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { onDevServer } from '../support/environment.ts';
import type { Shop } from '../support/shop.ts';
import { active, expectNothingLeft, lastAttempt, onStripeScene } from '../support/stripe-scene.ts';
import type { Scene } from '../support/stripe-scene.ts';

/** What the bank advises in a decline, on a test clock, at the sandbox and at the Stripe double. */

const START = Date.parse('2027-01-31T12:00:00Z');
const END = Date.parse('2027-04-01T00:00:00Z');
/** Of the cycle that is due at 2027-02-28T12:00. */
const DUE = '2027-02-28T12:00:00.000Z';

interface Charge {
  cycleNumber: number;
  createdAt: string;
  status: string;
  cause: { text: string };
  advice?: object;
  networkCode?: string;
}

interface Life {
  name: string;
  /** For the sandbox, and for `simulate`. */
  advice: { advice: string; waitHours?: number };
  /** For the Stripe double. */
  atStripe: Record<string, string>;
  said: object;
  attempts: string[];
}

const LIVES: Life[] = [
  {
    name: 'never',
    advice: { advice: 'never' },
    atStripe: { adviceCode: 'do_not_try_again' },
    said: { kind: 'never' },
    attempts: [`${DUE} FAILED`],
  },
  {
    name: 'new_details_needed',
    advice: { advice: 'new_details_needed' },
    atStripe: { adviceCode: 'confirm_card_data' },
    said: { kind: 'new_details_needed' },
    attempts: [`${DUE} FAILED`],
  },
  {
    name: 'not_before',
    advice: { advice: 'not_before', waitHours: 48 },
    atStripe: { networkAdviceCode: '26' },
    said: { kind: 'not_before', notBefore: '2027-03-02T12:00:00.000Z' },
    attempts: [`${DUE} FAILED`, '2027-03-02T12:00:00.000Z SUCCESS'],
  },
];

const chargesOf = async (shop: Shop, subscriptionId: string) => {
  const path = `/subscription/charges/${subscriptionId}`;
  const { data } = await shop.merchant.get<{ data: Charge[] }>(path);
  return data.filter(({ cycleNumber }) => cycleNumber === 2);
};

async function expectLife(shop: Shop, subscriptionId: string, { said, attempts }: Life) {
  const charges = await chargesOf(shop, subscriptionId);
  expect(charges.map(({ createdAt, status }) => `${createdAt} ${status}`)).toEqual(attempts);
  expect(charges[0]?.advice).toEqual(said);
  if (charges[1]) {
    const text = 'the bank had advised no other try before 2027-03-02T12:00:00.000Z';
    expect(charges[1].cause).toMatchObject({ text, rule: 'set_date', actor: 'gateway' });
  }
  return charges;
}

/** Only of this network a test gives advice that names an instant. */
const MASTERCARD = '5555555555554444';

async function renewCard(scene: Scene, made: Ref, expiryYear: number): Promise<void> {
  const { method } = await lastAttempt(scene, made);
  const [, paymentMethodId] = method.gatewayMethodId.split('/');
  const card = { lastFour: '4242', expiryMonth: 7, expiryYear };
  await scene.world.control('POST', 'cards', { paymentMethodId, ...card });
  await scene.seller.settled();
}

type Ref = Awaited<ReturnType<typeof active>>;

describe('a decline with the advice', () => {
  onDevServer.for(LIVES)(
    '$name at the sandbox lives as simulated [D-30, D-58]',
    async (life, { env, shop }) => {
      const testClockId = await env.createClock(START);
      const body = { ...MONTHLY, testClockId };
      const { data } = await shop.merchant.post<{ data: { at: number; cycleNumber?: number }[] }>(
        '/subscription/simulate',
        { ...body, script: [{ cycle: 2, outcome: 'card_declined', ...life.advice }] },
      );
      const { subscriptionId, fwdUrl } = await shop.merchant.post<{
        subscriptionId: string;
        fwdUrl: string;
      }>('/subscription/create', body);
      await payOnPage(fwdUrl);
      await shop.merchant.post('/test-helpers/decline-next', {
        subscriptionId,
        code: 'card_declined',
        ...life.advice,
      });
      await env.advance(testClockId, END);
      const charges = await expectLife(shop, subscriptionId, life);
      expect(charges.map(({ createdAt }) => Date.parse(createdAt))).toEqual(
        data.filter(({ cycleNumber }) => cycleNumber === 2).map(({ at }) => at),
      );
    },
  );

  onStripeScene.for(LIVES)(
    '$name at the Stripe double obeys it [D-30]',
    async (life, { scene }) => {
      const { env, shop, world } = scene;
      const made = await active(scene, MASTERCARD);
      await world.control('POST', 'outcomes', {
        kind: 'decline',
        metadata: { subscriptionId: made.subscriptionId },
        count: 1,
        code: 'card_declined',
        declineCode: 'generic_decline',
        networkDeclineCode: '51',
        ...life.atStripe,
      });
      await env.advance(made.testClockId, END);
      const charges = await expectLife(shop, made.subscriptionId, life);
      expect(charges[0]?.networkCode).toBe('51');
      await expectNothingLeft(scene);
    },
  );

  onStripeScene(
    'never is followed by one attempt when the card network has new details of the card [D-30, D-42]',
    async ({ scene }) => {
      const { env, shop, world, seller } = scene;
      const made = await active(scene);
      const metadata = { subscriptionId: made.subscriptionId };
      const decline = { kind: 'decline', code: 'expired_card', metadata, count: 2 };
      await world.control('POST', 'outcomes', decline);
      await env.advance(made.testClockId, '2027-03-05T12:00:00Z');
      expect(await env.state(made)).toMatchObject({
        status: 'UNPAID',
        owed: { retriesStopped: true, nextRetryAt: null, lastDeclineCode: 'expired_card' },
      });
      await renewCard(scene, made, 2040);
      await env.advance(made.testClockId, '2027-03-20T12:00:00Z');
      const attempts = async () =>
        (await chargesOf(shop, made.subscriptionId)).map(
          ({ createdAt, status, cause }) => `${createdAt} ${status}: ${cause.text}`,
        );
      const first = `${DUE} FAILED: its date had come: 2027-01-31T12:00:00.000Z + 1 month = ${DUE}`;
      const second =
        '2027-03-05T12:00:00.000Z FAILED: the card had new details from 2027-03-05T12:00:00.000Z on';
      expect(await attempts()).toEqual([first, second]);
      await renewCard(scene, made, 2041);
      await env.advance(made.testClockId, '2027-03-30T12:00:00Z');
      expect(await attempts()).toEqual([
        first,
        second,
        '2027-03-20T12:00:00.000Z SUCCESS: the card had new details from 2027-03-20T12:00:00.000Z on',
      ]);
      expect((await seller.charges()).slice(-2)).toEqual(['failed 1999', 'succeeded 1999']);
      await expectNothingLeft(scene);
    },
  );
});

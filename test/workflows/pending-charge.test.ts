import { beforeEach, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { listReviews } from '../../db/repositories/payments/reviews.ts';
import { noteCall, secondsFromFirst } from '../support/call-times.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';

/** A charge that the gateway has and decides days later, for example a bank debit. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Seconds from the first send to each call of the first day: to the send itself, and to each look-up. */
const FIRST_DAY = [
  0,
  10,
  40,
  100,
  400,
  1_300,
  ...Array.from({ length: 24 }, (_, hour) => 1_300 + 3_600 * (hour + 1)),
];

/** The workflow times, in epoch ms, of the calls of the activity chargeAttempt. */
const calledAt: number[] = [];

const test = onTimeSkippingServerWith(
  {
    gatewayPersonality: 'pending',
    wrap: (activities: Activities): Activities => ({
      ...activities,
      chargeAttempt: (input) => {
        noteCall(calledAt, input.realNowAt);
        return activities.chargeAttempt(input);
      },
    }),
    sendBudget: { newSendsForMs: 200, pauseMs: 100 },
  },
  'test',
);

beforeEach(() => {
  calledAt.length = 0;
});

const seconds = () => secondsFromFirst(calledAt);

test('a charge that stays in progress for days is looked up hourly, then daily, is never reviewed, and is paid once [D-40]', async ({
  env,
}) => {
  const createdAt = await env.server.currentTimeMs();
  const ref = await env.create({ createdAt, terms: { cycleCount: 2, interval: 'DAY' } });
  await payCheckout(env, ref);
  await eventually(async () => expect((await env.state(ref)).cyclesCharged).toBe(1));
  await env.control('POST', '/control/decisions/delay', { ms: 120_000 });
  calledAt.length = 0;
  await env.server.sleep(DAY + 25 * HOUR);
  await eventually(() => expect(seconds()).toEqual(FIRST_DAY));
  expect((await env.state(ref)).openAttempt).toMatchObject({ lookups: 30 });

  await env.server.sleep(DAY);
  const lose = { operation: 'charge', fault: 'error_500', effect: 'none', count: 1_000 };
  await env.control('POST', '/control/faults', lose);
  await env.server.sleep(DAY);
  await env.control('DELETE', '/control/faults');
  await env.server.sleep(DAY);
  await eventually(() => expect(seconds()).toHaveLength(33));
  expect(seconds().slice(30)).toEqual([1, 2, 3].map((days) => 87_700 + days * 86_400));
  expect((await env.state(ref)).openAttempt?.reviewReason).toBeUndefined();

  await env.control('POST', '/control/decisions');
  await env.server.sleep(DAY);
  await eventually(async () => expect((await env.state(ref)).status).toBe('ENDED'));
  expect((await env.events(ref)).map((event) => event['eventType']).slice(-4)).toEqual([
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.ended',
  ]);
  expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded']);
  expect(await listReviews(env.db, { settled: false, limit: 10 })).toEqual([]);
});

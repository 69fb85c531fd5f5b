import { expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { command } from '../support/command.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { LINKS } from '../support/links.ts';
import { payCheckout } from '../support/pay-checkout.ts';

const DAY = 86_400_000;

/** The number of recorded notices whose answer the run does not get. */
let answersToLose = 2;

const test = onTimeSkippingServerWith({ wrap: losesAnswers });

function losesAnswers(activities: Activities): Activities {
  return {
    ...activities,
    record: async (input) => {
      const recorded = await activities.record(input);
      if (input.change.state.latest.kind === 'notice_given' && answersToLose > 0) {
        answersToLose -= 1;
        throw new Error('the answer is lost');
      }
      return recorded;
    },
  };
}

test('two years of a yearly subscription have each notice once, also if the answer of its recording is lost, and none for a date that a pause has moved [D-63]', async ({
  env,
}) => {
  const terms = { interval: 'YEAR', cycleCount: 3, amountMinor: 12_000 } as const;
  const ref = await env.create({ createdAt: await env.server.currentTimeMs(), terms });
  expect((await payCheckout(env, ref)).kind).toBe('result');
  const before = (await env.events(ref)).length;
  const told = async () => (await env.events(ref)).slice(before);
  const sleepUntilTold = async (days: number, count: number) => {
    await env.server.sleep(days * DAY);
    await expect.poll(async () => (await told()).length).toBe(count);
  };
  await sleepUntilTold(330, 1);
  await env.execute(ref, command('edit', { newAmountMinor: 15_000 }));
  // Day 20 before the charge, then day 10.
  await sleepUntilTold(28, 4);
  await env.execute(ref, command('pause'));
  const newNextPaymentAt = (await env.server.currentTimeMs()) + 15 * DAY;
  await env.execute(ref, command('unpause', { newNextPaymentAt }));
  await sleepUntilTold(16, 11);
  await sleepUntilTold(370, 17);
  const events = await told();
  expect(events.map(({ eventType }) => eventType)).toEqual([
    'subscription.renewal_upcoming',
    'subscription.edited',
    'subscription.amount_changing',
    'subscription.renewal_upcoming',
    'subscription.paused',
    'subscription.active',
    'subscription.amount_changing',
    'subscription.renewal_upcoming',
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.renewal_upcoming',
    'subscription.renewal_upcoming',
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.ended',
  ]);
  const cancelUrl = `${LINKS.publicUrl}/m/${env.merchantId}/cancel?reference=${ref.subscriptionId}`;
  const notices = events.flatMap(({ noticeOf, dueAt, lateMs, eventTime, ...rest }) => {
    if (noticeOf === undefined) return [];
    expect(rest).toMatchObject({ cancelUrl });
    const { date, amount } = noticeOf as { date: number; amount: number };
    expect(lateMs).toBe(Math.max(0, Number(eventTime) - Number(dueAt)));
    expect(Number(lateMs)).toBeLessThan(DAY);
    return [[Math.round((date - Number(dueAt)) / DAY), amount]];
  });
  expect(notices).toEqual([
    [40, 12_000],
    [20, 15_000],
    [10, 15_000],
    [15, 15_000],
    [10, 15_000],
    [40, 15_000],
    [10, 15_000],
  ]);
  expect(answersToLose).toBe(0);
  await env.server.sleep(400 * DAY);
  expect((await told()).length).toBe(17);
});

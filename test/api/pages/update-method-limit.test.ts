import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import {
  declineNext,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { linesOf } from '../../support/hosted-pages/page-text.ts';
import { headingOf, visit } from '../../support/hosted-pages/visits.ts';

test('after 15 automatic attempts in 30 days a new card is saved at once and charged later [D-30, D-33]', async ({
  api,
}) => {
  const testClockId = await createClock(api, Date.UTC(2027, 0, 31, 12));
  const subscription = await subscriptionIn(api, 'ACTIVE', { testClockId });
  const { subscriptionId } = subscription;
  const firstDueAt = Date.UTC(2027, 1, 28, 12);
  await declineNext(api, subscription, 'card_declined');
  for (let minutes = 1; minutes < 15; minutes += 1) {
    const newNextPaymentDate = firstDueAt + minutes * 60_000;
    const body = { subscriptionId, newNextPaymentDate };
    expect((await api.call('POST', '/subscription/edit', { body })).status).toBe(200);
    await declineNext(api, subscription, 'card_declined');
  }
  const { updatePaymentMethodLink } = await readSubscription(api, subscription);
  const { look, give } = visit(api, String(updatePaymentMethodLink));
  const asked = await look();
  expect(linesOf(asked.text)).toEqual([
    ['Charged today', 'Nothing'],
    ['Card now', 'Visa ending in 4242'],
    ['Next payment', 'US$19.99 on 30 March 2027 (UTC)'],
  ]);
  expect(asked.text).toContain('<button type="submit">Save card</button>');
  const saved = await give('payment_token=tok_kept_1111');
  expect(headingOf(saved)).toBe('Your card was replaced');
  expect(saved.text).toContain(
    'Visa ending in 1111 is used from now on. Nothing was charged for the change.',
  );
  expect(saved.text).toContain('The payment of US$19.99 that is due is tried with it next.');
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'UNPAID',
    nextPaymentDate: Date.UTC(2027, 2, 30, 12),
  });
});

import { expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { declare } from '../../tools/scripts/client/declare.ts';
import { PAYING_CARD, payOn, payOnPage } from '../../tools/scripts/client/payer.ts';
import { onDevServer as test } from '../support/environment.ts';

const YEARLY = { interval: 'YEAR', cycleCount: 5 };
const ADA = { name: 'Ada Example', email: 'ada@example.com' };

function linkIn({ links }: Page, text: string): string {
  const link = links.find((each) => each.text === text);
  if (link === undefined) throw new Error(`no link ${text}`);
  return link.url;
}

test('a payer joins, is told of the renewal, changes the card, leaves and keeps the proof [D-62, D-63, D-64]', async ({
  env,
  shop,
}) => {
  const { db, merchantId } = env;
  await changeSettings(db, merchantId, { declarations: 'execute', portal: ['card'] });
  const clock = await shop.createClock(Date.parse('2028-02-29T09:30:00Z'));
  const { testClockId } = clock;
  const advance = (to: string) => clock.advance(Date.parse(to));
  const subscription = await shop.subscribe({ testClockId, customerDetails: ADA, ...YEARLY });
  const { subscriptionId } = subscription;
  const news = (count: number) => shop.news(subscriptionId, count);
  const latest = () =>
    shop.receiver.received.map(({ event }) => event).findLast((it) => it['cancelUrl']) ?? {};

  // The card expires before the second payment
  const receipt = await payOnPage(subscription.fwdUrl, { ...PAYING_CARD, expiry: '01 / 29' });
  expect(receipt.title).toBe('Thank you: your payment was received');
  await news(6);

  await advance('2029-01-19T09:30:00Z');
  expect(await news(1)).toEqual([
    '2029-01-19 09:30 subscription.renewal_upcoming ACTIVE 1999 USD, next 2029-02-28 09:30',
  ]);
  const cancelUrl = `${shop.url}/m/${merchantId}/cancel?reference=${subscriptionId}`;
  expect(latest()).toMatchObject({
    noticeOf: { date: Date.parse('2029-02-28T09:30:00Z'), amount: 1_999, currency: 'USD' },
    dueAt: Date.parse('2029-01-19T09:30:00Z'),
    lateMs: 0,
    cancelUrl: expect.stringContaining(new URL(cancelUrl).pathname) as string,
  });
  await advance('2029-01-29T09:30:00Z');
  expect(await news(1)).toEqual([
    '2029-01-29 09:30 payment_method.expiring ACTIVE 1999 USD, next 2029-02-28 09:30',
  ]);

  // The own page leads to the page for another card
  const { customerId } = await subscription.read();
  const { url } = await shop.merchant.post<{ url: string }>('/customer/portal', { customerId });
  const opening = await openPage(url);
  const [button] = opening.forms;
  if (!button) throw new Error('no button');
  const portal = await submitForm(opening, button, {});
  const cardPage = await openPage(linkIn(portal, 'Change your card'), portal.browser);
  expect((await payOn(cardPage)).title).toBe('Your card was replaced');
  await advance('2029-02-18T09:30:00Z');
  expect(await news(1)).toEqual([
    '2029-02-18 09:30 subscription.renewal_upcoming ACTIVE 1999 USD, next 2029-02-28 09:30',
  ]);

  const confirmation = await declare(cancelUrl, { ...ADA, reference: subscriptionId });
  expect(confirmation.title).toBe('Your cancellation was received');
  expect((await news(2)).map((line) => line.split(' ')[2])).toEqual([
    'subscription.cancel_scheduled',
    'cancellation.received',
  ]);
  const copy = await openPage(linkIn(confirmation, 'Download this confirmation'));
  expect(copy.html).toContain('I cancel this contract.');

  await advance('2029-02-28T09:30:00Z');
  expect(await news(1)).toEqual(['2029-02-28 09:30 subscription.ended ENDED 1999 USD']);
  expect(await subscription.book()).toEqual(['succeeded 1999']);
  const timeline = await shop.merchant.get<{ data: { what: string; actor: string }[] }>(
    `/subscription/timeline/${subscriptionId}`,
  );
  expect(timeline.data.map(({ what, actor }) => `${what} (${actor})`)).toEqual([
    'created (merchant)',
    'cycle 1 paid, 19.99 USD (payer)',
    'notice given: subscription.renewal_upcoming (schedule)',
    'notice given: payment_method.expiring (schedule)',
    'payment method replaced (payer)',
    'notice given: subscription.renewal_upcoming (schedule)',
    'cancelled at 2029-02-28T09:30:00.000Z (payer)',
    'ended (cancelled) (schedule)',
  ]);
  const listed = async (path: string) =>
    (await shop.merchant.get<{ data: Record<string, unknown>[] }>(path)).data;
  expect(await listed('/declarations')).toMatchObject([
    { kind: 'cancellation', ...ADA, outcome: 'executed', subscriptionId },
  ]);
  const consents = await listed(`/consents?subscriptionId=${subscriptionId}`);
  expect(consents.map(({ amount }) => amount)).toEqual([null, 1_999]);

  await advance('2032-01-01T00:00:00Z');
  await shop.expectAllDelivered(subscriptionId);
  expect(await news(0)).toEqual([]);
  expect(await subscription.book()).toEqual(['succeeded 1999']);
  await changeSettings(db, merchantId, { declarations: 'tell', portal: ['card'] });
});

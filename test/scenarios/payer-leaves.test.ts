import { afterAll, expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { askForPortal, declare } from '../../tools/scripts/client/declare.ts';
import { PAYING_CARD, payOn, payOnPage } from '../../tools/scripts/client/payer.ts';
import { MAIL_ENDPOINT, MAIL_EVENT_TYPES } from '../../domain/mails.ts';
import { onDevServerWith } from '../support/environment.ts';
import { LINKS } from '../support/links.ts';
import { startMailServer } from '../support/mail-server.ts';

const mails = await startMailServer();
afterAll(() => mails.close());
const test = onDevServerWith({ mail: mails.settings });

const YEARLY = { interval: 'YEAR', cycleCount: 5 };
const ADA = { name: 'Ada Example', email: 'ada@example.com' };

const linesOf = (text = ''): string[] => text.trim().replaceAll('\u00A0', ' ').split('\n');

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
  await shop.merchant.post('/webhook', {
    endpoint: MAIL_ENDPOINT,
    eventSigner: 'signs nothing',
    subscribedEventTypes: MAIL_EVENT_TYPES,
  });
  /** Subject and text of the next e-mails to the payer. */
  let read = 0;
  const mail = async (count: number) => {
    await expect.poll(() => mails.received.length).toBe(read + count);
    const news = mails.received.slice(read);
    read = mails.received.length;
    expect(news.map(({ to }) => to?.[0]?.address)).toEqual(news.map(() => ADA.email));
    return news.map(({ subject, text }) => ({ subject, lines: linesOf(text) }));
  };
  const latest = () =>
    shop.receiver.received.map(({ event }) => event).findLast((it) => it['cancelUrl']) ?? {};

  // The card expires before the second payment
  const receipt = await payOnPage(subscription.fwdUrl, { ...PAYING_CARD, expiry: '01 / 29' });
  expect(receipt.title).toBe('Thank you: your payment was received');
  await news(6);
  const leavePage = (action: string) =>
    `${LINKS.publicUrl}/m/${merchantId}/${action}?reference=${subscriptionId}`;
  const leave = [
    'Cancel contract here:',
    leavePage('cancel'),
    'Withdraw from contract here:',
    leavePage('withdraw'),
  ];
  const [paid] = await mail(1);
  expect(paid?.subject).toBe('[TEST] Thank you: your payment was received · Test merchant');
  expect(paid?.lines).toEqual(
    expect.arrayContaining([
      'Paid: US$19.99',
      'Card: Visa ending in 4242',
      'Next payment: US$19.99 on 28 February 2029',
      ...leave,
    ]),
  );

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
  const next = 'The next payment is US$19.99 on 28 February 2029.';
  const footer = [
    '',
    'Dates are in UTC.',
    'You receive this e-mail because you paid Test merchant or subscribed with them.',
    'Test mode: no money moves.',
  ];
  expect(await mail(1)).toEqual([
    {
      subject: '[TEST] Your subscription renews on 28 February 2029 · Test merchant',
      lines: ['Your subscription renews on 28 February 2029', '', next, '', ...leave, ...footer],
    },
  ]);
  await advance('2029-01-29T09:30:00Z');
  expect(await news(1)).toEqual([
    '2029-01-29 09:30 payment_method.expiring ACTIVE 1999 USD, next 2029-02-28 09:30',
  ]);

  const [expiring] = await mail(1);
  expect(expiring?.subject).toBe(
    '[TEST] Your card expires before the next payment · Test merchant',
  );
  expect(expiring?.lines.slice(0, 5)).toEqual([
    'Your card expires before the next payment',
    '',
    next,
    '',
    'Change your card:',
  ]);
  const changePage = expiring?.lines[5]?.replace(LINKS.publicUrl, shop.url) ?? '';
  expect((await openPage(changePage)).title).toBe('Change your card');

  // A link to the own page comes by e-mail, and leads to the page for another card
  const asked = await askForPortal(`${shop.url}/m/${merchantId}`, 'ADA@Example.com');
  expect(asked.title).toBe('Your subscriptions with Test merchant');
  const [sent] = await mail(1);
  expect(sent?.subject).toBe('[TEST] Your subscriptions with Test merchant · Test merchant');
  expect(sent?.lines[2]).toMatch(
    /^The link opens your page in one browser only, until \d\d:\d\d \(UTC\)\. If you did not ask for it, ignore this e-mail\.$/,
  );
  expect(sent?.lines[4]).toBe('Continue:');
  const opening = await openPage(sent?.lines[5]?.replace(LINKS.publicUrl, shop.url) ?? '');
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
  const mailed = (await mail(2)).map(({ subject, lines }) => [subject, lines[4]]);
  expect(mailed).toEqual([
    ['[TEST] Your subscription renews on 28 February 2029 · Test merchant', leave[0]],
    [
      '[TEST] Your cancellation was received · Test merchant',
      'Declaration: I cancel this contract.',
    ],
  ]);
  const copy = await openPage(linkIn(confirmation, 'Download this confirmation'));
  expect(copy.html).toContain('I cancel this contract.');

  await advance('2029-02-28T09:30:00Z');
  expect(await news(1)).toEqual(['2029-02-28 09:30 subscription.ended ENDED 1999 USD']);
  expect((await mail(1)).map(({ subject }) => subject)).toEqual([
    '[TEST] This subscription has ended · Test merchant',
  ]);
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
  expect(mails.received).toHaveLength(read);
  expect(await subscription.book()).toEqual(['succeeded 1999']);
  await changeSettings(db, merchantId, { declarations: 'tell', portal: ['card'] });
});

// A year of one subscription at the sandbox gateway: a trial, and twelve payments, one after a decline.

import { payOn } from '../client/payer.ts';
import { activatedLines } from './event-line.ts';
import { expectResult, renewed } from './story.ts';
import type { Story, StoryRun } from './story.ts';
import { printNote } from './timeline.ts';

export const YEAR: Story = {
  product: { name: 'Garden Letters', description: 'One letter a month.' },
  order: { trialPeriodCount: 7, trialPeriodInterval: 'DAY', metadata: { plan: 'monthly' } },
  startsAt: '2027-01-24 12:00',
  opened: [
    '2027-01-24 12:00 subscription.created CREATED 19.99 USD, 12 left',
    '2027-01-24 12:00 subscription.checkout_opened CREATED 19.99 USD, 12 left',
  ],
  steps: [
    {
      at: '2027-01-24 12:00',
      act: startTrial,
      events: [
        '2027-01-24 12:00 subscription.trialing TRIALING 19.99 USD, 12 left, next 2027-01-31 12:00',
      ],
      reads: ['TRIALING', 12, '2027-01-31 12:00', '2027-01-31 12:00', '4242'],
    },
    renewed(
      1,
      '2027-01-31 12:00',
      '2027-02-28 12:00',
      '2027-01-31 12:00 subscription.active ACTIVE 19.99 USD, 11 left, next 2027-02-28 12:00',
    ),
    renewed(2, '2027-02-28 12:00', '2027-03-31 12:00'),
    renewed(3, '2027-03-31 12:00', '2027-04-30 12:00'),
    renewed(4, '2027-04-30 12:00', '2027-05-31 12:00'),
    renewed(5, '2027-05-31 12:00', '2027-06-30 12:00'),
    renewed(6, '2027-06-30 12:00', '2027-07-31 12:00'),
    renewed(7, '2027-07-31 12:00', '2027-08-31 12:00'),
    {
      at: '2027-08-31 12:00',
      note: 'the bank will decline the next charge: insufficient_funds',
      before: ({ start, subscriptionId }) =>
        start.declineNext(subscriptionId, 'insufficient_funds', 1),
      events: [
        '2027-08-31 12:00 intent.created CREATED 19.99 USD',
        '2027-08-31 12:00 intent.failed FAILED 19.99 USD, cycle 8, card 4242, insufficient_funds',
        '2027-08-31 12:00 subscription.unpaid UNPAID 19.99 USD, cycle 8, 5 left, next 2027-08-31 16:00, until 2027-08-31 12:00, insufficient_funds',
      ],
      reads: ['UNPAID', 5, '2027-08-31 16:00', '2027-08-31 12:00', '4242'],
    },
    {
      at: '2027-08-31 16:00',
      note: 'the automatic retry, four hours later',
      events: activatedLines('2027-08-31 16:00', 8, '2027-09-30 12:00'),
      reads: ['ACTIVE', 4, '2027-09-30 12:00', '2027-09-30 12:00', '4242'],
    },
    renewed(9, '2027-09-30 12:00', '2027-10-31 12:00'),
    renewed(10, '2027-10-31 12:00', '2027-11-30 12:00'),
    renewed(11, '2027-11-30 12:00', '2027-12-31 12:00'),
    {
      at: '2027-12-31 12:00',
      events: [
        '2027-12-31 12:00 intent.created CREATED 19.99 USD',
        '2027-12-31 12:00 intent.success SUCCESS 19.99 USD, card 4242',
        '2027-12-31 12:00 subscription.cycle_charged ENDED 19.99 USD, cycle 12, 0 left, until 2028-01-31 12:00',
        '2027-12-31 12:00 subscription.ended ENDED 19.99 USD, 0 left, until 2028-01-31 12:00',
      ],
      reads: ['ENDED', 0, null, '2028-01-31 12:00', '4242'],
    },
  ],
  longAfter: '2029-01-31 12:00',
  charges: [
    ...Array.from({ length: 7 }, () => 'succeeded 1999 USD'),
    'declined 1999 USD, insufficient_funds',
    ...Array.from({ length: 5 }, () => 'succeeded 1999 USD'),
  ],
  readCharges: readBook,
};

async function startTrial(run: StoryRun): Promise<void> {
  const { checkout, differences } = run;
  const [form] = checkout.forms;
  differences.equal('the hosted page: button', 'Save card and start free trial', form?.button);
  const result = await payOn(checkout);
  expectResult(run, result, 'Your free trial has started', 'TRIALING');
  printNote(`the payer saved a card on the hosted page: "${result.title}"`);
}

/** The sandbox gateway's record of the subscription's charges. */
async function readBook({ start, subscriptionId }: StoryRun): Promise<string[]> {
  const book = await start.book(subscriptionId);
  return book.map(
    ({ outcome, amountMinor, currency, code }) =>
      `${outcome} ${amountMinor} ${currency}${code === null ? '' : `, ${code}`}`,
  );
}

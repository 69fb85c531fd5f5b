// The demo of a merchant's commands on a running subscription.

import { payOn } from '../client/payer.ts';
import { refusalOf } from './check.ts';
import { activatedLines, renewalLines } from './event-line.ts';
import { declineNext, readBook } from './sandbox.ts';
import { at, expectResult } from './story.ts';
import type { Act, Story } from './story.ts';

/** A command, and its expected answer, which by default has no field. */
const command =
  (path: string, fields: object = {}, answer?: object): Act =>
  async ({ merchant, subscriptionId, differences }) => {
    const found = await merchant.post<object>(path, { subscriptionId, ...fields }).catch(refusalOf);
    if (answer === undefined) differences.equal(path, {}, found);
    else differences.fields(path, answer, found);
  };

const retryAnswer = (success: boolean, hour: number) => ({
  success,
  minManualRetryDate: `2027-08-01T${hour}:00:00.000Z`,
  status: success ? 'ACTIVE' : 'UNPAID',
  errorCode: success ? null : 'insufficient_funds',
});

const monthly = (minute: string, cycle: number, next: string): string[] =>
  renewalLines({ at: minute, cycle, next, amount: '24.99 USD' });

export const COMMANDS: Story = {
  product: { name: 'Tea Club', description: 'One tea a month.' },
  startsAt: '2027-02-10 12:00',
  isShownBySteps: true,
  opened: [
    '2027-02-10 12:00 intent.created CREATED 19.99 USD',
    '2027-02-10 12:00 subscription.created CREATED 19.99 USD, 12 left',
    '2027-02-10 12:00 intent.checkout_opened CREATED 19.99 USD',
  ],
  steps: [
    {
      at: '2027-02-10 12:00',
      note: 'paid on the hosted page',
      act: async (run) => {
        const result = await payOn(run.checkout);
        expectResult(run, result, 'Thank you: your payment was received', 'ACTIVE');
      },
      events: activatedLines('2027-02-10 12:00', 1, '2027-03-10 12:00'),
      reads: ['ACTIVE', 11, '2027-03-10 12:00', '2027-03-10 12:00', '4242'],
    },
    {
      at: '2027-02-10 12:00',
      note: 'edit: 24.99 USD from the next payment on',
      act: command('/subscription/edit', { newAmount: 2_499 }),
      events: [
        '2027-02-10 12:00 subscription.edited ACTIVE 24.99 USD, 11 left, next 2027-03-10 12:00',
      ],
      reads: ['ACTIVE', 11, '2027-03-10 12:00', '2027-03-10 12:00', '4242'],
    },
    {
      at: '2027-03-10 12:00',
      note: 'the month’s payment',
      events: monthly('2027-03-10 12:00', 2, '2027-04-10 12:00'),
      reads: ['ACTIVE', 10, '2027-04-10 12:00', '2027-04-10 12:00', '4242'],
    },
    {
      at: '2027-03-10 12:00',
      note: 'edit: the next payment on 20 April, and monthly from there',
      act: command('/subscription/edit', { newNextPaymentDate: at('2027-04-20 12:00') }),
      events: [
        '2027-03-10 12:00 subscription.edited ACTIVE 24.99 USD, 10 left, next 2027-04-20 12:00, until 2027-04-10 12:00',
      ],
      reads: ['ACTIVE', 10, '2027-04-20 12:00', '2027-04-10 12:00', '4242'],
    },
    {
      at: '2027-04-20 12:00',
      note: 'the month’s payment',
      events: monthly('2027-04-20 12:00', 3, '2027-05-20 12:00'),
      reads: ['ACTIVE', 9, '2027-05-20 12:00', '2027-05-20 12:00', '4242'],
    },
    {
      at: '2027-04-20 12:00',
      note: 'pause: nothing is charged',
      act: command('/subscription/merchant/pause'),
      events: [
        '2027-04-20 12:00 subscription.paused PAUSED 24.99 USD, 9 left, until 2027-05-20 12:00',
      ],
      reads: ['PAUSED', 9, null, '2027-05-20 12:00', '4242'],
    },
    {
      at: '2027-06-15 12:00',
      note: 'unpause, two months later: the next payment on 1 July',
      act: command('/subscription/merchant/unpause', {
        newNextPaymentDate: at('2027-07-01 12:00'),
      }),
      events: [
        '2027-06-15 12:00 subscription.active ACTIVE 24.99 USD, 9 left, next 2027-07-01 12:00, until 2027-05-20 12:00',
      ],
      reads: ['ACTIVE', 9, '2027-07-01 12:00', '2027-05-20 12:00', '4242'],
    },
    {
      at: '2027-07-01 12:00',
      note: 'the month’s payment',
      events: monthly('2027-07-01 12:00', 4, '2027-08-01 12:00'),
      reads: ['ACTIVE', 8, '2027-08-01 12:00', '2027-08-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 12:00',
      note: 'the bank declines: insufficient_funds',
      // The scheduled charge, the manual retry and the automatic retry.
      before: declineNext(3),
      events: [
        '2027-08-01 12:00 intent.created CREATED 24.99 USD',
        '2027-08-01 12:00 intent.failed FAILED 24.99 USD, cycle 5, card 4242, insufficient_funds',
        '2027-08-01 12:00 subscription.unpaid UNPAID 24.99 USD, cycle 5, 8 left, next 2027-08-01 16:00, until 2027-08-01 12:00, insufficient_funds',
      ],
      reads: ['UNPAID', 8, '2027-08-01 16:00', '2027-08-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 13:00',
      note: 'manual retry: declined again',
      act: command('/subscription/manual-retry', {}, retryAnswer(false, 17)),
      events: [
        '2027-08-01 13:00 intent.failed FAILED 24.99 USD, cycle 5, card 4242, insufficient_funds',
      ],
      reads: ['UNPAID', 8, '2027-08-01 16:00', '2027-08-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 16:00',
      note: 'the automatic retry does not wait for the cooldown',
      events: [
        '2027-08-01 16:00 intent.failed FAILED 24.99 USD, cycle 5, card 4242, insufficient_funds',
      ],
      reads: ['UNPAID', 8, '2027-08-02 00:00', '2027-08-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 16:59',
      note: 'manual retry after 3 h 59 min: refused until 17:00',
      act: command(
        '/subscription/manual-retry',
        {},
        {
          refused: 'bad_request',
          why: 'Another manual retry is possible from 2027-08-01T17:00:00.000Z.',
        },
      ),
      events: [],
      reads: ['UNPAID', 8, '2027-08-02 00:00', '2027-08-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 17:00',
      note: 'manual retry after 4 h: allowed, and paid',
      act: command('/subscription/manual-retry', {}, retryAnswer(true, 21)),
      events: activatedLines('2027-08-01 17:00', 5, '2027-09-01 12:00', { amount: '24.99 USD' }),
      reads: ['ACTIVE', 7, '2027-09-01 12:00', '2027-09-01 12:00', '4242'],
    },
    {
      at: '2027-08-01 17:00',
      note: 'one-time charge, outside the cycles',
      act: command(
        '/subscription/merchant/one-time-charge',
        { amount: 500, currency: 'USD' },
        { status: 'SUCCESS', errorCode: null, errorMessage: null },
      ),
      events: [
        '2027-08-01 17:00 intent.created CREATED 5.00 USD, card 4242',
        '2027-08-01 17:00 intent.success SUCCESS 5.00 USD, card 4242',
      ],
      reads: ['ACTIVE', 7, '2027-09-01 12:00', '2027-09-01 12:00', '4242'],
    },
  ],
  longAfter: '2027-08-01 17:00',
  charges: [
    'succeeded 1999 USD',
    ...Array.from({ length: 3 }, () => 'succeeded 2499 USD'),
    ...Array.from({ length: 3 }, () => 'declined 2499 USD, insufficient_funds'),
    'succeeded 2499 USD',
    'succeeded 500 USD',
  ],
  readCharges: readBook,
};

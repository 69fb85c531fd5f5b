// A year of one subscription at the Stripe double.

import { activatedLines, REAL_TIME } from '../event-line.ts';
import { lastRenewal, renewed } from '../story.ts';
import type { Story } from '../story.ts';
import * as acts from './acts.ts';

const dispute = acts.disputeOfMay();
const NEW_CARD = { card: '1881' };

export const STRIPE_YEAR: Story = {
  product: { name: 'Garden Letters', description: 'One letter a month.' },
  startsAt: '2027-01-31 12:00',
  opened: [
    '2027-01-31 12:00 intent.created CREATED 19.99 USD',
    '2027-01-31 12:00 subscription.created CREATED 19.99 USD, 12 left',
    '2027-01-31 12:00 intent.checkout_opened CREATED 19.99 USD',
  ],
  steps: [
    {
      at: '2027-01-31 12:00',
      act: acts.payOnStripesPage,
      events: activatedLines('2027-01-31 12:00', 1, '2027-02-28 12:00'),
      reads: ['ACTIVE', 11, '2027-02-28 12:00', '2027-02-28 12:00', '4242'],
    },
    renewed(2, '2027-02-28 12:00', '2027-03-31 12:00'),
    renewed(3, '2027-03-31 12:00', '2027-04-30 12:00'),
    {
      at: '2027-04-10 12:00',
      act: acts.replaceCardByNetwork,
      events: [`${REAL_TIME} setup_method.updated LIVE, card 1881`],
      reads: ['ACTIVE', 9, '2027-04-30 12:00', '2027-04-30 12:00', '1881'],
    },
    renewed(4, '2027-04-30 12:00', '2027-05-31 12:00', NEW_CARD),
    renewed(5, '2027-05-31 12:00', '2027-06-30 12:00', NEW_CARD),
    {
      at: '2027-06-10 12:00',
      act: dispute.open,
      events: [
        '2027-06-10 12:00 intent.disputed SUCCESS 19.99 USD, card 1881, OPEN dispute of 19.99 USD: fraudulent',
      ],
      reads: ['ACTIVE', 7, '2027-06-30 12:00', '2027-06-30 12:00', '1881'],
    },
    renewed(6, '2027-06-30 12:00', '2027-07-31 12:00', NEW_CARD),
    {
      at: '2027-07-20 12:00',
      act: dispute.win,
      events: [
        '2027-07-20 12:00 intent.disputed SUCCESS 19.99 USD, card 1881, WON dispute of 19.99 USD: fraudulent',
      ],
      reads: ['ACTIVE', 6, '2027-07-31 12:00', '2027-07-31 12:00', '1881'],
    },
    renewed(7, '2027-07-31 12:00', '2027-08-31 12:00', NEW_CARD),
    {
      at: '2027-08-05 12:00',
      act: acts.refundPaymentOfJuly,
      events: [],
      reads: ['ACTIVE', 5, '2027-08-31 12:00', '2027-08-31 12:00', '1881'],
    },
    {
      at: '2027-08-09 12:00',
      act: acts.failRefund,
      events: [
        '2027-08-09 12:00 intent.refund_failed SUCCESS 19.99 USD, card 1881, 19.99 USD not refunded',
      ],
      reads: ['ACTIVE', 5, '2027-08-31 12:00', '2027-08-31 12:00', '1881'],
    },
    {
      at: '2027-08-31 12:00',
      before: acts.askForPayerAtNextPayment,
      events: [
        '2027-08-31 12:00 intent.created CREATED 19.99 USD',
        '2027-08-31 12:00 intent.failed FAILED 19.99 USD, cycle 8, card 1881, authentication_required',
        '2027-08-31 12:00 subscription.unpaid UNPAID 19.99 USD, cycle 8, 5 left, until 2027-08-31 12:00, authentication_required',
        '2027-08-31 12:00 subscription.retries_exhausted UNPAID 19.99 USD, cycle 8, 5 left, until 2027-08-31 12:00, authentication_required',
      ],
      reads: ['UNPAID', 5, null, '2027-08-31 12:00', '1881'],
    },
    {
      at: '2027-09-01 09:00',
      act: acts.confirmWithBank,
      events: activatedLines('2027-09-01 09:00', 8, '2027-09-30 12:00', NEW_CARD),
      reads: ['ACTIVE', 4, '2027-09-30 12:00', '2027-09-30 12:00', '1881'],
    },
    renewed(9, '2027-09-30 12:00', '2027-10-31 12:00', NEW_CARD),
    renewed(10, '2027-10-31 12:00', '2027-11-30 12:00', NEW_CARD),
    renewed(11, '2027-11-30 12:00', '2027-12-31 12:00', NEW_CARD),
    lastRenewal(NEW_CARD.card),
  ],
  longAfter: '2029-01-31 12:00',
  charges: [
    ...['1', '2', '3', '4'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
    'cycle 5 succeeded 1999 usd, disputed',
    ...['6', '7'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
    'cycle 8 failed 1999 usd, authentication_required',
    ...['8', '9', '10', '11', '12'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
  ],
  readCharges: acts.chargeLines,
};

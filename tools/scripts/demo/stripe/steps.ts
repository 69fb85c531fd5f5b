// The steps of the demo that takes a subscription through a year at the Stripe double, with the expected events,
// exact to the minute and the cent. No value here is computed from the service's answers.

import * as acts from './acts.ts';
import type { StripeRun } from './acts.ts';

export interface StripeStep {
  readonly at: string;
  readonly before?: (run: StripeRun) => Promise<void>;
  readonly act?: (run: StripeRun) => Promise<void>;
  readonly events: readonly string[];
  readonly timeline?: string;
  /** The expected fields of a read of the subscription after the step. */
  readonly reads: readonly [
    status: string,
    remainingCycleCount: number,
    nextPaymentDate: string | null,
    currentPeriodEnd: string,
    card: string,
  ];
}

export const STARTS_AT = '2027-01-31 12:00';
export const LONG_AFTER = '2029-01-31 12:00';

/** Stands for the time of an event of a payment method, which is the real time: a method has no test clock. */
export const REAL_TIME = 'in real time';

export const ORDER = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
} as const;

/** The expected events of the creation of the subscription and of the first opening of its page, before the payment. */
export const BEFORE_PAYING: readonly string[] = [
  '2027-01-31 12:00 intent.created CREATED 19.99 USD',
  '2027-01-31 12:00 subscription.created CREATED 19.99 USD, 12 left',
  '2027-01-31 12:00 intent.checkout_opened CREATED 19.99 USD',
];

export const STEPS: readonly StripeStep[] = [
  {
    at: '2027-01-31 12:00',
    act: acts.payOnStripesPage,
    events: [
      '2027-01-31 12:00 intent.success SUCCESS 19.99 USD, card 4242',
      '2027-01-31 12:00 subscription.cycle_charged ACTIVE 19.99 USD, cycle 1, 11 left, next 2027-02-28 12:00',
      '2027-01-31 12:00 subscription.active ACTIVE 19.99 USD, 11 left, next 2027-02-28 12:00',
    ],
    reads: ['ACTIVE', 11, '2027-02-28 12:00', '2027-02-28 12:00', '4242'],
  },
  renewed(2, '2027-02-28 12:00', '2027-03-31 12:00', '4242'),
  renewed(3, '2027-03-31 12:00', '2027-04-30 12:00', '4242'),
  {
    at: '2027-04-10 12:00',
    act: acts.replaceCardByNetwork,
    events: [`${REAL_TIME} setup_method.updated LIVE, card 1881`],
    reads: ['ACTIVE', 9, '2027-04-30 12:00', '2027-04-30 12:00', '1881'],
  },
  renewed(4, '2027-04-30 12:00', '2027-05-31 12:00', '1881'),
  renewed(5, '2027-05-31 12:00', '2027-06-30 12:00', '1881'),
  {
    at: '2027-06-10 12:00',
    act: acts.disputePaymentOfMay,
    events: [
      '2027-06-10 12:00 intent.disputed SUCCESS 19.99 USD, card 1881, OPEN dispute of 19.99 USD: fraudulent',
    ],
    timeline: 'a payment is disputed, 19.99 USD (reason: fraudulent)',
    reads: ['ACTIVE', 7, '2027-06-30 12:00', '2027-06-30 12:00', '1881'],
  },
  renewed(6, '2027-06-30 12:00', '2027-07-31 12:00', '1881'),
  {
    at: '2027-07-20 12:00',
    act: acts.winDispute,
    events: [
      '2027-07-20 12:00 intent.disputed SUCCESS 19.99 USD, card 1881, WON dispute of 19.99 USD: fraudulent',
    ],
    timeline: 'the dispute of a payment was won, 19.99 USD (reason: fraudulent)',
    reads: ['ACTIVE', 6, '2027-07-31 12:00', '2027-07-31 12:00', '1881'],
  },
  renewed(7, '2027-07-31 12:00', '2027-08-31 12:00', '1881'),
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
      '2027-08-31 12:00 subscription.unpaid UNPAID 19.99 USD, cycle 8, 5 left, authentication_required',
      '2027-08-31 12:00 subscription.retries_exhausted UNPAID 19.99 USD, cycle 8, 5 left, authentication_required',
    ],
    reads: ['UNPAID', 5, null, '2027-08-31 12:00', '1881'],
  },
  {
    at: '2027-09-01 09:00',
    act: acts.confirmWithBank,
    events: [
      '2027-09-01 09:00 intent.success SUCCESS 19.99 USD, card 1881',
      '2027-09-01 09:00 subscription.cycle_charged ACTIVE 19.99 USD, cycle 8, 4 left, next 2027-09-30 12:00',
      '2027-09-01 09:00 subscription.active ACTIVE 19.99 USD, 4 left, next 2027-09-30 12:00',
    ],
    reads: ['ACTIVE', 4, '2027-09-30 12:00', '2027-09-30 12:00', '1881'],
  },
  renewed(9, '2027-09-30 12:00', '2027-10-31 12:00', '1881'),
  renewed(10, '2027-10-31 12:00', '2027-11-30 12:00', '1881'),
  renewed(11, '2027-11-30 12:00', '2027-12-31 12:00', '1881'),
  {
    at: '2027-12-31 12:00',
    events: [
      '2027-12-31 12:00 intent.created CREATED 19.99 USD',
      '2027-12-31 12:00 intent.success SUCCESS 19.99 USD, card 1881',
      '2027-12-31 12:00 subscription.cycle_charged ENDED 19.99 USD, cycle 12, 0 left',
      '2027-12-31 12:00 subscription.ended ENDED 19.99 USD, 0 left',
    ],
    reads: ['ENDED', 0, null, '2028-01-31 12:00', '1881'],
  },
];

function renewed(cycle: number, at: string, next: string, card: string): StripeStep {
  const left = 12 - cycle;
  return {
    at,
    events: [
      `${at} intent.created CREATED 19.99 USD`,
      `${at} intent.success SUCCESS 19.99 USD, card ${card}`,
      `${at} subscription.cycle_charged ACTIVE 19.99 USD, cycle ${cycle}, ${left} left, next ${next}`,
    ],
    reads: ['ACTIVE', left, next, next, card],
  };
}

export const CHARGES: readonly string[] = [
  ...['1', '2', '3', '4'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
  'cycle 5 succeeded 1999 usd, disputed',
  ...['6', '7'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
  'cycle 8 failed 1999 usd, authentication_required',
  ...['8', '9', '10', '11', '12'].map((cycle) => `cycle ${cycle} succeeded 1999 usd`),
];

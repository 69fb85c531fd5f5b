// The demo of a merchant's commands on a running subscription, each step with its expected result.

import { openPage } from '../client/browser.ts';
import type { MerchantClient } from '../client/merchant-client.ts';
import { MONTHLY } from '../client/monthly.ts';
import { payOn } from '../client/payer.ts';
import { waitFor } from '../client/wait-for.ts';
import { advanceTestClock, createTestClock } from '../client/test-clock.ts';
import { minuteText, print, styled } from '../client/terminal.ts';
import { refusalOf } from './check.ts';
import { ADVANCE_WITHIN_MS, at, EVENTS_WITHIN_MS } from './run.ts';
import type { DemoRun } from './run.ts';
import { printStep } from './timeline.ts';
import { unlocked } from './unlocked.ts';

interface OperationsRun extends DemoRun {
  readonly subscriptionId: string;
  readonly testClockId: string;
}

interface Step {
  readonly at: string;
  readonly note: string;
  /** The amount charged in this step, or `declined`, as printed. */
  readonly charged?: string;
  readonly run?: (merchant: MerchantClient, subscriptionId: string) => Promise<unknown>;
  readonly answer?: object;
  readonly reads: { status: string; nextPaymentDate: number | null; remainingCycleCount: number };
}

const post =
  (path: string, fields: object = {}) =>
  (merchant: MerchantClient, subscriptionId: string): Promise<unknown> =>
    merchant.post(path, { subscriptionId, ...fields });
const reads = (status: string, next: string | null, remainingCycleCount: number) => ({
  status,
  nextPaymentDate: next === null ? null : at(next),
  remainingCycleCount,
});

const ORDER = {
  ...MONTHLY,
  productPage: { name: 'Tea Club', description: 'One tea a month.' },
} as const;
const STARTS_AT = '2027-02-10 12:00';

/** Checked after each step: the answer and the subscription; at the end the events and the gateway's record. */
const STEPS: readonly Step[] = [
  {
    at: STARTS_AT,
    note: 'paid on the hosted page',
    charged: '19.99 USD',
    reads: reads('ACTIVE', '2027-03-10 12:00', 11),
  },
  {
    at: STARTS_AT,
    note: 'edit: 24.99 USD from the next payment on',
    run: post('/subscription/edit', { newAmount: 2_499 }),
    reads: reads('ACTIVE', '2027-03-10 12:00', 11),
  },
  {
    at: '2027-03-10 12:00',
    note: 'the month’s payment',
    charged: '24.99 USD',
    reads: reads('ACTIVE', '2027-04-10 12:00', 10),
  },
  {
    at: '2027-03-10 12:00',
    note: 'edit: the next payment on 20 April, and monthly from there',
    run: post('/subscription/edit', { newNextPaymentDate: at('2027-04-20 12:00') }),
    reads: reads('ACTIVE', '2027-04-20 12:00', 10),
  },
  {
    at: '2027-04-20 12:00',
    note: 'the month’s payment',
    charged: '24.99 USD',
    reads: reads('ACTIVE', '2027-05-20 12:00', 9),
  },
  {
    at: '2027-04-20 12:00',
    note: 'pause: nothing is charged',
    run: post('/subscription/merchant/pause'),
    reads: reads('PAUSED', null, 9),
  },
  {
    at: '2027-06-15 12:00',
    note: 'unpause, two months later: the next payment on 1 July',
    run: post('/subscription/merchant/unpause', { newNextPaymentDate: at('2027-07-01 12:00') }),
    reads: reads('ACTIVE', '2027-07-01 12:00', 9),
  },
  {
    at: '2027-07-01 12:00',
    note: 'the month’s payment',
    charged: '24.99 USD',
    reads: reads('ACTIVE', '2027-08-01 12:00', 8),
  },
  {
    at: '2027-08-01 12:00',
    note: 'the bank declines: insufficient_funds',
    charged: 'declined',
    reads: reads('UNPAID', '2027-08-01 16:00', 8),
  },
  {
    at: '2027-08-01 13:00',
    note: 'manual retry: declined again',
    charged: 'declined',
    run: post('/subscription/manual-retry'),
    answer: {
      success: false,
      minManualRetryDate: '2027-08-01T17:00:00.000Z',
      status: 'UNPAID',
      errorCode: 'insufficient_funds',
    },
    reads: reads('UNPAID', '2027-08-01 16:00', 8),
  },
  {
    at: '2027-08-01 16:00',
    note: 'the automatic retry does not wait for the cooldown',
    charged: 'declined',
    reads: reads('UNPAID', '2027-08-02 00:00', 8),
  },
  {
    at: '2027-08-01 16:59',
    note: 'manual retry after 3 h 59 min: refused until 17:00',
    run: post('/subscription/manual-retry'),
    answer: {
      refused: 'bad_request',
      why: 'Another manual retry is possible from 2027-08-01T17:00:00.000Z.',
    },
    reads: reads('UNPAID', '2027-08-02 00:00', 8),
  },
  {
    at: '2027-08-01 17:00',
    note: 'manual retry after 4 h: allowed, and paid',
    charged: '24.99 USD',
    run: post('/subscription/manual-retry'),
    answer: {
      success: true,
      minManualRetryDate: '2027-08-01T21:00:00.000Z',
      status: 'ACTIVE',
      errorCode: null,
    },
    reads: reads('ACTIVE', '2027-09-01 12:00', 7),
  },
  {
    at: '2027-08-01 17:00',
    note: 'one-time charge, outside the cycles',
    charged: '5.00 USD',
    run: post('/subscription/merchant/one-time-charge', { amount: 500, currency: 'USD' }),
    answer: { status: 'SUCCESS', errorCode: null, errorMessage: null },
    reads: reads('ACTIVE', '2027-09-01 12:00', 7),
  },
];

const month = (minute: string): string[] => [
  `${minute} intent.created 2499`,
  `${minute} intent.success 2499`,
  `${minute} subscription.cycle_charged 2499`,
];

const EVENTS: readonly string[] = [
  '2027-02-10 12:00 intent.created 1999',
  '2027-02-10 12:00 subscription.created 1999',
  '2027-02-10 12:00 intent.checkout_opened 1999',
  '2027-02-10 12:00 intent.success 1999',
  '2027-02-10 12:00 subscription.cycle_charged 1999',
  '2027-02-10 12:00 subscription.active 1999',
  ...month('2027-03-10 12:00'),
  ...month('2027-04-20 12:00'),
  '2027-04-20 12:00 subscription.paused 2499',
  '2027-06-15 12:00 subscription.active 2499',
  ...month('2027-07-01 12:00'),
  '2027-08-01 12:00 intent.created 2499',
  '2027-08-01 12:00 intent.failed 2499',
  '2027-08-01 12:00 subscription.unpaid 2499',
  '2027-08-01 13:00 intent.failed 2499',
  '2027-08-01 16:00 intent.failed 2499',
  '2027-08-01 17:00 intent.success 2499',
  '2027-08-01 17:00 subscription.cycle_charged 2499',
  '2027-08-01 17:00 subscription.active 2499',
  '2027-08-01 17:00 intent.created 500',
  '2027-08-01 17:00 intent.success 500',
];

const BOOK: readonly string[] = [
  'succeeded 1999 USD',
  'succeeded 2499 USD',
  'succeeded 2499 USD',
  'succeeded 2499 USD',
  'declined 2499 USD',
  'declined 2499 USD',
  'declined 2499 USD',
  'succeeded 2499 USD',
  'succeeded 500 USD',
];

export async function operate(demo: DemoRun): Promise<void> {
  const { merchant, start, differences } = demo;
  print();
  print(styled('bold', '  A merchant’s commands'));
  const testClockId = await createTestClock(merchant, at(STARTS_AT));
  const { subscriptionId, fwdUrl } = await merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', { ...ORDER, testClockId });
  const run: OperationsRun = { ...demo, subscriptionId, testClockId };
  const { title } = await payOn(unlocked(await openPage(fwdUrl)));
  differences.equal('Tea Club: result page', 'Thank you: your payment was received', title);

  for (const step of STEPS) {
    // Three declines: the scheduled charge, the manual retry and the automatic retry.
    if (step.at === '2027-08-01 12:00') {
      await start.declineNext(subscriptionId, 'insufficient_funds', 3);
    }
    await runStep(run, step);
  }
  await expectEvents(run);
  const book = await start.book(subscriptionId);
  const booked = book.map(
    ({ outcome, amountMinor, currency }) => `${outcome} ${amountMinor} ${currency}`,
  );
  differences.equal("Tea Club: the gateway's record of charges", BOOK, booked);
}

async function runStep(run: OperationsRun, step: Step): Promise<void> {
  const { merchant, subscriptionId, testClockId, differences } = run;
  const where = `Tea Club, ${step.at}, ${step.note}`;
  const clock = await merchant.get<{ now: number }>(`/test-clock/${testClockId}`);
  if (at(step.at) > clock.now) {
    await advanceTestClock(merchant, testClockId, at(step.at), ADVANCE_WITHIN_MS);
  }
  const answer = await (step.run ?? (() => Promise.resolve({})))(merchant, subscriptionId).catch(
    refusalOf,
  );
  if (step.answer) differences.fields(where, step.answer, answer as object);
  else differences.equal(where, {}, answer);
  const read = await merchant.get<{ status: string }>(
    `/subscription/get-subscription/${subscriptionId}`,
  );
  differences.fields(where, step.reads, read);
  printStep({ date: step.at, charged: step.charged ?? '', status: read.status, text: step.note });
}

async function expectEvents({
  receiver,
  subscriptionId,
  differences,
}: OperationsRun): Promise<void> {
  const ours = () =>
    receiver.received.filter(({ event }) => event['subscriptionId'] === subscriptionId);
  const received = await waitFor('webhooks', EVENTS_WITHIN_MS, () => {
    const all = ours();
    return all.length >= EVENTS.length ? all : undefined;
  }).catch(ours);
  const lines = received.map(
    ({ event }) => `${minuteText(event.eventTime)} ${event.eventType} ${String(event['amount'])}`,
  );
  differences.equal('Tea Club: events', EVENTS, lines);
  const unsigned = received.filter(
    (webhook) => !webhook.isStandardSignatureValid || !webhook.isXpaySignatureValid,
  );
  differences.equal('Tea Club: events without valid signatures', 0, unsigned.length);
}

import { openPage } from '../../client/browser.ts';
import { PAYING_CARD } from '../../client/payer.ts';
import type { ReceivedWebhook } from '../../client/webhook-receiver.ts';
import { controlDouble } from '../../client/double-control.ts';
import { minuteText } from '../../client/terminal.ts';
import { advanceTestClock, createTestClock } from '../../client/test-clock.ts';
import { ADVANCE_WITHIN_MS, at, eventsOf, unlessStopped } from '../run.ts';
import type { DemoRun, DemoYear } from '../run.ts';
import { printEvents, printHeading } from '../timeline.ts';
import { unlocked } from '../unlocked.ts';
import { CALLBACK_URL, chargesOf, expectInTimeline } from './acts.ts';
import type { StripeRun } from './acts.ts';
import * as expected from './steps.ts';
import type { StripeStep } from './steps.ts';

/** Adds every difference to `demo.differences`. */
export async function liveThroughStripeYear(demo: DemoRun): Promise<DemoYear> {
  const { merchant, receiver, differences, start } = demo;
  const testClockId = await createTestClock(merchant, at(expected.STARTS_AT));
  const { subscriptionId, customerId, fwdUrl } = await createSubscription(demo, testClockId);
  // The event of a changed card names the customer and no subscription.
  const isOurs = (event: ReceivedWebhook['event']) =>
    event['subscriptionId'] === subscriptionId || event['customerId'] === customerId;
  const events = eventsOf(receiver, differences, isOurs);
  const checkout = unlocked(await openPage(fwdUrl));
  const double = controlDouble(start.demo);
  const own = { double, subscriptionId, testClockId, events, checkout, opened: {} };

  printHeading();
  await unlessStopped(runYear({ ...demo, ...own }));
  return { subscriptionId, events: events.seen() };
}

async function createSubscription({ merchant }: DemoRun, testClockId: string) {
  const created = await merchant.post<{ subscriptionId: string; fwdUrl: string }>(
    '/subscription/create',
    {
      ...expected.ORDER,
      testClockId,
      customerDetails: { name: PAYING_CARD.name, email: 'ada@example.com' },
      callbackUrl: CALLBACK_URL,
      receiptId: 'order-1001',
      productPage: { name: 'Garden Letters', description: 'One letter a month.' },
    },
  );
  const path = `/subscription/get-subscription/${created.subscriptionId}`;
  return { ...created, ...(await merchant.get<{ customerId: string }>(path)) };
}

async function runYear(run: StripeRun): Promise<void> {
  const { checkout, differences, merchant, receiver, subscriptionId, testClockId } = run;
  differences.equal('the checkout: title', 'Garden Letters', checkout.title);
  await expectEvents(run, expected.BEFORE_PAYING);
  for (const step of expected.STEPS) await runStep(run, step);

  const longAfter = at(expected.LONG_AFTER);
  await advanceTestClock(merchant, testClockId, longAfter, ADVANCE_WITHIN_MS);
  differences.equal('events in the year after', 0, run.events.unseen());
  const sequences = receiver.received
    .filter(({ event }) => event['subscriptionId'] === subscriptionId)
    .map(({ event }) => event.sequence);
  const inOrder = sequences.map((_, index) => index + 1);
  differences.equal('the sequence numbers of the subscription', inOrder, sequences);
  const charges = (await chargesOf(run)).map(
    ({ metadata, status, amountMinor, currency, code, disputed, refundedMinor }) =>
      `cycle ${String(metadata['cycleNumber'])} ${status} ${amountMinor} ${currency}` +
      (code === null ? '' : `, ${code}`) +
      (disputed ? ', disputed' : '') +
      (refundedMinor === 0 ? '' : `, refunded ${refundedMinor}`),
  );
  differences.equal("the double's record of charges", expected.CHARGES, charges);
}

async function runStep(run: StripeRun, step: StripeStep): Promise<void> {
  const { merchant, subscriptionId, testClockId, differences } = run;
  await step.before?.(run);
  const clock = await merchant.get<{ now: number }>(`/test-clock/${testClockId}`);
  if (at(step.at) > clock.now) {
    await advanceTestClock(merchant, testClockId, at(step.at), ADVANCE_WITHIN_MS);
  }
  await step.act?.(run);
  await expectEvents(run, step.events);
  if (step.timeline !== undefined) await expectInTimeline(run, step.timeline);
  const [status, remainingCycleCount, next, end, lastFourDigit] = step.reads;
  const read = await merchant.get<{ paymentMetadata: { cardMetadata: object } }>(
    `/subscription/get-subscription/${subscriptionId}`,
  );
  const nextPaymentDate = next === null ? null : at(next);
  differences.fields(
    `the subscription on ${step.at}`,
    { status, remainingCycleCount, nextPaymentDate, currentPeriodEnd: at(end), lastFourDigit },
    { ...read, ...read.paymentMetadata.cardMetadata },
  );
}

async function expectEvents(run: StripeRun, lines: readonly string[]): Promise<void> {
  const { differences, events } = run;
  await events.expect(lines, (received) => {
    printEvents(received);
    for (const [index, webhook] of received.entries()) {
      const { event, headers } = webhook;
      const where = `event ${events.seen() + index + 1}`;
      differences.equal(where, lines[index] ?? 'no event', lineOf(event));
      differences.equal(`${where}: webhook-id`, event.eventId, headers['webhook-id']);
      differences.equal(`${where}: sha256`, true, webhook.isStandardSignatureValid);
      differences.equal(`${where}: sha512`, true, webhook.isXpaySignatureValid);
    }
  });
}

function lineOf(event: ReceivedWebhook['event']): string {
  const body = event as unknown as EventFields;
  const time = body.eventType.startsWith('setup_method.')
    ? expected.REAL_TIME
    : minuteText(body.eventTime);
  const money = (minor: number): string => `${(minor / 100).toFixed(2)} ${body.currency}`;
  const parts = [
    `${time} ${body.eventType} ${body.status}` +
      (body.amount === undefined ? '' : ` ${money(body.amount)}`),
    body.cycleNumber && `cycle ${body.cycleNumber}`,
    body.remainingCycleCount !== undefined && `${body.remainingCycleCount} left`,
    body.nextPaymentDate && `next ${minuteText(body.nextPaymentDate)}`,
    body.card && `card ${body.card.lastFourDigit}`,
    body.errorCode,
    body.disputedAmount &&
      `${body.disputeStatus} dispute of ${money(body.disputedAmount)}: ${body.disputeReason}`,
    body.failedAmount && `${money(body.failedAmount)} not refunded`,
  ];
  return parts.filter(Boolean).join(', ');
}

interface EventFields {
  readonly eventType: string;
  readonly eventTime: number;
  readonly status: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly cycleNumber?: number;
  readonly remainingCycleCount?: number;
  readonly nextPaymentDate?: number | null;
  readonly card?: { readonly lastFourDigit: string } | null;
  readonly errorCode?: string | null;
  readonly disputedAmount?: number;
  readonly disputeStatus?: string;
  readonly disputeReason?: string;
  readonly failedAmount?: number;
}

import { openPage } from '../client/browser.ts';
import { payOn, PAYING_CARD } from '../client/payer.ts';
import type { ReceivedWebhook } from '../client/webhook-receiver.ts';
import { advanceTestClock, createTestClock } from '../client/test-clock.ts';
import { minuteText } from '../client/terminal.ts';
import * as expected from './expected.ts';
import type { ExpectedEvent, Step } from './expected.ts';
import { ADVANCE_WITHIN_MS, eventsOf, unlessStopped } from './run.ts';
import type { DemoRun, DemoYear, EventsOfOne } from './run.ts';
import { printEvents, printHeading, printNote } from './timeline.ts';
import { unlocked } from './unlocked.ts';

/** The result page links to this URL. The demo does not open it, so no server needs to answer there. */
const CALLBACK_URL = 'https://shop.example/thanks?from=checkout';

interface YearRun extends DemoRun {
  readonly subscriptionId: string;
  readonly events: EventsOfOne;
}

export async function liveThroughYear(demo: DemoRun): Promise<DemoYear> {
  const { merchant, receiver, differences } = demo;
  const testClockId = await createTestClock(merchant, expected.STARTS_AT);
  const created = await merchant.post<{ subscriptionId: string; fwdUrl: string }>(
    '/subscription/create',
    {
      ...expected.ORDER,
      testClockId,
      customerDetails: { name: PAYING_CARD.name, email: 'ada@example.com' },
      callbackUrl: CALLBACK_URL,
      receiptId: 'order-1001',
      productPage: { name: 'Garden Letters', description: 'One letter a month.' },
      metadata: { plan: 'monthly' },
    },
  );
  const { subscriptionId } = created;
  const isOurs = (event: ReceivedWebhook['event']) => event['subscriptionId'] === subscriptionId;
  const events = eventsOf(receiver, differences, isOurs);

  printHeading();
  await unlessStopped(runYear({ ...demo, subscriptionId, events }, created.fwdUrl, testClockId));
  return { subscriptionId, events: events.seen() };
}

async function runYear(run: YearRun, fwdUrl: string, testClockId: string): Promise<void> {
  const { merchant, start, subscriptionId } = run;
  await payOnHostedPage(run, fwdUrl);
  for (const step of expected.MONTHS) {
    if (step.note !== undefined) printNote(step.note);
    if (step.declineCode !== undefined) {
      await start.declineNext(subscriptionId, step.declineCode, 1);
    }
    await advanceTestClock(merchant, testClockId, step.to, ADVANCE_WITHIN_MS);
    await expectStep(run, step);
  }
  await expectNothingFurther(run, testClockId);
}

async function payOnHostedPage(run: YearRun, fwdUrl: string): Promise<void> {
  const { differences } = run;
  const page = unlocked(await openPage(fwdUrl));
  differences.equal('the hosted page: title', 'Garden Letters', page.title);
  differences.equal(
    'the hosted page: button',
    'Save card and start free trial',
    page.forms[0]?.button,
  );
  await expectEvents(run, expected.BEFORE_PAYING);

  const result = await payOn(page);
  differences.equal('the result page: title', 'Your free trial has started', result.title);
  const callback =
    `${CALLBACK_URL}&subscription_id=${run.subscriptionId}` +
    '&status=TRIALING&receipt_id=order-1001';
  differences.equal('the result page: link', callback, result.links[0]?.url);
  printNote(`the payer saved a card on the hosted page: "${result.title}"`);
  await expectStep(run, expected.TRIALING);
}

async function expectStep(run: YearRun, step: Step): Promise<void> {
  await expectEvents(run, step.events);
  const { merchant, subscriptionId, differences } = run;
  const read = await merchant.get<object>(`/subscription/get-subscription/${subscriptionId}`);
  differences.fields(`the subscription on ${minuteText(step.to)}`, step.subscription, read);
}

async function expectEvents(run: YearRun, events: readonly ExpectedEvent[]): Promise<void> {
  const types = events.map(({ eventType }) => eventType);
  await run.events.expect(types, (received) => {
    printEvents(received);
    const first = run.events.seen() + 1;
    for (const [index, webhook] of received.entries()) {
      expectEvent(run, first + index, webhook, events[index]);
    }
  });
}

function expectEvent(
  { differences }: YearRun,
  sequence: number,
  webhook: ReceivedWebhook,
  wanted: ExpectedEvent | undefined,
): void {
  const where = `event ${sequence}`;
  if (wanted === undefined) {
    differences.equal(where, 'no event', webhook.event.eventType);
    return;
  }
  const { event } = webhook;
  differences.fields(
    `${where}, ${wanted.eventType} of ${minuteText(wanted.eventTime)}`,
    { ...wanted, sequence, currency: 'USD', webhookId: event.eventId, sha256: true, sha512: true },
    {
      ...event,
      webhookId: webhook.headers['webhook-id'],
      sha256: webhook.isStandardSignatureValid,
      sha512: webhook.isXpaySignatureValid,
    },
  );
}

/** Advances the test clock to 13 months after the subscription's end. No event may arrive, no charge may be made. */
async function expectNothingFurther(run: YearRun, testClockId: string): Promise<void> {
  const { merchant, start, subscriptionId, differences } = run;
  await advanceTestClock(merchant, testClockId, expected.LONG_AFTER, ADVANCE_WITHIN_MS);
  differences.equal('events in the year after', 0, run.events.unseen());

  const book = await start.book(subscriptionId);
  const outcomes = book.map(({ outcome, code }) =>
    code === null ? outcome : `${outcome}: ${code}`,
  );
  differences.equal(
    "the gateway's record of charges",
    [
      ...Array.from({ length: 7 }, () => 'succeeded'),
      'declined: insufficient_funds',
      ...Array.from({ length: 5 }, () => 'succeeded'),
    ],
    outcomes,
  );
  for (const { amountMinor, currency } of book) {
    differences.equal(
      "an amount in the gateway's record",
      '1999 USD',
      `${amountMinor} ${currency}`,
    );
  }
}

import { openPage } from '../../test/support/browser.ts';
import type { MerchantClient } from '../../test/support/merchant-client.ts';
import { payOn, PAYING_CARD } from '../../test/support/payer.ts';
import type { ReceivedWebhook, WebhookReceiver } from '../../test/support/webhook-receiver.ts';
import { waitFor } from '../client/patience.ts';
import type { RunningStart } from '../client/running-start.ts';
import { advanceTestClock, createTestClock } from '../client/test-clock.ts';
import { minuteText } from '../client/terminal.ts';
import type { Differences } from './check.ts';
import * as expected from './expected.ts';
import type { ExpectedEvent, Step } from './expected.ts';
import { printEvents, printHeading, printNote } from './timeline.ts';

/** Everything due in a month happens well within this on a busy machine. */
const ADVANCE_WITHIN_MS = 60_000;
const EVENTS_WITHIN_MS = 30_000;

/** Where the payer's browser goes afterwards; nobody needs to be there. */
const CALLBACK_URL = 'https://shop.example/thanks?from=checkout';

export interface DemoYear {
  readonly start: RunningStart;
  readonly merchant: MerchantClient;
  readonly receiver: WebhookReceiver;
  readonly differences: Differences;
}

/** What the story is told about from step to step. */
interface Story extends DemoYear {
  readonly subscriptionId: string;
  /** How many events have been looked at. */
  seen: number;
}

/** Nothing that follows would mean anything; the differences say why. */
class StoryEnds extends Error {}

/**
 * A year of one subscription, told as it happens; what is not as expected goes to `differences`.
 * Answers its id and how many events came.
 */
export async function liveThroughYear(
  year: DemoYear,
): Promise<{ subscriptionId: string; events: number }> {
  const { merchant } = year;
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
  const story: Story = { ...year, subscriptionId, seen: 0 };

  printHeading();
  try {
    await live(story, created.fwdUrl, testClockId);
  } catch (error) {
    if (!(error instanceof StoryEnds)) throw error;
  }
  return { subscriptionId, events: story.seen };
}

async function live(story: Story, fwdUrl: string, testClockId: string): Promise<void> {
  const { merchant, start, subscriptionId } = story;
  await payOnHostedPage(story, fwdUrl);
  for (const step of expected.MONTHS) {
    if (step.note !== undefined) printNote(step.note);
    if (step.declineCode !== undefined) {
      await start.declineNext(subscriptionId, step.declineCode, 1);
    }
    await advanceTestClock(merchant, testClockId, step.to, ADVANCE_WITHIN_MS);
    await expectStep(story, step);
  }
  await expectNothingFurther(story, testClockId);
}

/** The payer's part: nothing but the URL and the words on the page. */
async function payOnHostedPage(story: Story, fwdUrl: string): Promise<void> {
  const { differences } = story;
  const page = await openPage(fwdUrl);
  differences.equal('the hosted page: title', 'Garden Letters', page.title);
  differences.equal('the hosted page: button', 'Start free trial', page.forms[0]?.button);
  await expectEvents(story, expected.BEFORE_PAYING);

  const result = await payOn(page);
  differences.equal('the result page: title', 'Your free trial has started', result.title);
  const callback =
    `${CALLBACK_URL}&subscription_id=${story.subscriptionId}` +
    '&status=TRIALING&receipt_id=order-1001';
  differences.equal('the result page: leads on to', callback, result.links[0]?.url);
  printNote(`the payer saved a card on the hosted page: "${result.title}"`);
  await expectStep(story, expected.TRIALING);
}

async function expectStep(story: Story, step: Step): Promise<void> {
  await expectEvents(story, step.events);
  const { merchant, subscriptionId, differences } = story;
  const read = await merchant.get<object>(`/subscription/get-subscription/${subscriptionId}`);
  differences.fields(`the subscription on ${minuteText(step.to)}`, step.subscription, read);
}

async function expectEvents(story: Story, events: readonly ExpectedEvent[]): Promise<void> {
  const wanted = story.seen + events.length;
  const received = await waitFor('webhooks', EVENTS_WITHIN_MS, () => {
    const all = webhooksOf(story);
    return all.length >= wanted ? all : undefined;
  }).catch(() => webhooksOf(story));
  const news = received.slice(story.seen);
  printEvents(news);
  for (const [index, webhook] of news.entries()) {
    expectEvent(story, story.seen + index + 1, webhook, events[index]);
  }
  story.seen = received.length;
  const missing = events.slice(news.length).map(({ eventType }) => eventType);
  if (missing.length > 0) {
    story.differences.list.push(
      `${missing.join(', ')} did not come within ${EVENTS_WITHIN_MS / 1_000} s, and the story ` +
        'cannot go on without',
    );
    throw new StoryEnds();
  }
}

function expectEvent(
  { differences }: Story,
  sequence: number,
  webhook: ReceivedWebhook,
  wanted: ExpectedEvent | undefined,
): void {
  const where = `event ${sequence}`;
  if (wanted === undefined) {
    differences.equal(where, 'not there', webhook.event.eventType);
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

/** More than a year after the end: no event, and the gateway's book as it was. */
async function expectNothingFurther(story: Story, testClockId: string): Promise<void> {
  const { merchant, start, subscriptionId, differences } = story;
  await advanceTestClock(merchant, testClockId, expected.LONG_AFTER, ADVANCE_WITHIN_MS);
  differences.equal('events in the year after', 0, webhooksOf(story).length - story.seen);

  const book = await start.book(subscriptionId);
  const outcomes = book.map(({ outcome, code }) =>
    code === null ? outcome : `${outcome}: ${code}`,
  );
  differences.equal(
    "the gateway's own book",
    [
      ...Array.from({ length: 7 }, () => 'succeeded'),
      'declined: insufficient_funds',
      ...Array.from({ length: 5 }, () => 'succeeded'),
    ],
    outcomes,
  );
  for (const { amountMinor, currency } of book) {
    differences.equal("an amount in the gateway's book", '1999 USD', `${amountMinor} ${currency}`);
  }
}

/** Other subscriptions of the demo merchant may be told of at the same endpoint. */
function webhooksOf({ receiver, subscriptionId }: Story): ReceivedWebhook[] {
  return receiver.received.filter(({ event }) => event['subscriptionId'] === subscriptionId);
}

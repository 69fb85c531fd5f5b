// Takes a new subscription through the steps of a story, and checks after each step the events and the subscription.
// No expected value is computed from the service's answers.

import { parse } from 'node-html-parser';
import type { Client, CreateSubscriptionRequest } from '../../../client/index.ts';
import { openPage } from '../client/browser.ts';
import type { Page } from '../client/browser.ts';
import { MONTHLY } from '../client/monthly.ts';
import type { RunningStart } from '../client/running-start.ts';
import { advanceTestClock, createTestClock } from '../client/test-clock.ts';
import { waitFor } from '../client/wait-for.ts';
import type { ReceivedWebhook, WebhookReceiver } from '../client/webhook-receiver.ts';
import type { Differences } from './check.ts';
import { lineOf, renewalLines } from './event-line.ts';
import { printEvents, printHeading, printNote } from './timeline.ts';

/** Time limit in ms of one advance of the test clock, enough for all events of a month on a busy machine. */
const ADVANCE_WITHIN_MS = 60_000;
const EVENTS_WITHIN_MS = 30_000;

/** The result page links to this URL. The demo does not open it, so no server needs to answer there. */
const CALLBACK_URL = 'https://shop.example/thanks?from=checkout';
const RECEIPT_ID = 'order-1001';

export interface DemoRun {
  readonly start: RunningStart;
  readonly merchant: Client;
  readonly receiver: WebhookReceiver;
  readonly differences: Differences;
}

/** `checkout`: the open page on which the payer enters a card. */
export interface StoryRun extends DemoRun {
  readonly story: Story;
  readonly subscriptionId: string;
  readonly testClockId: string;
  readonly checkout: Page;
}

export type Act = (run: StoryRun) => Promise<unknown>;

export interface Step {
  /** The time to which the test clock is advanced. */
  readonly at: string;
  readonly note?: string;
  /** Runs before the test clock is advanced, and `act` after it. */
  readonly before?: Act;
  readonly act?: Act;
  readonly events: readonly string[];
  /** The expected fields of a read of the subscription after the step. */
  readonly reads: readonly [
    status: string,
    remainingCycleCount: number,
    nextPaymentDate: string | null,
    currentPeriodEnd: string,
    card: string,
  ];
}

/** A renewal that is paid at its date. `more`: further events. */
export function renewed(cycle: number, at: string, next: string, ...more: string[]): Step {
  return {
    at,
    events: [...renewalLines(at, cycle, next), ...more],
    reads: ['ACTIVE', 12 - cycle, next, next, '4242'],
  };
}

export interface Story {
  readonly product: { readonly name: string; readonly description: string };
  readonly order?: Partial<CreateSubscriptionRequest>;
  readonly startsAt: string;
  /** The events of the creation of the subscription and of the first opening of its page. */
  readonly opened: readonly string[];
  readonly steps: readonly Step[];
  /** After this time, no event has arrived and no charge was made since the last step. */
  readonly longAfter: string;
  readonly charges: readonly string[];
  readonly readCharges: (run: StoryRun) => Promise<string[]>;
}

export interface PlayedStory {
  readonly subscriptionId: string;
  /** Number of events that arrived. */
  readonly events: number;
}

/** An expected event is missing, so the steps after it would be meaningless. */
class StoryStopped extends Error {}

/** Adds every difference to `demo.differences`. */
export async function play(demo: DemoRun, story: Story): Promise<PlayedStory> {
  const { merchant } = demo;
  const testClockId = await createTestClock(merchant, at(story.startsAt));
  const { subscriptionId, fwdUrl } = await merchant.createSubscription({
    body: {
      ...MONTHLY,
      ...story.order,
      testClockId,
      callbackUrl: CALLBACK_URL,
      receiptId: RECEIPT_ID,
      productPage: story.product,
    },
  });
  const run = { ...demo, story, subscriptionId, testClockId, checkout: await openCheckout(fwdUrl) };
  printHeading();
  try {
    await playSteps(run);
  } catch (error) {
    if (!(error instanceof StoryStopped)) throw error;
  }
  return { subscriptionId, events: eventsOf(run).length };
}

function at(minute: string): number {
  return Date.parse(`${minute.replace(' ', 'T')}:00.000Z`);
}

/** Checks the page after a payment, and its link to the merchant's site. */
export function expectResult(run: StoryRun, page: Page, title: string, status: string): void {
  const { differences, subscriptionId, story } = run;
  const where = `${story.product.name}, the result page`;
  differences.equal(`${where}: title`, title, page.title);
  const callback = `${CALLBACK_URL}&subscription_id=${subscriptionId}&status=${status}&receipt_id=${RECEIPT_ID}`;
  differences.equal(`${where}: link`, callback, page.links[0]?.url);
}

/** Throws if this machine's address has reached a limit of the hosted pages, with the page's text. */
async function openCheckout(url: string): Promise<Page> {
  const page = await openPage(url);
  if (page.status !== 429) return page;
  const text = parse(page.html).querySelector('p')?.text ?? page.title;
  throw new Error(
    `The hosted pages take no card from this machine now: ${text} Then run npm run demo again.`,
  );
}

async function playSteps(run: StoryRun): Promise<void> {
  const { merchant, differences, testClockId, story } = run;
  const { product, startsAt, longAfter } = story;
  differences.equal('the checkout: title', product.name, run.checkout.title);
  let seen = (await expectEvents(run, story.opened, 0)).length;
  let nowAt = at(startsAt);
  const advance = async (minute: string): Promise<void> => {
    if (at(minute) <= nowAt) return;
    nowAt = at(minute);
    await advanceTestClock(merchant, testClockId, nowAt, ADVANCE_WITHIN_MS);
  };
  for (const step of story.steps) {
    if (step.note !== undefined) printNote(step.note);
    await step.before?.(run);
    await advance(step.at);
    await step.act?.(run);
    const fresh = await expectEvents(run, step.events, seen);
    seen += fresh.length;
    await expectRead(run, step);
  }
  await advance(longAfter);
  const where = product.name;
  differences.equal(`${where}, events until ${longAfter}`, 0, eventsOf(run).length - seen);
  const sequences = eventsOf(run).map(({ event }) => event.sequence);
  const inOrder = sequences.map((_, index) => index + 1);
  differences.equal(`${where}, sequence numbers`, inOrder, sequences);
  const charges = await story.readCharges(run);
  differences.equal(`${where}, the gateway's record of charges`, story.charges, charges);
}

/** All events of the subscription so far, in the order of their arrival. */
function eventsOf({ receiver, subscriptionId }: StoryRun): ReceivedWebhook[] {
  return receiver.received.filter(({ event }) => event['subscriptionId'] === subscriptionId);
}

/** Waits 30 s for the events after the first `seen`, and returns them. Throws {@link StoryStopped} if too few. */
async function expectEvents(
  run: StoryRun,
  lines: readonly string[],
  seen: number,
): Promise<ReceivedWebhook[]> {
  const { differences, story } = run;
  const received = await waitFor('webhooks', EVENTS_WITHIN_MS, () => {
    const all = eventsOf(run);
    return all.length >= seen + lines.length ? all : undefined;
  }).catch(() => eventsOf(run));
  const fresh = received.slice(seen);
  printEvents(fresh);
  for (const [index, webhook] of fresh.entries()) {
    const where = `${story.product.name}, event ${seen + index + 1}`;
    differences.equal(where, lines[index] ?? 'no event', lineOf(webhook.event));
    differences.equal(`${where}: webhook-id`, webhook.event.eventId, webhook.headers['webhook-id']);
    differences.equal(`${where}: sha256`, true, webhook.isStandardSignatureValid);
    differences.equal(`${where}: sha512`, true, webhook.isXpaySignatureValid);
  }
  const missing = lines.slice(fresh.length);
  if (missing.length === 0) return fresh;
  differences.list.push(
    `${missing.join('; ')}: did not arrive within ${EVENTS_WITHIN_MS / 1_000} s, so the demo cannot continue`,
  );
  throw new StoryStopped();
}

async function expectRead(
  { merchant, subscriptionId, differences, story }: StoryRun,
  step: Step,
): Promise<void> {
  const [status, remainingCycleCount, next, end, lastFourDigit] = step.reads;
  const found = await merchant.getSubscription({ path: { subscriptionId } });
  const nextPaymentDate = next === null ? null : at(next);
  differences.fields(
    `${story.product.name}, the subscription on ${step.at}`,
    { status, remainingCycleCount, nextPaymentDate, currentPeriodEnd: at(end), lastFourDigit },
    { ...found, ...found.paymentMetadata?.cardMetadata },
  );
}

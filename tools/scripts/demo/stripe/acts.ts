// The actions of the payer, the payer's bank, the card network and the merchant in the demo that takes a subscription
// through a year at the Stripe double.

import type { ListedCharge } from '../../../stripe-double/charge-list.ts';
import { openPage, submitForm } from '../../client/browser.ts';
import type { Page } from '../../client/browser.ts';
import { payOn } from '../../client/payer.ts';
import { controlDouble } from '../../client/double-control.ts';
import { waitFor } from '../../client/wait-for.ts';
import { refusalOf } from '../check.ts';
import { expectResult } from '../story.ts';
import type { Act, StoryRun } from '../story.ts';
import { printNote } from '../timeline.ts';

/** Time limit in ms of a page that waits for an outcome, and of an entry in the timeline. */
const SHOWN_WITHIN_MS = 30_000;

async function chargesOf({ start, subscriptionId }: StoryRun): Promise<ListedCharge[]> {
  const found: ListedCharge[] = [];
  for await (const page of controlDouble(start.demo).charges()) {
    found.push(...page.filter(({ metadata }) => metadata['subscriptionId'] === subscriptionId));
  }
  return found;
}

/** The double's record of the subscription's charges. */
export async function chargeLines(run: StoryRun): Promise<string[]> {
  return (await chargesOf(run)).map(
    ({ metadata, status, amountMinor, currency, code, disputed, refundedMinor }) =>
      `cycle ${String(metadata['cycleNumber'])} ${status} ${amountMinor} ${currency}` +
      (code === null ? '' : `, ${code}`) +
      (disputed ? ', disputed' : '') +
      (refundedMinor === 0 ? '' : `, refunded ${refundedMinor}`),
  );
}

function order({ start }: StoryRun, route: string, fields: object): Promise<unknown> {
  return controlDouble(start.demo).order(route, fields);
}

async function chargeOf(run: StoryRun, cycleNumber: number): Promise<ListedCharge> {
  const charge = (await chargesOf(run)).find(
    ({ metadata, status }) =>
      metadata['cycleNumber'] === String(cycleNumber) && status === 'succeeded',
  );
  if (charge === undefined) throw new Error(`The double has no payment of cycle ${cycleNumber}.`);
  return charge;
}

export async function payOnStripesPage(run: StoryRun): Promise<void> {
  const { checkout, differences, start } = run;
  const leaving = await payOn(checkout);
  differences.equal('leaving for Stripe: title', 'Continue to Stripe', leaving.title);
  const cardPage = await follow(leaving);
  differences.equal(
    'the card page: its site',
    start.demo.stripeDouble?.url,
    new URL(cardPage.url).origin,
  );
  differences.equal('the card page: button', 'Save card', cardPage.forms[0]?.button);
  printNote(`the checkout leads to Stripe's card page, ${new URL(cardPage.url).origin}`);
  const result = await payOn(cardPage);
  differences.equal('the result page: URL', checkout.url, result.url);
  expectResult(run, result, PAID_TITLE, 'ACTIVE');
  printNote(`the payer enters a card there and is sent back: "${result.title}"`);
}

/** The card network gives the payer a new card, for example after an expiry, and reports the card to Stripe. */
export async function replaceCardByNetwork(run: StoryRun): Promise<void> {
  const { paymentMethodId } = await chargeOf(run, 1);
  const card = { lastFour: '1881', expiryMonth: 7, expiryYear: 2037 };
  await order(run, 'cards', { paymentMethodId, ...card });
  printNote('10 April: the card network replaces the card …4242 by …1881, without the payer');
  printNote('(this event has the real time: a payment method has no test clock)');
}

/** The payer disputes the payment of May, and the bank decides for the merchant. */
export function disputeOfMay(): { open: Act; win: Act } {
  let disputeId = '';
  return {
    open: async (run) => {
      const { id: chargeId } = await chargeOf(run, 5);
      const opened = await order(run, 'disputes', { chargeId, reason: 'fraudulent' });
      ({ disputeId } = opened as { disputeId: string });
      printNote("10 June: the payer disputes May's payment at the bank");
      await expectInTimeline(run, 'a payment is disputed, 19.99 USD (reason: fraudulent)');
    },
    win: async (run) => {
      await order(run, 'disputes/close', { disputeId, status: 'won' });
      printNote('20 July: the bank decides the dispute for the merchant');
      await expectInTimeline(
        run,
        'the dispute of a payment was won, 19.99 USD (reason: fraudulent)',
      );
    },
  };
}

export async function refundPaymentOfJuly(run: StoryRun): Promise<void> {
  const { merchant, differences } = run;
  const { id: chargeId, metadata } = await chargeOf(run, 7);
  await order(run, 'refunds/pending', { chargeId });
  const answer = await merchant
    .post('/payments/merchant/refund', { xIntentId: metadata['intentId'] })
    .catch(refusalOf);
  const why =
    'The gateway has accepted the refund and decides it later, perhaps in days. The event intent.refunded or ' +
    'intent.refund_failed reports the outcome.';
  differences.equal('the refund: answer', { refused: 'payment_outcome_pending', why }, answer);
  printNote("5 August: the merchant refunds July's payment; the refund is pending at Stripe");
}

export async function failRefund(run: StoryRun): Promise<void> {
  const { merchant, differences } = run;
  const { id: chargeId, metadata } = await chargeOf(run, 7);
  await order(run, 'refunds/settle', { chargeId, failure: 'expired_or_canceled_card' });
  printNote('9 August: the refund fails at the bank; the merchant keeps the money');
  const read = await merchant.get<object>(
    `/payments/v2/get-intent/${String(metadata['intentId'])}`,
  );
  differences.fields('the payment of July', { status: 'SUCCESS', refundedAmount: undefined }, read);
}

/** For the renewal, which is declined because the payer is absent, and for the charge that the payer confirms. */
export async function askForPayerAtNextPayment(run: StoryRun): Promise<void> {
  const { subscriptionId } = run;
  await order(run, 'outcomes', { kind: 'authentication', count: 2, metadata: { subscriptionId } });
  printNote('31 August: the bank wants the payer to confirm the payment (3D Secure)');
}

/** The payer opens the link of the event subscription.unpaid, confirms on the bank's page, and comes back. */
export async function confirmWithBank(run: StoryRun): Promise<void> {
  const { differences, receiver, subscriptionId } = run;
  const unpaid = receiver.received.findLast(
    ({ event }) =>
      event['subscriptionId'] === subscriptionId && event.eventType === 'subscription.unpaid',
  );
  const page = await openPage(String(unpaid?.event['updatePaymentMethodLink']));
  const confirm = page.forms.find(({ button }) => button === 'Confirm with your bank');
  if (confirm === undefined) throw new Error(`"${page.title}" does not lead to the bank.`);
  const bank = await follow(await submitForm(page, confirm, {}));
  differences.equal("the bank's page: title", '3D Secure', bank.title);
  differences.equal("the bank's page: button", 'Complete', bank.forms[0]?.button);
  printNote('no automatic retry follows, because only the payer can confirm');
  printNote(
    "1 September: the payer opens the link of subscription.unpaid, which leads to the bank's page",
  );
  const result = await untilDecided(await payOn(bank));
  differences.equal('after the confirmation: title', PAID_TITLE, result.title);
  printNote(`the payer confirms there and is sent back: "${result.title}"`);
}

const PAID_TITLE = 'Thank you: your payment was received';

/** Opens the page to which a page redirects automatically. Throws if the page does not redirect. */
function follow(page: Page): Promise<Page> {
  if (page.refreshUrl === null) throw new Error(`"${page.title}" leads nowhere.`);
  return openPage(page.refreshUrl, page.browser);
}

/** Reloads a page until the payment has an outcome. Throws after 30 s without one. */
function untilDecided(first: Page): Promise<Page> {
  let page = first;
  return waitFor('the outcome of the payment', SHOWN_WITHIN_MS, async () => {
    if (page.title !== 'Your payment is being processed') return page;
    page = await follow(page);
    return undefined;
  });
}

/** Waits until the last entry of the subscription's timeline is `wanted`, in the form `what happened (why)`. */
async function expectInTimeline(run: StoryRun, wanted: string): Promise<void> {
  const last = async (): Promise<string> => {
    const { data } = await run.merchant.get<{ data: { what: string; why: string }[] }>(
      `/subscription/timeline/${run.subscriptionId}`,
    );
    return data.slice(-1).map(({ what, why }) => `${what} (${why})`)[0] ?? '';
  };
  const found = await waitFor('the timeline', SHOWN_WITHIN_MS, async () =>
    (await last()) === wanted ? wanted : undefined,
  ).catch(last);
  run.differences.equal('the last entry of the timeline', wanted, found);
  printNote(`in the subscription's timeline: ${found}`);
}

// The demo of a subscription from a shareable link, in real time.

import { openPage, submitForm } from '../client/browser.ts';
import type { Page } from '../client/browser.ts';
import { payOn } from '../client/payer.ts';
import { minuteText, print, styled } from '../../../cli/command-line/terminal.ts';
import type { DemoRun } from './story.ts';
import { printStep } from './timeline.ts';
import { unlocked } from './unlocked.ts';

const LINK = {
  amount: 900,
  currency: 'EUR',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: {},
  callbackUrl: 'https://shop.example/thanks',
  productPage: { name: 'Print Club', description: 'One print a month.' },
} as const;
const DAY_MS = 86_400_000;

/** One payer opens a link twice and pays once. A second payer must then see that the link is used up. */
export async function sellByLink({ merchant, start, differences }: DemoRun): Promise<void> {
  const { shortUrl, disclaimer } = await merchant.post<{ shortUrl: string; disclaimer: string }>(
    '/subscription/link/merchant/generate-link',
    { ...LINK, expiryDate: Date.now() + DAY_MS },
  );
  print();
  print(styled('bold', '  A subscription link for one use'));
  print(`    ${styled('cyan', shortUrl)}`);
  differences.equal('link: disclaimer', '', disclaimer);
  const now = (): string => minuteText(Date.now());
  const printLinkStep = (text: string, status = '', charged = ''): void =>
    printStep(now(), charged, status, text);

  const first = unlocked(await openPage(shortUrl));
  const again = await openPage(shortUrl, first.browser);
  differences.equal(
    'link: both openings',
    ['Print Club', 'Print Club'],
    [first.title, again.title],
  );
  printLinkStep('opened twice by one payer: opening does not count as a use');

  const checkout = await submitForm(again, formOf(again), {
    Name: 'Ada Example',
    'E-mail address': 'ada@example.com',
  });
  const back = await openPage(shortUrl, first.browser);
  differences.equal('link: checkout of the same browser', checkout.url, back.url);
  printLinkStep('form submitted, and link opened again: the same checkout');

  const result = await payOn(back);
  differences.equal('link: result', 'Thank you: your payment was received', result.title);
  const onward = new URL(result.links[0]?.url ?? 'about:blank').searchParams;
  differences.equal('link: callback status', 'ACTIVE', onward.get('status'));
  const subscriptionId = onward.get('subscription_id') ?? '';
  const booked = await start.book(subscriptionId);
  const charges = booked.map((charge) => `${charge.outcome} ${charge.amountMinor}`);
  differences.equal("link: the gateway's record of charges", ['succeeded 900'], charges);
  printLinkStep('paid', 'ACTIVE', '9.00 EUR');

  const stranger = await openPage(shortUrl);
  differences.equal(
    'link: page for the next payer',
    [410, 'This link cannot be used'],
    [stranger.status, stranger.title],
  );
  printLinkStep('used up for every other payer');

  // The subscription has no test clock: without this cancel the service would charge it again next month.
  differences.equal(
    'link: cancel',
    {},
    await merchant.post('/subscription/merchant/cancel', { subscriptionId }),
  );
  printLinkStep('cancelled at the end of this demo', 'ENDED');
}

function formOf(page: Page): Page['forms'][number] {
  const [form] = page.forms;
  if (!form) throw new Error(`no form on "${page.title}" (${page.status})`);
  return form;
}

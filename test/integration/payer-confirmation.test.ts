import { expect, vi } from 'vitest';
import { onAskingBank as test } from '../support/asking-bank.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { eventually } from '../support/eventually.ts';
import { submitForm as answerBank } from '../support/stripe.ts';

/** A payer confirms an owed payment with the bank, over HTTP, with the Stripe double and its 3-D Secure page. */

const QUESTION = 'Your bank wants you to confirm the payment of US$19.99';

/** The events up to the decline with which the bank asks for the payer's confirmation, and those of this decline. */
const ASKED = [
  'subscription.created',
  'subscription.trialing',
  'intent.created',
  'intent.failed',
  'subscription.unpaid',
  'subscription.retries_exhausted',
];
const PAID = ['intent.success', 'subscription.cycle_charged', 'subscription.active'];

/** Presses the button "Confirm with your bank" and returns the address of the bank's page. */
async function pressConfirm(page: Page): Promise<string> {
  const form = page.forms.find(({ button }) => button === 'Confirm with your bank');
  if (!form) throw new Error(`no such button: ${page.html}`);
  const leave = await submitForm(page, form, {});
  expect([leave.title, leave.links.map(({ text }) => text)]).toEqual([
    'Continue to your bank',
    ['Continue to your bank'],
  ]);
  expect(leave.links[0]?.url).toBe(leave.refreshUrl);
  return leave.refreshUrl ?? '';
}

/**
 * Confirms or refuses on the bank's page, returns to the payer's page, and reloads this page until it shows
 * the outcome.
 */
async function answer(link: string, bankUrl: string, outcome: 'complete' | 'fail'): Promise<Page> {
  const { location } = await answerBank(bankUrl, { outcome });
  const back = new URL(location ?? '');
  expect(back.origin).toBe('https://pay.example');
  let page = await openPage(new URL(link).origin + back.pathname + back.search);
  // A look-up that was due anyway may have shown the outcome already.
  if (page.refreshUrl !== null) expect(page.title).toBe('Your payment is being processed');
  await vi.waitUntil(
    async () => {
      page = await openPage(page.refreshUrl ?? page.url);
      return page.refreshUrl === null;
    },
    { timeout: 60_000, interval: 50 },
  );
  return page;
}

test('a payer who confirms with the bank pays the owed cycle once [D-30, D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const page = await openPage(it.link);
  expect(page.html).toContain(QUESTION);
  const paid = await answer(it.link, await pressConfirm(page), 'complete');
  expect(paid.title).toBe('Thank you: your payment was received');
  expect(paid.html).toContain('The payment of US$19.99 that was due went through.');
  expect(await env.state(it.ref)).toMatchObject({
    status: 'ACTIVE',
    cyclesCharged: 1,
    cooldownUntilAt: null,
    owed: null,
  });
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...ASKED, ...PAID]);
  expect((await openPage(it.link)).html).not.toContain(QUESTION);
  await it.expectNothingFurther();
});

test('a payer who refuses the confirmation pays nothing, sees the refusal on the page, and can try again [D-30, D-33]', async ({
  owing,
}) => {
  const it = await owing();
  const refused = await answer(it.link, await pressConfirm(await openPage(it.link)), 'fail');
  expect([refused.url, refused.alert]).toEqual([
    it.link,
    'The payment was not confirmed, and nothing was charged. You can try again.',
  ]);
  expect(await it.events()).toEqual([...ASKED, 'intent.failed']);
  expect((await answer(it.link, await pressConfirm(refused), 'complete')).title).toBe(
    'Thank you: your payment was received',
  );
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
    'authentication SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual([
    'requires_payment_method 0',
    'requires_payment_method 0',
    'succeeded 1999',
  ]);
  expect(await it.events()).toEqual([...ASKED, 'intent.failed', ...PAID]);
  await it.expectNothingFurther();
});

test('a payer who never answers the bank pays nothing, and the payment is cancelled after 20 minutes [D-30, D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  expect((await openPage(it.link)).links.map(({ text }) => text)).toEqual([
    'Continue to your bank',
  ]);
  await it.passTwentyMinutes();
  expect(await it.settled()).toMatchObject({
    status: 'UNPAID',
    owed: { nextRetryAt: null, lastDeclineCode: 'authentication_required' },
  });
  const late = await answerBank(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
  ]);
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'canceled 0']);
  expect((await env.events(it.ref)).at(-1)).toMatchObject({
    eventType: 'intent.failed',
    errorCode: 'authentication_required',
    nextRetryAt: null,
  });
  expect(await it.events()).toEqual([...ASKED, 'intent.failed']);
  await it.expectNothingFurther();
});

test('two clicks in two tabs open one payment [D-32]', async ({ owing }) => {
  const it = await owing();
  const tabs = [await openPage(it.link), await openPage(it.link)];
  const [first, second] = await Promise.all(tabs.map(pressConfirm));
  expect(second).toBe(first);
  const again = await openPage(it.link);
  const [onward] = again.links;
  expect((await openPage(onward?.url ?? '')).refreshUrl).toBe(first);
  await answer(it.link, first ?? '', 'complete');
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...ASKED, ...PAID]);
  await it.expectNothingFurther();
});

test('a manual retry is refused while the payer confirms [D-31, D-32]', async ({ owing, shop }) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  const { subscriptionId } = it.ref;
  await expect(
    shop.merchant.post('/subscription/manual-retry', { subscriptionId }),
  ).rejects.toMatchObject({ errorCode: 'payment_outcome_pending' });
  expect((await answer(it.link, bankUrl, 'complete')).title).toBe(
    'Thank you: your payment was received',
  );
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  await it.expectNothingFurther();
});

test('a cancelled subscription is not paid by a payer who confirms later [D-§4]', async ({
  owing,
  shop,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  const { subscriptionId } = it.ref;
  await shop.merchant.post('/subscription/merchant/cancel', { subscriptionId });
  expect(await it.settled()).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
  const late = await answerBank(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'canceled 0']);
  expect(await it.events()).toEqual([...ASKED, 'subscription.ended', 'intent.failed']);
  await it.expectNothingFurther();
});

test('a new card replaces the confirmation and is charged at once [D-33]', async ({
  env,
  owing,
}) => {
  const it = await owing();
  const bankUrl = await pressConfirm(await openPage(it.link));
  await it.giveAnotherCard();
  await eventually(async () => expect((await env.state(it.ref)).status).toBe('ACTIVE'));
  const late = await answerBank(bankUrl, { outcome: 'complete' });
  expect(late.location).toContain('redirect_status=failed');
  expect(await it.attempts()).toEqual([
    'scheduled DECLINED authentication_required',
    'authentication DECLINED authentication_required',
    'automatic_retry SUCCEEDED',
  ]);
  expect(await it.atStripe()).toEqual([
    'requires_payment_method 0',
    'canceled 0',
    'succeeded 1999',
  ]);
  expect(await it.events()).toEqual([...ASKED, 'intent.failed', ...PAID]);
  await it.expectNothingFurther();
});

test('a payer reaches the bank’s page when the answer of Stripe is lost [D-40]', async ({
  owing,
  world,
}) => {
  const it = await owing();
  const page = await openPage(it.link);
  const path = '/v1/payment_intents/*/confirm';
  await world.faults('POST', 'faults', { method: 'POST', path, fault: 'lose_answer', count: 1 });
  const bankUrl = await pressConfirm(page);
  expect((await answer(it.link, bankUrl, 'complete')).title).toBe(
    'Thank you: your payment was received',
  );
  expect(await it.atStripe()).toEqual(['requires_payment_method 0', 'succeeded 1999']);
  expect(await it.events()).toEqual([...ASKED, ...PAID]);
  await it.expectNothingFurther();
});

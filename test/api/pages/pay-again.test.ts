import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { readSubscription } from '../../support/fixtures/subscriptions.ts';
import { fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { openUpdatePage } from '../../support/hosted-pages/update-page.ts';
import { alertOf, headingOf, postForm } from '../../support/hosted-pages/visits.ts';

const BUTTON = '<button type="submit">Pay with Visa 4242 again</button>';
const PAID = 'Thank you: your payment was received';

/** Presses the button that pays with the present card, and returns the address of the next page. */
async function payAgain(api: ApiEnvironment, page: Answer): Promise<string> {
  const [, action = ''] = /action="([^"]*\/again\/[^"]*)"/.exec(page.text) ?? [];
  const token = fieldsOf(page.text).find(({ name }) => name === 'form_token')?.value ?? '';
  const { status, headers } = await postForm(api, action, { form_token: token });
  expect(status).toBe(303);
  return String(headers['location']);
}

/** Sentence and actor of each attempt to charge the subscription, oldest first. */
async function causesOf(api: ApiEnvironment, subscriptionId: string): Promise<string[]> {
  const { text } = await api.call('GET', `/subscription/charges/${subscriptionId}`);
  return [...text.matchAll(/the payer asked for it, by the command again:in_\w+:\d/g)].map(
    ([found]) => found.replace(/in_\w+/, 'in_'),
  );
}

test('a payer pays an owed payment with the present card again, once after two clicks, and gets a receipt [D-33]', async ({
  api,
}) => {
  const terms = { receiptId: 'r-7', description: 'Tea' };
  const { subscription, look, request } = await openUpdatePage(api, 'UNPAID', terms);
  const asked = await look();
  expect(headingOf(asked)).toBe('US$19.99 is due');
  expect(asked.text).toContain(BUTTON);
  expect(asked.text).toContain('Or use another card:');
  for (let click = 0; click < 2; click += 1) {
    const page = await request(await payAgain(api, asked));
    expect(headingOf(page)).toBe(PAID);
    expect(page.text).toContain('The payment of US$19.99 that was due went through.');
    expect(linesOf(page.text)).toEqual([
      ['Paid', 'US$19.99'],
      ['Product', 'Tea'],
      ['Merchant', 'Acme Ltd'],
      ['Card', 'Visa ending in 4242'],
      ['Date', expect.stringMatching(/^\d+ \w+ \d{4}$/)],
      ['Reference', 'r-7'],
    ]);
  }
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 10,
  });
  expect(await causesOf(api, subscription.subscriptionId)).toEqual([
    'the payer asked for it, by the command again:in_:2',
  ]);
});

test('a second payment with the present card that is declined is offered again after four hours [D-33]', async ({
  api,
}) => {
  const { subscription, look, request } = await openUpdatePage(api, 'UNPAID');
  const asked = await look();
  api.workflows.faults.card = 'insufficient_funds';
  const location = await payAgain(api, asked);
  api.workflows.faults.card = null;
  const { headers } = await request(location);
  const page = await request(String(headers['location']));
  expect(headingOf(page)).toBe('US$19.99 is due');
  expect(alertOf(page)).toBe(
    'The payment of US$19.99 was declined, and nothing was charged. Use another card.',
  );
  expect(page.text).toContain('<title>Error: US$19.99 is due');
  expect(page.text).not.toContain(BUTTON);

  // The form of the first page, as after a step back.
  await payAgain(api, asked);
  expect(await causesOf(api, subscription.subscriptionId)).toEqual([
    'the payer asked for it, by the command again:in_:2',
  ]);
  api.clock.aheadMs = 4 * 3_600_000 + 60_000;
  const later = await look();
  api.clock.aheadMs = 0;
  expect([alertOf(later), later.text.includes(BUTTON)]).toEqual([null, true]);
});

test.for(['stolen_card', 'authentication_required'])(
  'the present card is not offered again after the decline %s [D-33]',
  async (code, { api }) => {
    const { look } = await openUpdatePage(api, 'UNPAID', {}, code);
    expect((await look()).text).not.toContain('/again/');
  },
);

test('a payment with the present card whose outcome is unknown leads to a page that waits, and then to its receipt [D-31, D-33]', async ({
  api,
}) => {
  const { subscription, look, request } = await openUpdatePage(api, 'UNPAID');
  const asked = await look();
  api.workflows.faults.card = 'unknown';
  const location = await payAgain(api, asked);
  const waiting = await request(location);
  expect([waiting.status, headingOf(waiting)]).toEqual([200, 'Your payment is being processed']);
  expect(linesOf(waiting.text)).toEqual([['Amount', 'US$19.99']]);
  expect(waiting.text).toContain('you will not be charged twice');
  // The form of the first page, as after a step back.
  expect(headingOf(await request(await payAgain(api, asked)))).toBe(headingOf(waiting));
  api.workflows.faults.card = 'paid late';
  await api.workflows.lookUp(subscription.ref);
  expect(headingOf(await request(location))).toBe(PAID);
  expect(await causesOf(api, subscription.subscriptionId)).toEqual([
    'the payer asked for it, by the command again:in_:2',
  ]);
});

import { describe, expect } from 'vitest';
import { untilAvailable } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventsOf, eventTypes } from '../../support/fixtures/events.ts';
import { readIntent } from '../../support/fixtures/payments.ts';
import {
  cookieOf,
  makePaymentLink,
  openLink,
  outcome,
  paymentsOf,
  rowOf,
} from '../../support/hosted-pages/links.ts';
import { fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { browse, comeBack, headingOf } from '../../support/hosted-pages/visits.ts';

const HOUR = 3_600_000;

/**
 * Opens the link in a new browser and submits its form. Returns the browser, the id of the created payment
 * and the path of the payment's page.
 */
async function begin(api: ApiEnvironment, path: string) {
  const browser = await openLink(api, path);
  const sent = await browser.submit();
  expect(sent.status).toBe(303);
  const { id } = (await paymentsOf(api, path)).at(-1)!;
  return { browser, intentId: id, page: String(sent.headers['location']) };
}

const cancel = (api: ApiEnvironment, intentId: string) =>
  api.call('POST', `/payments/cancel/${intentId}`);

test('a payment link shows the offer, asks for the payer’s details and creates one hosted payment [D-§7, D-11, D-37]', async ({
  api,
}) => {
  const path = await makePaymentLink(api, {
    customerDetails: { customerAddress: { country: 'GB' } },
    receiptId: 'r-1',
    description: 'Order 7',
    productPage: { name: 'A teapot' },
    comments: 'Spring offer',
    metadata: { order: '7', a: 'x' },
    callbackUrl: 'https://merchant.example/b?x=1',
  });
  const rows = await api.countRows();
  const { page, open, submit } = await openLink(api, path);
  expect(await api.countRows()).toEqual(rows);
  expect(headingOf(page)).toBe('A teapot');
  expect(linesOf(page.text)).toEqual([['To pay, once', 'US$25.00']]);
  expect(fieldsOf(page.text).flatMap(({ label }) => label ?? [])).toEqual([
    'Name',
    'E-mail address',
  ]);
  expect(outcome(await submit({ name: 'Ada' }))).toEqual([303, path]);
  expect(await api.countRows()).toEqual(rows);

  const sent = await submit({ name: 'Ada', email: 'ada@example.com' });
  expect(outcome(sent)).toEqual([303, expect.stringMatching(/^\/payment\/[0-9A-Za-z]{22}$/)]);
  const home = String(sent.headers['location']);
  const [intent, ...others] = await paymentsOf(api, path);
  expect(others).toEqual([]);
  const customerDetails = {
    customerAddress: { country: 'GB' },
    name: 'Ada',
    email: 'ada@example.com',
  };
  expect(await readIntent(api, intent!.id)).toEqual({
    xIntentId: intent!.id,
    customerId: expect.stringMatching(/^cus_/) as string,
    kind: 'hosted',
    amount: 2_500,
    currency: 'USD',
    presentmentCurrency: 'USD',
    customerDetails,
    createdAt: expect.any(String) as string,
    status: 'CREATED',
    receiptId: 'r-1',
    description: 'Order 7',
    callbackUrl: 'https://merchant.example/b?x=1',
    metadata: { order: '7', a: 'x' },
    productPage: { name: 'A teapot' },
    comments: 'Spring offer',
    paymentMethod: null,
    cardMetadata: null,
    chargeAttempts: [],
  });
  expect(outcome(await open())).toEqual([303, home]);
  await browse(api, home);
  await comeBack(api, home, 'payment_token=tok_of_a_payment_link');
  const paid = await browse(api, home);
  expect(headingOf(paid)).toBe('Thank you: your payment was received');
  expect(paid.text).toContain(
    `<a class="button" href="https://merchant.example/b?x=1&amp;xpay_intent_id=${intent!.id}` +
      '&amp;status=SUCCESS&amp;receipt_id=r-1">Continue to Acme Ltd</a>',
  );
  const events = await eventsOf(api, intent!.id);
  expect(events.map(({ type, sequence }) => [sequence, type])).toEqual([
    [1, 'intent.created'],
    [2, 'intent.checkout_opened'],
    [3, 'intent.success'],
  ]);
  expect(JSON.parse(events[2]!.body)).toMatchObject({
    kind: 'hosted',
    comments: 'Spring offer',
    status: 'SUCCESS',
    amount: 2_500,
    customerDetails,
    metadata: { order: '7', a: 'x' },
  });
  expect((await rowOf(api, path)).uses).toBe(1);
  expect(outcome(await open())).toEqual([303, home]);
  expect(await paymentsOf(api, path)).toHaveLength(1);
  expect(api.workflows.calls).toContainEqual({
    name: 'wakeStream',
    ref: { merchantId: api.merchant.merchantId, streamId: intent!.id },
  });
});

describe('a use of a payment link', () => {
  test('is available again an hour after its start when the payment was declined [D-37, D-§7]', async ({
    api,
  }) => {
    const path = await makePaymentLink(api);
    const { browser, intentId, page } = await begin(api, path);
    await comeBack(api, page, 'payment_token=tok-card_declined-of-a-link');
    expect(await readIntent(api, intentId)).toMatchObject({ status: 'FAILED' });
    api.clock.aheadMs = HOUR - 60_000;
    expect((await browse(api, path)).status).toBe(410);
    api.clock.aheadMs = HOUR + 60_000;
    // Opening the link must write nothing.
    const rows = await api.countRows();
    const again = await browser.open();
    expect([again.status, cookieOf(again)]).toEqual([200, expect.stringMatching(/^visit=/)]);
    expect(await api.countRows()).toEqual(rows);
    expect((await rowOf(api, path)).uses).toBe(1);

    const next = await begin(api, path);
    expect(next.intentId).not.toBe(intentId);
    expect((await rowOf(api, path)).uses).toBe(1);
    expect((await browse(api, path)).status).toBe(410);
    expect(await readIntent(api, intentId)).toMatchObject({ status: 'CANCELLED' });
    await comeBack(api, page, 'payment_token=tok_too_late');
    expect(await readIntent(api, intentId)).toMatchObject({
      status: 'CANCELLED',
      chargeAttempts: [{ attempt: 1, status: 'FAILED' }],
    });
    expect(await eventTypes(api, intentId)).toEqual(['intent.created', 'intent.failed']);
  });

  test('is available again at once when the payment is cancelled [D-37, D-41, D-§7]', async ({
    api,
  }) => {
    const path = await makePaymentLink(api);
    const { intentId, page } = await begin(api, path);
    expect((await cancel(api, intentId)).status).toBe(200);
    expect((await rowOf(api, path)).uses).toBe(0);
    expect((await cancel(api, intentId)).status).toBe(400);
    expect((await rowOf(api, path)).uses).toBe(0);
    expect((await browse(api, page)).status).toBe(410);
    await begin(api, path);
    // Half an hour later the second payment still has the link's only use.
    api.clock.aheadMs = HOUR / 2;
    expect((await browse(api, path)).status).toBe(410);
    expect((await rowOf(api, path)).uses).toBe(1);
  });

  test('is not returned to the link when the outcome is unknown or the payment was made [D-37, D-§7]', async ({
    api,
  }) => {
    const [unknown, paid] = [await makePaymentLink(api), await makePaymentLink(api)];
    const undecided = await begin(api, unknown);
    await comeBack(api, undecided.page, 'payment_token=tok_unknown_of_a_payment');
    const made = await begin(api, paid);
    await comeBack(api, made.page, 'payment_token=tok_pays_of_a_payment');
    await api.call('POST', '/payments/merchant/refund', { body: { xIntentId: made.intentId } });
    expect(await readIntent(api, undecided.intentId)).toMatchObject({ status: 'PENDING' });
    expect(await readIntent(api, made.intentId)).toMatchObject({ status: 'REFUNDED' });
    api.clock.aheadMs = 2 * HOUR;
    for (const path of [unknown, paid]) {
      expect((await browse(api, path)).status).toBe(410);
      expect((await rowOf(api, path)).uses).toBe(1);
      expect(await paymentsOf(api, path)).toHaveLength(1);
    }
  });

  test('is available again an hour after its start, even if the next payer is refused with 429 [D-37, D-§7]', async ({
    api,
  }) => {
    const path = await makePaymentLink(api, { multiUseLimit: 6 });
    const address = '203.0.113.78';
    const submit = async () => (await (await openLink(api, path, { address })).submit()).status;
    const first = await begin(api, path);
    api.clock.aheadMs = HOUR - 60_000;
    for (let use = 1; use <= 5; use += 1) expect(await submit()).toBe(303);
    expect((await rowOf(api, path)).uses).toBe(6);
    api.clock.aheadMs = HOUR + 60_000;
    expect(await submit()).toBe(429);
    expect(await readIntent(api, first.intentId)).toMatchObject({ status: 'CANCELLED' });
    expect((await rowOf(api, path)).uses).toBe(5);
    await begin(api, path);
    expect((await rowOf(api, path)).uses).toBe(6);
    expect((await browse(api, path)).status).toBe(410);
  });

  test('is taken over by one of 20 payers who submit at once an hour after its start [D-37, D-§7]', async ({
    api,
  }) => {
    const path = await makePaymentLink(api, { expiryDate: Date.now() + 10 * HOUR });
    await begin(api, path);
    api.clock.aheadMs = HOUR;
    const browsers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => openLink(api, path, { address: `10.2.0.${at}` })),
    );
    const answers = await Promise.all(browsers.map(({ submit }) => untilAvailable(submit)));
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 410)).toHaveLength(19);
    expect((await paymentsOf(api, path)).map(({ status }) => status)).toEqual([
      'CANCELLED',
      'CREATED',
    ]);
    expect((await rowOf(api, path)).uses).toBe(1);
  });
});

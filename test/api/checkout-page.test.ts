import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { createApiWorld, PUBLIC_URL, subscriptionBody, TOKENISER_URL } from './api-world.ts';
import type { Answer, ApiWorld, CallOptions } from './api-world.ts';
import { fieldsOf, linesOf } from './page-text.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

interface Checkout {
  subscriptionId: string;
  path: string;
}

const JAN_31 = Date.UTC(2026, 0, 31, 12);

/** A checkout on a clock that stands at noon of 31 January 2026. */
async function open(changes: Record<string, unknown> = {}): Promise<Checkout & { clock: string }> {
  const made = await world.call('POST', '/test-clock/create', { body: { now: JAN_31 } });
  const { testClockId: clock } = made.json as { testClockId: string };
  const answer = await world.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId: clock, ...changes }),
  });
  const { subscriptionId, fwdUrl } = answer.json as Record<string, string>;
  return { subscriptionId: subscriptionId!, path: new URL(fwdUrl!).pathname, clock };
}

const browse = (path: string, options: CallOptions = {}, method = 'GET') =>
  world.call(method, path, { as: null, ...options });
const comeBack = (path: string, query: string) => browse(`${path}/return?${query}`);
const postForm = (path: string, fields: Record<string, string>, headers = {}) =>
  browse(
    path,
    {
      raw: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    },
    'POST',
  );

async function statusOf(subscriptionId: string): Promise<unknown> {
  const answer = await world.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  return (answer.json as { status: string }).status;
}

async function eventTypes(subscriptionId: string): Promise<string[]> {
  const rows = await world.db
    .select({ type: outboxEvents.type })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, subscriptionId))
    .orderBy(outboxEvents.sequence);
  return rows.map(({ type }) => type);
}

async function sessionOf(subscriptionId: string) {
  const [row] = await world.db
    .select()
    .from(checkoutSessions)
    .where(eq(checkoutSessions.subscriptionId, subscriptionId));
  return row!;
}

function expectSeeOther(answer: Answer, path: string): void {
  expect([answer.status, answer.headers['location']]).toEqual([303, path]);
}

test('the page says what is sold, and what is charged now and next [IF-2.8, IF-2.3]', async () => {
  const { path } = await open({
    productPage: { name: 'Tea & <b>biscuits</b>', description: 'A box every month' },
    upfrontAmount: 500,
    cycleCount: 3,
  });
  const page = await browse(path);
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.text).toContain('<h1>Tea &amp; &lt;b>biscuits&lt;/b></h1>');
  expect(linesOf(page.text)).toEqual([
    ['Today', '5.00 USD'],
    // From an anchor on the 31st a short month bills on its last day.
    ['Then', '19.99 USD every month, from 28 February 2026'],
    ['In all', '3 payments, the last on 31 March 2026'],
  ]);
  expect(page.text).toContain('<button type="submit">Pay 5.00 USD</button>');
  expect(page.text).toContain('Acme Ltd');
  expect(page.text).toContain('A box every month');
});

test('a trial says that nothing is charged today, and what follows when [IF-2.3]', async () => {
  const { path } = await open({
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
    intervalCount: 2,
  });
  const page = await browse(path);
  expect(linesOf(page.text)).toEqual([
    ['Today', 'Nothing'],
    ['Then', '19.99 USD on 7 February 2026, after 7 days free'],
    ['After that', '19.99 USD every 2 months'],
    ['In all', '12 payments, the last on 7 December 2027'],
  ]);
  expect(page.text).toContain('<button type="submit">Start free trial</button>');
});

test('the card form goes to the tokeniser, bound to this session, with its four labels [issue 3]', async () => {
  const { path, subscriptionId } = await open();
  const page = await browse(path);
  const { id } = await sessionOf(subscriptionId);

  expect(page.text).toContain(`<form method="post" action="${TOKENISER_URL}">`);
  expect(fieldsOf(page.text)).toEqual([
    { name: 'session', value: id },
    { name: 'return_url', value: `${PUBLIC_URL}${path}/return` },
    { name: 'name', label: 'Name on card', autocomplete: 'cc-name', value: 'Ada Example' },
    { name: 'number', label: 'Card number', autocomplete: 'cc-number' },
    { name: 'expiry', label: 'Expiry', autocomplete: 'cc-exp' },
    { name: 'cvc', label: 'CVC', autocomplete: 'cc-csc' },
  ]);
  expect(page.text).not.toContain('<script');
});

test('the test cards are on the page in test mode [D-61]', async () => {
  const { path } = await open();
  const page = await browse(path);
  expect(page.text).toContain('Test mode: no money moves');
  expect(page.text).toContain('<td>4242 4242 4242 4242</td><td>pays</td>');
});

test('a page has its own policy: our style, forms to us and to the tokeniser [reliability §4]', async () => {
  const { path } = await open();
  const [first, second] = [await browse(path), await browse(path)];
  const nonce = /<style nonce="([^"]+)">/.exec(first.text)?.[1];
  expect(first.headers).toMatchObject({
    'content-security-policy':
      `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self' https://cards.example; ` +
      "base-uri 'none'; frame-ancestors 'none'",
    'strict-transport-security': 'max-age=63072000; includeSubDomains',
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-robots-tag': 'noindex, nofollow',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(self)',
  });
  expect(second.text).not.toContain(nonce);
});

test('the first opening is told once, by a browser and not by a look at the link [D-51]', async () => {
  const { path, subscriptionId } = await open();
  expect((await browse(path, {}, 'HEAD')).status).toBe(200);
  await browse(path, { headers: { 'sec-purpose': 'prefetch;prerender' } });
  expect(await eventTypes(subscriptionId)).toEqual(['intent.created', 'subscription.created']);

  await Promise.all([browse(path), browse(path), browse(path)]);

  expect(await eventTypes(subscriptionId)).toEqual([
    'intent.created',
    'subscription.created',
    'intent.checkout_opened',
  ]);
  expect((await sessionOf(subscriptionId)).openedAt).toBe(JAN_31);
  expect(world.workflows.calls).toContainEqual({
    name: 'wakeStream',
    ref: { merchantId: world.merchant.merchantId, streamId: subscriptionId },
  });
});

test('the checkout of a trial has no intent: the subscription is told of [D-51]', async () => {
  const { path, subscriptionId } = await open({
    trialPeriodCount: 1,
    trialPeriodInterval: 'MONTH',
  });
  await browse(path);
  expect(await eventTypes(subscriptionId)).toEqual([
    'subscription.created',
    'subscription.checkout_opened',
  ]);
});

test('a paid checkout shows the result and leads on to callbackUrl, its own query kept [D-44]', async () => {
  const { path, subscriptionId } = await open({
    callbackUrl: 'https://merchant.example/back?a=1&b=%20#top',
    receiptId: 'r 1',
  });
  expectSeeOther(await comeBack(path, 'payment_token=tok_pays'), path);
  expect(await statusOf(subscriptionId)).toBe('ACTIVE');

  const page = await browse(path);
  const url =
    'https://merchant.example/back?a=1&amp;b=%20' +
    `&amp;subscription_id=${subscriptionId}&amp;status=ACTIVE&amp;receipt_id=r+1#top`;
  expect(page.status).toBe(200);
  expect(page.text).toContain(`<meta http-equiv="refresh" content="5; url=${url}"/>`);
  expect(page.text).toContain(`<a class="button" href="${url}">Continue to Acme Ltd</a>`);
  expect(page.text).toContain('<h1>Thank you: your payment was received</h1>');
  expect(page.text).toContain('The next payment is 19.99 USD on 28 February 2026.');
});

test('a saved card starts the trial and charges nothing [D-§4]', async () => {
  const { path, subscriptionId } = await open({ trialPeriodCount: 7, trialPeriodInterval: 'DAY' });
  expectSeeOther(await comeBack(path, 'payment_token=tok_saved'), path);
  expect(await statusOf(subscriptionId)).toBe('TRIALING');
  const page = await browse(path);
  expect(page.text).toContain('<h1>Your free trial has started</h1>');
  expect(page.text).toContain(
    'Nothing was charged today. The first payment is 19.99 USD on 7 February 2026.',
  );
});

test('a single cycle that is paid ends the subscription with thanks [D-§4]', async () => {
  const { path, subscriptionId } = await open({ cycleCount: 1 });
  expect(linesOf((await browse(path)).text)).toEqual([
    ['Today', '19.99 USD'],
    ['In all', '1 payment'],
  ]);
  await comeBack(path, 'payment_token=tok_single');
  expect(await statusOf(subscriptionId)).toBe('ENDED');
  const page = await browse(path);
  expect([page.status, page.text.includes('This was the last payment.')]).toEqual([200, true]);
});

test('a declined card says so in one neutral text, and the payer tries again [D-§4]', async () => {
  const { path, subscriptionId } = await open();
  expectSeeOther(await comeBack(path, 'payment_token=tok_insufficient_funds'), path);
  expect(await statusOf(subscriptionId)).toBe('CREATED');

  const page = await browse(path);
  expect(page.status).toBe(200);
  expect(page.text).toContain(
    '<p class="bad" id="declined" role="alert">Your payment was declined and nothing was charged. ' +
      'Check the details and try again, or use another card.</p>',
  );
  expect(page.text).not.toContain('insufficient');
  expect(page.text.match(/aria-describedby="declined"/g)).toHaveLength(4);

  expectSeeOther(await comeBack(path, 'payment_token=tok_second_pays'), path);
  expect(await statusOf(subscriptionId)).toBe('ACTIVE');
  expect((await sessionOf(subscriptionId)).tries).toBe(2);
});

test('a card that the tokeniser refused counts as a try and says the same [D-§4]', async () => {
  const { path, subscriptionId } = await open();
  expectSeeOther(await comeBack(path, 'payment_error=incorrect_card_number'), path);
  expect((await browse(path)).text).toContain('Your payment was declined');
  expect(await sessionOf(subscriptionId)).toMatchObject({
    tries: 1,
    lastErrorCode: 'incorrect_card_number',
  });
});

test('a return without token or error, and one with a strange token, try nothing [issue 3]', async () => {
  const { path, subscriptionId } = await open();
  const sent = world.workflows.calls.length;
  for (const query of [
    '',
    'payment_token=',
    'payment_token=a%20b',
    `payment_token=${'x'.repeat(201)}`,
  ]) {
    expectSeeOther(await comeBack(path, query), path);
  }
  expect((await sessionOf(subscriptionId)).tries).toBe(0);
  expect(world.workflows.calls).toHaveLength(sent);
});

test('reloading the return URL makes no second attempt, declined or paid [design §4]', async () => {
  const { path, subscriptionId } = await open();
  const declined = 'payment_token=tok_card_declined_reload';
  for (let load = 0; load < 3; load += 1) expectSeeOther(await comeBack(path, declined), path);
  const paid = 'payment_token=tok_paid_reload';
  await Promise.all([comeBack(path, paid), comeBack(path, paid)]);
  expectSeeOther(await comeBack(path, paid), path);

  const attempts = await world.db
    .select({ number: paymentAttempts.attemptNumber, state: paymentAttempts.state })
    .from(paymentAttempts)
    .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
    .where(eq(paymentIntents.subscriptionId, subscriptionId))
    .orderBy(paymentAttempts.attemptNumber);
  expect(attempts).toEqual([
    { number: 1, state: 'DECLINED' },
    { number: 2, state: 'SUCCEEDED' },
  ]);
});

test('a look at the return link (HEAD) pays nothing [issue 3]', async () => {
  const { path, subscriptionId } = await open();
  const answer = await browse(`${path}/return?payment_token=tok_head`, {}, 'HEAD');
  expectSeeOther(answer, path);
  expect(await statusOf(subscriptionId)).toBe('CREATED');
});

test('an unknown outcome is a page that looks again, at either address [design §4]', async () => {
  const { path } = await open();
  const url = `${path}/return?payment_token=tok_unknown`;
  const returned = await browse(url);
  expect(returned.status).toBe(200);
  expect(returned.text).toContain(`<meta http-equiv="refresh" content="3; url=${url}"/>`);
  expect(returned.text).toContain('<h1>Your payment is being processed</h1>');

  const reopened = await browse(path);
  expect(reopened.text).toContain(`<meta http-equiv="refresh" content="3; url=${path}"/>`);
  expect(reopened.text).not.toContain('Card number');

  // Another card meanwhile is not charged as well.
  const another = await browse(`${path}/return?payment_token=tok_another`);
  expect(another.text).toContain('<h1>Your payment is being processed</h1>');
});

test('a checkout cancelled while a payment is on its way denies nothing, and then says what came [D-§4]', async () => {
  const { path, subscriptionId } = await open();
  await browse(`${path}/return?payment_token=tok_unknown_then_cancelled`);
  const cancelled = await world.call('POST', '/subscription/merchant/cancel', {
    body: { subscriptionId },
  });
  expect(cancelled.status).toBe(200);

  const meanwhile = await browse(path);
  expect(meanwhile.text).toContain('<h1>Your payment is being processed</h1>');
  expect(meanwhile.text).not.toContain('Nothing was charged');

  world.workflows.faults.card = 'paid late';
  await world.workflows.lookUp({ merchantId: world.merchant.merchantId, subscriptionId });
  world.workflows.faults.card = null;
  const settled = await browse(path);
  expect(settled.text).toContain('<h1>This subscription has ended</h1>');
  expect(settled.text).toContain('1 payment was received. Nothing more will be charged.');
});

test('while the service is away the page says that nothing is lost, and the same URL pays later [design §4]', async () => {
  const { path, subscriptionId } = await open();
  const url = `${path}/return?payment_token=tok_outage`;
  world.workflows.faults.isDown = true;
  const away = await browse(url);
  world.workflows.faults.isDown = false;

  expect(away.status).toBe(503);
  expect(away.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(away.text).toContain('Nothing is lost: reload it in a moment');
  expect(away.text).toContain(`<meta http-equiv="refresh" content="10; url=${url}"/>`);

  expectSeeOther(await browse(url), path);
  expect(await statusOf(subscriptionId)).toBe('ACTIVE');
});

test('the way out leads to cancelUrl, or to callbackUrl, and leaves the session open [IF-4.3, D-44]', async () => {
  const withOne = await open({ cancelUrl: 'https://merchant.example/cancelled' });
  const withoutOne = await open();
  const hrefOf = async ({ path }: Checkout) =>
    /<a href="([^"]+)">Cancel and return to Acme Ltd<\/a>/.exec((await browse(path)).text)?.[1];

  expect(await hrefOf(withOne)).toBe(
    `https://merchant.example/cancelled?subscription_id=${withOne.subscriptionId}&amp;status=CREATED`,
  );
  expect(await hrefOf(withoutOne)).toBe(
    'https://merchant.example/back?order=7' +
      `&amp;subscription_id=${withoutOne.subscriptionId}&amp;status=CREATED`,
  );
});

test('an expired checkout is 410, tells nobody that it was opened, and takes no card [D-§4]', async () => {
  const { path, clock, subscriptionId } = await open();
  await world.call('POST', '/test-clock/advance', {
    body: { testClockId: clock, to: JAN_31 + 24 * 3_600_000 },
  });
  const page = await browse(path);
  expect(page.status).toBe(410);
  expect(page.text).toContain('<h1>This checkout has expired</h1>');
  expect(page.text).not.toContain('<form');
  expectSeeOther(await comeBack(path, 'payment_token=tok_too_late'), path);
  expect(await statusOf(subscriptionId)).toBe('CREATED');
  expect(await eventTypes(subscriptionId)).toEqual(['intent.created', 'subscription.created']);
});

test('a cancelled checkout is 410 [D-§4]', async () => {
  const { path, subscriptionId } = await open();
  await world.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });
  const page = await browse(path);
  expect(page.status).toBe(410);
  expect(page.text).toContain('<h1>This checkout was cancelled</h1>');
  expect(page.text).toContain(`status=ENDED`);
});

test.each(['AAAAAAAAAAAAAAAAAAAAAA', 'short', '%00', 'a'.repeat(500)])(
  'the unknown token %s is one clear 404 page [issue 3]',
  async (token) => {
    const page = await browse(`/checkout/${token}`);
    expect(page.status).toBe(404);
    expect(page.text).toContain('<h1>There is no such checkout</h1>');
    expect((await browse(`/checkout/${token}/return?payment_token=x`)).status).toBe(404);
    expect((await postForm(`/checkout/${token}`, {})).status).toBe(404);
  },
);

test('what the merchant left out is asked for first, and stored [D-11]', async () => {
  const { path, subscriptionId } = await open({
    customerDetails: { name: 'Ada' },
    phoneNumberRequired: true,
  });
  const asked = await browse(path);
  expect(asked.text).toContain(`<form method="post" action="${path}">`);
  const [hidden, ...fields] = fieldsOf(asked.text);
  expect(fields).toEqual([
    { name: 'email', label: 'E-mail address', autocomplete: 'email' },
    { name: 'contactNumber', label: 'Phone number', autocomplete: 'tel' },
  ]);
  const form_token = hidden!.value!;

  const wrong = await postForm(path, {
    form_token,
    email: 'ada@',
    contactNumber: '+44 20 7946 0000',
  });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain('aria-describedby="email-problem" aria-invalid="true"');
  expect(wrong.text).toContain(
    '<p class="problem" id="email-problem">Enter an e-mail address, such as ann@example.com.</p>',
  );
  expect(wrong.text).toContain('value="+44 20 7946 0000"');

  const right = await postForm(path, {
    form_token,
    name: 'Mallory',
    email: 'ada@example.com',
    contactNumber: '+44 20 7946 0000',
  });
  expectSeeOther(right, path);
  expect(fieldsOf((await browse(path)).text).map(({ label }) => label)).toContain('Card number');
  const [intent] = await world.db
    .select({ details: paymentIntents.customerDetails, customerId: paymentIntents.customerId })
    .from(paymentIntents)
    .where(eq(paymentIntents.subscriptionId, subscriptionId));
  const details = { name: 'Ada', email: 'ada@example.com', contactNumber: '+44 20 7946 0000' };
  expect(intent!.details).toEqual(details);
  const customer = await world.call('GET', `/customer/${intent!.customerId}`);
  expect(customer.json).toEqual({ customerId: intent!.customerId, customerDetails: details });
});

test('what the customer is known by is not asked for again [D-11]', async () => {
  const made = await world.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Bob', email: 'bob@example.com' } },
  });
  const { customerId } = made.json as { customerId: string };
  const { path } = await open({ customerDetails: {}, customerId });
  expect(fieldsOf((await browse(path)).text)).toContainEqual({
    name: 'name',
    label: 'Name on card',
    autocomplete: 'cc-name',
    value: 'Bob',
  });
});

test.each([
  ['without its token', {}, {}],
  ['with a wrong token', { form_token: 'x' }, {}],
  ['from another site', null, { 'sec-fetch-site': 'cross-site' }],
  ['from another origin', null, { origin: 'https://evil.example' }],
])(
  'a details form %s is refused and stores nothing [reliability §4]',
  async (_, fields, headers) => {
    const { path, subscriptionId } = await open({ customerDetails: {} });
    const form_token = fieldsOf((await browse(path)).text)[0]!.value!;
    const answer = await postForm(
      path,
      { ...(fields ?? { form_token }), name: 'Eve', email: 'eve@example.com' },
      headers,
    );
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('<h1>This form is not valid any more</h1>');
    const [intent] = await world.db
      .select({ details: paymentIntents.customerDetails })
      .from(paymentIntents)
      .where(eq(paymentIntents.subscriptionId, subscriptionId));
    expect(intent!.details).toEqual({});
  },
);

test('a form of our own page passes, also with the Origin null that no-referrer makes [reliability §4]', async () => {
  const { path } = await open({ customerDetails: {} });
  const form_token = fieldsOf((await browse(path)).text)[0]!.value!;
  const answer = await postForm(
    path,
    { form_token, name: 'Ann', email: 'ann@example.com' },
    { origin: 'null', 'sec-fetch-site': 'same-origin' },
  );
  expectSeeOther(answer, path);
});

test('no line of the log holds a checkout token or a payment token [D-§8]', async () => {
  const { path } = await open();
  await browse(path);
  await comeBack(path, 'payment_token=tok_in_no_log');
  const lines = JSON.stringify(world.logLines);
  expect(lines).toContain('GET /checkout/:token/return');
  expect(lines).not.toContain(path.split('/').at(-1));
  expect(lines).not.toContain('tok_in_no_log');
});

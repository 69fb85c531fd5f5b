import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { intentsOf, makeCustomer } from '../../support/fixtures/payments.ts';
import { test } from '../../support/api-environment.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import { statusOf } from '../../support/fixtures/subscriptions.ts';
import { JAN_31, openCheckout, sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { browse, comeBack, expectSeeOther, postForm } from '../../support/hosted-pages/visits.ts';
import { consentOf, fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';

test('the checkout page shows the product, today’s amount and the later amounts [IF-2.8, IF-2.3]', async ({
  api,
}) => {
  const { path } = await openCheckout(api, {
    productPage: { name: 'Tea & <b>biscuits</b>', description: 'A box every month' },
    upfrontAmount: 500,
    cycleCount: 3,
  });
  const page = await browse(api, path);
  expect(page.status).toBe(200);
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.text).toContain('<h1 dir="auto">Tea &amp; &lt;b>biscuits&lt;/b></h1>');
  expect(linesOf(page.text)).toEqual([
    ['Upfront amount, today', 'US$5.00'],
    // A subscription that starts on a 31st is billed on the last day of a shorter month.
    ['Then', 'US$19.99 every month, from 28 February 2026'],
    ['In all', 'US$44.98 in 3 payments, the last on 31 March 2026'],
  ]);
  expect(page.text).toContain('<button type="submit">Pay US$5.00</button>');
  expect(consentOf(page.text)).toBe(
    'By continuing, you allow Acme Ltd to charge this card for each payment of this subscription, ' +
      'until it ends or is cancelled.',
  );
  expect(page.text).toContain('Acme Ltd');
  expect(page.text).toContain('A box every month');
});

test('an empty text of the product page counts as absent [D-10, IF-2.8]', async ({ api }) => {
  const { path } = await openCheckout(api, {
    description: 'Tea of the month',
    productPage: { name: '', description: '' },
  });
  const { text } = await browse(api, path);
  expect(text).toContain('<h1 dir="auto">Tea of the month</h1>');
});

test('the checkout page of a trial shows the later charges and that nothing is charged today [IF-2.3, D-§7]', async ({
  api,
}) => {
  const { path } = await openCheckout(api, {
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
    intervalCount: 2,
  });
  const page = await browse(api, path);
  expect(linesOf(page.text)).toEqual([
    ['Today', 'US$0.00'],
    ['Then', 'US$19.99 on 7 February 2026, after 7 days free'],
    ['After that', 'US$19.99 every 2 months'],
    ['In all', 'US$239.88 in 12 payments, the last on 7 December 2027'],
  ]);
  expect(page.text).toContain('<h2>Your card</h2>');
  expect(page.text).toContain('<button type="submit">Save card and start free trial</button>');
  expect(consentOf(page.text)).toBe(
    'By continuing, you allow Acme Ltd to charge this card for each payment of this subscription, ' +
      'until it ends or is cancelled.',
  );
});

test('the checkout page lists the test cards in test mode [D-61]', async ({ api }) => {
  const { path } = await openCheckout(api);
  const page = await browse(api, path);
  expect(page.text).toContain('Test mode: no money moves');
  expect(page.text).toContain('<td>4242 4242 4242 4242</td><td>pays</td>');
});

test('a page has the security headers; its content policy allows one style, one script, and forms to this server and the tokeniser', async ({
  api,
}) => {
  const { path } = await openCheckout(api);
  const [first, second] = [await browse(api, path), await browse(api, path)];
  const nonce = /<style nonce="([^"]+)">/.exec(first.text)?.[1];
  const script = /<script>(.*)<\/script>/s.exec(first.text)?.[1] ?? '';
  const hash = createHash('sha256').update(script).digest('base64');
  expect(first.headers).toMatchObject({
    'content-security-policy':
      `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'sha256-${hash}'; ` +
      "form-action 'self' https://cards.example; " +
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

test('checkout_opened is emitted once when a browser opens the checkout, but not for HEAD or prefetch [D-51, IF-6]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api);
  expect((await browse(api, path, {}, 'HEAD')).status).toBe(200);
  await browse(api, path, { headers: { 'sec-purpose': 'prefetch;prerender' } });
  expect(await eventTypes(api, subscriptionId)).toEqual(['intent.created', 'subscription.created']);

  await Promise.all([browse(api, path), browse(api, path), browse(api, path)]);

  expect(await eventTypes(api, subscriptionId)).toEqual([
    'intent.created',
    'subscription.created',
    'intent.checkout_opened',
  ]);
  expect((await sessionOf(api, subscriptionId)).openedAt).toBe(JAN_31);
  expect(api.workflows.calls).toContainEqual({
    name: 'wakeStream',
    ref: { merchantId: api.merchant.merchantId, streamId: subscriptionId },
  });
});

test('a checkout with a trial emits subscription.checkout_opened [D-51]', async ({ api }) => {
  const { path, subscriptionId } = await openCheckout(api, {
    trialPeriodCount: 1,
    trialPeriodInterval: 'MONTH',
  });
  await browse(api, path);
  expect(await eventTypes(api, subscriptionId)).toEqual([
    'subscription.created',
    'subscription.checkout_opened',
  ]);
});

test('the cancel link leads to cancelUrl, or to callbackUrl if there is no cancelUrl [IF-4.3, D-44]', async ({
  api,
}) => {
  const withOne = await openCheckout(api, { cancelUrl: 'https://merchant.example/cancelled' });
  const withoutOne = await openCheckout(api);
  const hrefOf = async ({ path }: { path: string }) =>
    /<a href="([^"]+)">Cancel and return to Acme Ltd<\/a>/.exec(
      (await browse(api, path)).text,
    )?.[1];

  expect(await hrefOf(withOne)).toBe(
    `https://merchant.example/cancelled?subscription_id=${withOne.subscriptionId}&amp;status=CREATED`,
  );
  expect(await hrefOf(withoutOne)).toBe(
    'https://merchant.example/back?order=7' +
      `&amp;subscription_id=${withoutOne.subscriptionId}&amp;status=CREATED`,
  );
});

test('an expired checkout answers 410, emits no checkout_opened and takes no card [D-§4]', async ({
  api,
}) => {
  const { path, clock, subscriptionId } = await openCheckout(api);
  await api.call('POST', '/test-clock/advance', {
    body: { testClockId: clock, to: JAN_31 + 24 * 3_600_000 },
  });
  const page = await browse(api, path);
  expect(page.status).toBe(410);
  expect(page.text).toContain('<h1>This page has expired</h1>');
  expect(page.text).not.toContain('<form');
  expectSeeOther(await comeBack(api, path, 'payment_token=tok_too_late'), path);
  expect(await statusOf(api, subscriptionId)).toBe('CREATED');
  expect(await eventTypes(api, subscriptionId)).toEqual(['intent.created', 'subscription.created']);
});

test('a cancelled checkout answers 410 [D-§4]', async ({ api }) => {
  const { path, subscriptionId } = await openCheckout(api);
  await api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });
  const page = await browse(api, path);
  expect(page.status).toBe(410);
  expect(page.text).toContain('<h1>This payment was cancelled</h1>');
  expect(page.text).toContain(`status=ENDED`);
});

test.for(['AAAAAAAAAAAAAAAAAAAAAA', 'short', '%00', 'a'.repeat(500)])(
  'the unknown checkout token %s answers with a 404 page [IF-4.3]',
  async (token, { api }) => {
    const page = await browse(api, `/checkout/${token}`);
    expect(page.status).toBe(404);
    expect(page.text).toContain('<h1>There is no such page</h1>');
    expect((await browse(api, `/checkout/${token}/return?payment_token=x`)).status).toBe(404);
    expect((await postForm(api, `/checkout/${token}`, {})).status).toBe(404);
  },
);

test('the checkout page first asks for missing customer details and stores these details [D-11]', async ({
  api,
}) => {
  const { path, subscriptionId } = await openCheckout(api, {
    customerDetails: { name: 'Ada' },
    phoneNumberRequired: true,
  });
  const asked = await browse(api, path);
  expect(asked.text).toContain(`<form method="post" action="${path}">`);
  const [hidden, ...fields] = fieldsOf(asked.text);
  expect(fields).toEqual([
    { name: 'email', label: 'E-mail address', autocomplete: 'email' },
    { name: 'contactNumber', label: 'Phone number', autocomplete: 'tel' },
  ]);
  const form_token = hidden!.value!;

  const wrong = await postForm(api, path, {
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

  const right = await postForm(api, path, {
    form_token,
    name: 'Mallory',
    email: 'ada@example.com',
    contactNumber: '+44 20 7946 0000',
  });
  expectSeeOther(right, path);
  expect(fieldsOf((await browse(api, path)).text).map(({ label }) => label)).toContain(
    'Card number',
  );
  const [intent] = await intentsOf(api, subscriptionId);
  const details = { name: 'Ada', email: 'ada@example.com', contactNumber: '+44 20 7946 0000' };
  expect(intent!.customerDetails).toEqual(details);
  const customer = await api.call('GET', `/customer/${intent!.customerId}`);
  expect(customer.json).toEqual({ customerId: intent!.customerId, customerDetails: details });
});

test('the checkout page does not ask for details that the named customer already has [D-11]', async ({
  api,
}) => {
  const bob = { name: 'Bob', email: 'bob@example.com' };
  const customerId = await makeCustomer(api, 'merchant', bob);
  const { path } = await openCheckout(api, { customerDetails: {}, customerId });
  expect(fieldsOf((await browse(api, path)).text)).toContainEqual({
    name: 'name',
    label: 'Name on card',
    autocomplete: 'cc-name',
    value: 'Bob',
  });
});

test.for<[string, Record<string, string> | null, Record<string, string>]>([
  ['without its token', {}, {}],
  ['with a wrong token', { form_token: 'x' }, {}],
  ['from another site', null, { 'sec-fetch-site': 'cross-site' }],
  ['from another origin', null, { origin: 'https://evil.example' }],
])(
  'a form with the payer’s details that comes %s is refused and stores nothing',
  async ([, fields, headers], { api }) => {
    const { path, subscriptionId } = await openCheckout(api, { customerDetails: {} });
    const form_token = fieldsOf((await browse(api, path)).text)[0]!.value!;
    const answer = await postForm(
      api,
      path,
      { ...(fields ?? { form_token }), name: 'Eve', email: 'eve@example.com' },
      headers,
    );
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('<h1>This form is not valid any more</h1>');
    const [intent] = await intentsOf(api, subscriptionId);
    expect(intent!.customerDetails).toEqual({});
  },
);

test('a form with the payer’s details is accepted with Origin: null, which browsers send under the policy no-referrer', async ({
  api,
}) => {
  const { path } = await openCheckout(api, { customerDetails: {} });
  const form_token = fieldsOf((await browse(api, path)).text)[0]!.value!;
  const answer = await postForm(
    api,
    path,
    { form_token, name: 'Ann', email: 'ann@example.com' },
    { origin: 'null', 'sec-fetch-site': 'same-origin' },
  );
  expectSeeOther(answer, path);
});

test('the log contains no checkout token and no payment token [D-§8]', async ({ api }) => {
  const { path } = await openCheckout(api);
  await browse(api, path);
  await comeBack(api, path, 'payment_token=tok_in_no_log');
  const lines = JSON.stringify(api.logLines);
  expect(lines).toContain('GET /checkout/:token/return');
  expect(lines).not.toContain(path.split('/').at(-1));
  expect(lines).not.toContain('tok_in_no_log');
});

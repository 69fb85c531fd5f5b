import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { customers } from '../../../db/schema/customers.ts';
import { setupMethods } from '../../../db/schema/checkouts.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { consentOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import {
  expectSeeOther,
  hasCardForm,
  headingOf,
  refreshOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import { setupBody } from '../../support/fixtures/payments.ts';

const LIVE = { mode: 'live' } as const;

/** Creates a setup session and returns a visit of its page. Sends no request to the page. */
async function open(api: ApiEnvironment, changes: object = {}) {
  const made = await api.call('POST', '/setup-method/create', { body: setupBody(changes) });
  expect(made.status).toBe(200);
  const { setupMethodId, fwdUrl } = made.json as { setupMethodId: string; fwdUrl: string };
  return { setupMethodId, ...visit(api, fwdUrl) };
}

async function rowOf(api: ApiEnvironment, setupMethodId: string) {
  const [row] = await api.db.select().from(setupMethods).where(eq(setupMethods.id, setupMethodId));
  return row!;
}

test('the setup page says that nothing is charged [IF-2.5]', async ({ api }) => {
  const { look } = await open(api);
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([200, 'Save a card with Acme Ltd']);
  expect(linesOf(page.text)).toEqual([['Charged today', 'US$0.00']]);
  expect(page.text).toContain('<h2>Your card</h2>');
  expect(page.text).toContain('<button type="submit">Save card</button>');
  expect(consentOf(page.text)).toBe(
    'By continuing, you allow Acme Ltd to charge this card later for payments that you agree with ' +
      'them, until you withdraw this permission.',
  );
});

test('a saved card is shown with a button to callbackUrl with four parameters [D-44, IF-4.13]', async ({
  api,
}) => {
  const { setupMethodId, give } = await open(api, {
    callbackUrl: 'https://merchant.example/s?a=1#b',
  });
  const page = await give('payment_token=tok_saved_1');
  const { status, paymentMethodId, customerId } = await rowOf(api, setupMethodId);
  expect(status).toBe('SUCCESS');
  expect(headingOf(page)).toBe('Your card was saved');
  expect(page.text).toContain('Nothing was charged now.');
  expect(linesOf(page.text)).toEqual([
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 4242'],
    ['Date', expect.stringMatching(/^\d+ \w+ \d{4}$/)],
    ['Reference', setupMethodId],
  ]);
  expect(refreshOf(page)).toBeUndefined();
  expect(page.text).toContain(
    `<a class="button" href="https://merchant.example/s?a=1&amp;setup_method_id=${setupMethodId}` +
      `&amp;pm_id=${paymentMethodId}&amp;customer_id=${customerId}&amp;status=SUCCESS#b">` +
      'Continue to Acme Ltd</a>',
  );
  expect(api.orders.charges).toEqual([]);
  expect(await eventTypes(api, setupMethodId)).toEqual(['setup_method.success']);
});

test('after five declined cards, a setup session of a live merchant is FAILED and its page takes no more cards', async ({
  createApi,
}) => {
  const api = await createApi(LIVE);
  const { setupMethodId, give, comeBack, look, path } = await open(api);
  for (let card = 1; card <= 4; card += 1) await give(`payment_token=tok-card_declined-${card}`);
  expect((await rowOf(api, setupMethodId)).status).toBe('CREATED');
  const locked = await give('payment_error=invalid_cvc&payment_error_id=fifth');
  expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
  expect(hasCardForm(locked)).toBe(false);
  expect(locked.text).toContain(`setup_method_id=${setupMethodId}`);
  expect(locked.text).toContain('status=FAILED');
  expect((await rowOf(api, setupMethodId)).status).toBe('FAILED');

  expectSeeOther(await comeBack('payment_token=tok_good_sixth'), path);
  expect((await rowOf(api, setupMethodId)).status).toBe('FAILED');
  expect((await look()).status).toBe(403);
});

test('a fifth card is not counted as declined while Temporal is unavailable, and a later load saves the card', async ({
  createApi,
}) => {
  const api = await createApi(LIVE);
  const { setupMethodId, give, comeBack, look, path } = await open(api);
  for (let card = 1; card <= 4; card += 1) await give(`payment_token=tok-card_declined-${card}`);
  api.orders.faults.isDown = true;
  expect((await comeBack('payment_token=tok_fifth_away')).status).toBe(503);
  api.orders.faults.isDown = false;
  expect((await look()).status).toBe(403);
  expect((await rowOf(api, setupMethodId)).status).toBe('CREATED');
  expectSeeOther(await comeBack('payment_token=tok_fifth_away'), path);
  expect((await rowOf(api, setupMethodId)).status).toBe('SUCCESS');
});

test('the cancel link leads to callbackUrl with status CREATED [D-44]', async ({ api }) => {
  const { setupMethodId, look } = await open(api);
  const { customerId } = await rowOf(api, setupMethodId);
  expect((await look()).text).toContain(
    `<a href="https://merchant.example/saved?setup_method_id=${setupMethodId}` +
      `&amp;customer_id=${customerId}&amp;status=CREATED">Cancel and return to Acme Ltd</a>`,
  );
});

test('an expired setup page answers 410 with status CANCELLED and takes no card [D-§7]', async ({
  api,
}) => {
  const { setupMethodId, look, comeBack, path } = await open(api);
  const { expiresAt, createdAt } = await rowOf(api, setupMethodId);
  api.clock.aheadMs += expiresAt - createdAt + 1_000;
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([410, 'This page has expired']);
  expect(page.text).toContain('status=CANCELLED');
  expectSeeOther(await comeBack('payment_token=tok_too_late_setup'), path);
  expect((await rowOf(api, setupMethodId)).paymentMethodId).toBeNull();
});

test('the setup page first asks for missing details and stores these details in session and customer [D-11]', async ({
  api,
}) => {
  const { setupMethodId, look, post, path } = await open(api, {
    billingDetails: { email: 'ada@example.com' },
    phoneNumberRequired: true,
  });
  expect((await look()).text).toContain('<button type="submit">Continue to your card</button>');
  const wrong = await post({ name: ' ', contactNumber: 'none' });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain('<p class="problem" id="name-problem">Enter your name.</p>');
  const given = { name: 'Ada', contactNumber: '+44 20 7946 0000' };
  expectSeeOther(await post(given), path);
  expect(hasCardForm(await look())).toBe(true);
  const details = { email: 'ada@example.com', ...given };
  const row = await rowOf(api, setupMethodId);
  expect(row.billingDetails).toEqual(details);
  const [customer] = await api.db
    .select({ details: customers.details })
    .from(customers)
    .where(eq(customers.id, row.customerId));
  expect(customer!.details).toEqual(details);
});

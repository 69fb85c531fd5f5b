import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { declarationRows } from '../../../db/repositories/customers/declarations.ts';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { declarations } from '../../../db/schema/declarations.ts';
import { handleDeclaration } from '../../../temporal/declarations.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventually } from '../../support/eventually.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import { intentBody } from '../../support/fixtures/payments.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { ADA, openDeclaration } from '../../support/hosted-pages/declarations.ts';
import { fieldsOf, linesOf } from '../../support/hosted-pages/page-text.ts';
import { browse, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const NOON = Date.UTC(2027, 0, 31, 12);

/** A paid monthly subscription on a clock at noon of 31 January 2027. */
async function paid(api: ApiEnvironment, changes: Record<string, unknown> = {}) {
  const testClockId = await createClock(api, NOON);
  const made = await createSubscription(api, { testClockId, ...changes });
  const { give } = visit(api, made.fwdUrl);
  const receipt = await give(`payment_token=tok_${made.subscriptionId}_4242`);
  return { ...made, receipt };
}

type Shown = Record<string, unknown>;

/** Reads the merchant's latest declarations when all are handled. */
async function handled(api: ApiEnvironment, count: number): Promise<Shown[]> {
  return eventually(async () => {
    const { json } = await api.call('GET', `/declarations?limit=${count}`);
    const { data } = json as { data: Shown[] };
    expect(data.map(({ outcome }) => outcome)).not.toContain('pending');
    return data;
  });
}

const read = async (api: ApiEnvironment, id: string) =>
  (await api.call('GET', `/subscription/get-subscription/${id}`)).json as Shown;

const allow = (api: ApiEnvironment) =>
  changeSettings(api.db, api.merchant.merchantId, { declarations: 'execute' });

test('a payer cancels without login on the page that the receipt links, and keeps the confirmation [D-62]', async ({
  api,
}) => {
  await allow(api);
  const { subscriptionId, receipt } = await paid(api);
  const { merchantId } = api.merchant;
  const [, reference = ''] =
    new RegExp(`href="/m/${merchantId}/cancel\\?reference=(in_\\w+)"`).exec(receipt.text) ?? [];
  expect(linesOf(receipt.text)).toContainEqual(['Reference', reference]);
  const query = `?reference=${reference}`;
  const { page, declare } = await openDeclaration(api, 'cancellation', { query });
  expect(headingOf(page)).toBe('Cancel a contract with Acme Ltd');
  expect(page.text).toContain('<button type="submit">Cancel now</button>');
  const given = Object.fromEntries(fieldsOf(page.text).map(({ name, value }) => [name, value]));
  expect(given['reference']).toBe(reference);
  const confirmation = await declare({ ...ADA, reference });
  expect(headingOf(confirmation)).toBe('Your cancellation was received');
  const [declaration] = await handled(api, 1);
  const declarationId = String(declaration?.['declarationId']);
  expect(linesOf(confirmation.text)).toEqual([
    ['Declaration', 'I cancel this contract.'],
    ['Number of the contract', reference],
    ['Name', 'Ada Example'],
    ['E-mail address', 'ada@example.com'],
    ['End of the contract', 'The earliest possible date'],
    ['Received on', expect.stringMatching(/^\d+ \w+ \d{4} at \d\d:\d\d$/)],
    ['Number of this confirmation', declarationId],
  ]);
  const copy = await browse(api, `${confirmation.path}?download`);
  expect(copy.headers['content-disposition']).toBe(`attachment; filename="${declarationId}.html"`);
  expect(linesOf(copy.text)).toEqual(linesOf(confirmation.text));

  expect(declaration).toMatchObject({
    kind: 'cancellation',
    ...ADA,
    reference,
    language: 'en',
    outcome: 'executed',
    subscriptionId,
    intentId: reference,
    isInWithdrawalPeriod: null,
    refunds: [],
  });
  expect(await read(api, subscriptionId)).toMatchObject({
    status: 'ACTIVE',
    cancelAt: Date.UTC(2027, 1, 28, 12),
  });
  expect((await eventTypes(api, subscriptionId)).slice(-2)).toEqual([
    'subscription.cancel_scheduled',
    'cancellation.received',
  ]);
  const { json } = await api.call('GET', `/subscription/timeline/${subscriptionId}`);
  const { data } = json as { data: Shown[] };
  expect(data.at(-1)).toMatchObject({ actor: 'payer', why: 'the payer asked for it' });
});

test('a withdrawal in time ends the subscription at once and names the refunds, but refunds nothing [D-62]', async ({
  api,
}) => {
  await allow(api);
  const { subscriptionId } = await paid(api, { receiptId: 'order 7' });
  const { declare, page } = await openDeclaration(api, 'withdrawal');
  expect(page.text).toContain('<button type="submit">Confirm withdrawal</button>');
  await declare({ name: 'A. Example', email: 'ADA@example.com', reference: 'order 7' });
  const [declaration] = await handled(api, 1);
  expect(declaration).toMatchObject({
    kind: 'withdrawal',
    outcome: 'executed',
    subscriptionId,
    isInWithdrawalPeriod: true,
  });
  const { refunds = [] } = (declaration ?? {}) as { refunds?: { amount: number }[] };
  expect(refunds.map(({ amount }) => amount)).toEqual([1_999]);
  expect(await read(api, subscriptionId)).toMatchObject({ status: 'ENDED' });
  expect((await eventTypes(api, subscriptionId)).slice(-2)).toEqual([
    'subscription.ended',
    'withdrawal.received',
  ]);
  const refunded = await api.call('POST', '/payments/merchant/refund', { body: refunds[0] });
  expect(refunded.json).toMatchObject({ amount: 1_999 });
});

test('by default the merchant is only told, also of a payment [D-62]', async ({ createApi }) => {
  const api = await createApi();
  const { subscriptionId } = await paid(api);
  const made = await api.call('POST', '/payments/create-intent', { body: intentBody() });
  const { xIntentId, fwdUrl } = made.json as { xIntentId: string; fwdUrl: string };
  await visit(api, fwdUrl).give('payment_token=tok_pays_4242');
  const cancellation = await openDeclaration(api, 'cancellation');
  await cancellation.declare({ ...ADA, reference: subscriptionId });
  const withdrawal = await openDeclaration(api, 'withdrawal');
  await withdrawal.declare({ ...ADA, reference: xIntentId });
  const [ofPayment, ofSubscription] = await handled(api, 2);
  expect(ofSubscription).toMatchObject({ outcome: 'told', subscriptionId, refunds: [] });
  expect(ofPayment).toMatchObject({
    outcome: 'told',
    subscriptionId: null,
    intentId: xIntentId,
    isInWithdrawalPeriod: true,
    refunds: [{ xIntentId, amount: 2_500 }],
  });
  expect(await read(api, subscriptionId)).not.toHaveProperty('cancelAt');
  expect((await eventTypes(api, xIntentId)).at(-1)).toBe('withdrawal.received');
});

test('a one-time charge is a contract of its own, and the living one of several subscriptions counts [D-62]', async ({
  api,
}) => {
  await allow(api);
  const receiptId = 'member-77';
  const given = await paid(api, { receiptId });
  await api.call('POST', '/subscription/merchant/cancel', {
    body: { subscriptionId: given.subscriptionId },
  });
  const { subscriptionId } = await paid(api, { receiptId });
  const charged = await api.call('POST', '/subscription/merchant/one-time-charge', {
    body: { subscriptionId, amount: 500, currency: 'USD' },
  });
  const { intentId } = charged.json as { intentId: string };
  const ofCharge = await openDeclaration(api, 'withdrawal');
  await ofCharge.declare({ ...ADA, reference: intentId });
  const ofMember = await openDeclaration(api, 'cancellation');
  await ofMember.declare({ ...ADA, reference: receiptId });
  const [cancellation, withdrawal] = await handled(api, 2);
  expect(withdrawal).toMatchObject({
    outcome: 'told',
    subscriptionId: null,
    intentId,
    isInWithdrawalPeriod: true,
    refunds: [{ xIntentId: intentId, amount: 500 }],
  });
  expect(cancellation).toMatchObject({ outcome: 'executed', subscriptionId });
  const again = await openDeclaration(api, 'cancellation');
  await again.declare({ ...ADA, reference: receiptId });
  expect(await handled(api, 1)).toMatchObject([{ outcome: 'executed', subscriptionId }]);
});

test('a good cause of 1,000 Japanese characters is kept [D-62]', async ({ api }) => {
  const reason = '雨'.repeat(1_000);
  const { declare } = await openDeclaration(api, 'cancellation', { locale: 'ja' });
  await declare({ ...ADA, reference: 'long', kind: 'cause', reason });
  expect(await handled(api, 1)).toMatchObject([{ reason, language: 'ja', outcome: 'unmatched' }]);
});

test('unknown references, another payer’s e-mail address and another merchant’s contract get the same answer, and are recorded [D-62]', async ({
  api,
}) => {
  await allow(api);
  const { subscriptionId } = await paid(api);
  const before = await eventTypes(api, subscriptionId);
  const given = [
    { ...ADA, reference: 'sub_0002sSOLuQx1oB9bUeVtYw3c' },
    { ...ADA, email: 'eve@example.com', reference: subscriptionId },
    { ...ADA, reference: 'what I bought in May' },
  ];
  const known = await (
    await openDeclaration(api, 'withdrawal')
  ).declare({ ...ADA, reference: 'sub_0002sSOLuQx1oB9bUeVtYw3d' });
  const shape = ({ status, text }: { status: number; text: string }) => [
    status,
    text.replaceAll(/<dd>.*?<\/dd>|nonce="[^"]*"|declaration\/\w+/g, '').length,
  ];
  for (const fields of given) {
    const { declare } = await openDeclaration(api, 'withdrawal');
    expect(shape(await declare(fields))).toEqual(shape(known));
  }
  const all = await handled(api, 4);
  expect(all.map(({ outcome, reference }) => [outcome, reference])).toEqual([
    ['unmatched', 'what I bought in May'],
    ['unmatched', subscriptionId],
    ['unmatched', 'sub_0002sSOLuQx1oB9bUeVtYw3c'],
    ['unmatched', 'sub_0002sSOLuQx1oB9bUeVtYw3d'],
  ]);
  const [first] = all;
  expect(await eventTypes(api, String(first?.['declarationId']))).toEqual(['withdrawal.received']);
  expect(await eventTypes(api, subscriptionId)).toEqual(before);
  expect(await read(api, subscriptionId)).toMatchObject({ status: 'ACTIVE' });
});

test('a second click declares once, and another declaration of the same form declares twice [D-62]', async ({
  api,
}) => {
  const { declare } = await openDeclaration(api, 'cancellation');
  const [first, second] = await Promise.all([
    declare({ ...ADA, reference: 'twice' }),
    declare({ ...ADA, reference: 'twice' }),
  ]);
  expect(second.path).toBe(first.path);
  const other = await declare({ ...ADA, reference: 'once more' });
  expect(other.path).not.toBe(first.path);
  expect((await handled(api, 2)).map(({ reference }) => reference)).toEqual(['once more', 'twice']);
});

test('a wrong form is shown again with what was typed, and declares nothing [D-62]', async ({
  api,
}) => {
  const before = await api.db.$count(declarations);
  const { submit } = await openDeclaration(api, 'cancellation');
  const page = await submit({ name: 'Ada', email: 'ada@', kind: 'cause', endOn: '31.3.' });
  expect(page.status).toBe(400);
  expect(page.text).toContain('<title>Error: Cancel a contract with Acme Ltd · Acme Ltd</title>');
  expect([...page.text.matchAll(/<p class="problem"[^>]*>([^<]*)</g)].map(([, it]) => it)).toEqual([
    'Enter an e-mail address, such as ann@example.com.',
    'Enter the number of the contract. It is on your receipt.',
    'Enter the good cause, in at most 1,000 characters.',
    'Enter a date, such as 2027-03-31.',
  ]);
  expect(fieldsOf(page.text)).toContainEqual(
    expect.objectContaining({ name: 'name', value: 'Ada' }),
  );
  const foreign = await submit({ ...ADA, reference: 'sub_1', form_token: 'guessed' });
  expect(foreign.status).toBe(403);
  expect(await api.db.$count(declarations)).toBe(before);
});

test('in French a summary comes before the cancellation, from which the payer can go back [D-62]', async ({
  api,
}) => {
  const before = await api.db.$count(declarations);
  const { page, submit, declare } = await openDeclaration(api, 'cancellation', { locale: 'fr' });
  const summary = await submit({ ...ADA, reference: 'sub_1' });
  expect(page.text).toContain('<button type="submit">Continuer</button>');
  expect([summary.status, headingOf(summary)]).toEqual([200, 'Vérifiez votre déclaration']);
  expect(summary.text).toContain('<button type="submit">Notification de la résiliation</button>');
  const again = await submit({ ...ADA, reference: 'sub_1', checked: 'yes', change: 'yes' });
  expect(headingOf(again)).toBe('Résilier un contrat conclu avec Acme Ltd');
  expect(await api.db.$count(declarations)).toBe(before);
  const declared = await declare({ ...ADA, reference: 'sub_1', checked: 'yes' });
  expect(headingOf(declared)).toBe('Votre résiliation a été reçue');
});

test('after 20 declarations in an hour only this client address waits [D-62]', async ({ api }) => {
  const address = '203.0.113.77';
  const { declare, submit } = await openDeclaration(api, 'withdrawal', { address });
  for (let sent = 0; sent < 20; sent += 1) await declare({ ...ADA, reference: `try ${sent}` });
  const refused = await submit({ ...ADA, reference: 'try 20' });
  expect([refused.status, headingOf(refused)]).toEqual([429, 'Too many tries']);
  expect((await submit({ ...ADA, reference: 'try 3' })).status).toBe(303);
  const other = await openDeclaration(api, 'withdrawal');
  expect((await other.submit({ ...ADA, reference: 'try 20' })).status).toBe(303);
});

test('an unknown merchant and an unknown confirmation have no page, and a merchant sees only its own declarations [D-62]', async ({
  api,
}) => {
  const { merchantId } = api.merchant;
  for (const path of [
    '/m/mer_0002sSOLuA3bC5dE7fG9hJ1k/cancel',
    '/m/none/withdraw',
    `/m/${merchantId}/declaration/0000000000000000000000`,
  ]) {
    expect((await browse(api, path)).status).toBe(404);
  }
  const { json } = await api.call('GET', '/declarations', { as: api.other });
  expect(json).toEqual({ data: [], metadata: {} });
  const { path } = await (
    await openDeclaration(api, 'withdrawal')
  ).declare({ ...ADA, reference: 'sub_1' });
  const elsewhere = path.replace(merchantId, api.other.merchantId);
  expect((await browse(api, elsewhere)).status).toBe(404);
});

test('a declaration that was not executed because Temporal is down is executed later, once, also after a crash and by two processes [D-62]', async ({
  api,
}) => {
  await allow(api);
  const { subscriptionId } = await paid(api);
  const before = await eventTypes(api, subscriptionId);
  api.workflows.faults.isDown = true;
  const { declare } = await openDeclaration(api, 'cancellation');
  expect((await declare({ ...ADA, reference: subscriptionId })).status).toBe(200);
  await eventually(async () =>
    expect(api.logLines).toContainEqual(
      expect.objectContaining({ msg: 'declaration not handled; the sweep will handle it' }),
    ),
  );
  const isThis = eq(declarations.reference, subscriptionId);
  const [row] = await api.db.select().from(declarations).where(isThis);
  const { merchantId, id = '', outcome } = row ?? {};
  expect([merchantId, outcome]).toEqual([api.merchant.merchantId, null]);

  api.workflows.faults.isDown = false;
  // The process that executed the cancellation died before it recorded this.
  const ref = { merchantId: api.merchant.merchantId, subscriptionId };
  const cancel = { kind: 'cancel', commandId: id, reason: 'cancelled', atPeriodEnd: true } as const;
  await api.workflows.execute(ref, { ...cancel, actor: 'payer' });
  const deps = {
    rows: declarationRows(api.db),
    workflows: api.workflows,
    wakeStream: api.workflows.webhooks.wakeStream,
  };
  const handle = () => handleDeclaration(deps, { merchantId: ref.merchantId, id });
  await Promise.all([handle(), handle()]);
  await handle();
  const [handledRow] = await api.db.select().from(declarations).where(isThis);
  expect(handledRow).toMatchObject({ outcome: 'executed', subscriptionId });
  expect((await eventTypes(api, subscriptionId)).slice(before.length)).toEqual([
    'subscription.cancel_scheduled',
    'cancellation.received',
  ]);
});

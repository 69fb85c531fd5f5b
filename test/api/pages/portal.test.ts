import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { subscriptionCommands } from '../../../db/schema/subscriptions.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventsOf } from '../../support/fixtures/events.ts';
import { createSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { linesOf, spaced } from '../../support/hosted-pages/page-text.ts';
import { openPortal } from '../../support/hosted-pages/portal.ts';
import { browse, expectSeeOther, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const NOON = Date.UTC(2027, 0, 31, 12);
const RIGHTS = ['card', 'cancel', 'pause'] as const;

/** A paid monthly subscription of a new customer, on a clock at noon of 31 January 2027. */
async function paid(api: ApiEnvironment) {
  const testClockId = await createClock(api, NOON);
  const productPage = { name: 'Garden Letters' };
  const made = await createSubscription(api, { testClockId, productPage });
  await visit(api, made.fwdUrl).give(`payment_token=tok_${made.subscriptionId}_4242`);
  const { customerId } = await read(api, made.subscriptionId);
  return { ...made, customerId: String(customerId) };
}

const read = async (api: ApiEnvironment, id: string) =>
  (await api.call('GET', `/subscription/get-subscription/${id}`)).json as Record<string, unknown>;

const allow = (api: ApiEnvironment) =>
  changeSettings(api.db, api.merchant.merchantId, { portal: [...RIGHTS] });

const buttonsOf = ({ text }: { text: string }) =>
  [...text.matchAll(/<button type="submit">([^<]*)<|<a href="[^"]*">([^<]*)</g)].map(
    ([, button, link]) => spaced(button ?? link ?? ''),
  );

describe('the link to a payer’s own page [D-62]', () => {
  test('opens by one button in one browser, for an hour', async ({ api }) => {
    const { customerId } = await paid(api);
    const { path, first, taken, click, look, expiresAt } = await openPortal(api, customerId);
    expect(headingOf(first)).toBe('Your subscriptions with Acme Ltd');
    const until = new Date(expiresAt).toISOString().slice(11, 16);
    expect(spaced(first.text)).toContain(
      `The page opens in this browser only, until ${until} (UTC).`,
    );
    expectSeeOther(await click(), path);
    expectSeeOther(taken, path);
    expect(expiresAt - Date.now()).toBeGreaterThan(3_590_000);
    expect((await look()).status).toBe(200);
    const elsewhere = await browse(api, path);
    expect([elsewhere.status, headingOf(elsewhere)]).toEqual([410, 'This page has expired']);
    const stolen = await browse(api, path, {
      headers: { cookie: 'portal=0000000000000000000000' },
    });
    expect(stolen.status).toBe(410);
    api.clock.aheadMs = 3_601_000;
    expect((await look()).status).toBe(410);
  });

  test('is refused for an unknown customer and another merchant’s customer', async ({ api }) => {
    const { customerId } = await paid(api);
    for (const [id, as] of [
      ['cus_0002sSOLtvYJpjM0P8rC2uQe', api.merchant],
      [customerId, api.other],
    ] as const) {
      const { status, json } = await api.call('POST', '/customer/portal', {
        body: { customerId: id },
        as,
      });
      expect([status, json]).toEqual([
        400,
        expect.objectContaining({ errorCode: 'resource_not_found' }),
      ]);
    }
    expect((await browse(api, '/portal/0000000000000000000000')).status).toBe(404);
  });
});

describe('a payer’s own page [D-62]', () => {
  test('shows subscriptions, the next charge and receipts, and by default changes only the card', async ({
    createApi,
  }) => {
    const api = await createApi();
    const { customerId, subscriptionId } = await paid(api);
    const returnUrl = 'https://merchant.example/account';
    const { look, press } = await openPortal(api, customerId, { returnUrl });
    const page = await look();
    expect(linesOf(page.text)).toEqual([
      ['Card', 'Visa ending in 4242'],
      ['Next payment', 'US$19.99 on 28 February 2027'],
    ]);
    expect(buttonsOf(page)).toEqual([
      'Change your card',
      'US$19.99 on 31 January 2027',
      'Return to Acme Ltd',
    ]);
    const [, receiptAt = ''] = /href="[^"]*(\/receipt\/in_\w+)"/.exec(page.text) ?? [];
    const receipt = await look(receiptAt);
    expect(linesOf(receipt.text)).toContainEqual(['Paid', 'US$19.99']);
    expectSeeOther(await press(`/${subscriptionId}/cancel`), expect.any(String) as string);
    expect(await read(api, subscriptionId)).not.toHaveProperty('cancelAt');
  });

  test('cancels at the end of the period after one step, keeps, pauses and resumes, each as the payer', async ({
    api,
  }) => {
    await allow(api);
    const { customerId, subscriptionId } = await paid(api);
    const before = (await eventsOf(api, subscriptionId)).length;
    const { look, press } = await openPortal(api, customerId);
    const step = await look(`/${subscriptionId}/cancel`);
    expect(spaced(step.text)).toContain(
      'It ends on 28 February 2027, and nothing more will be charged.',
    );
    expect(buttonsOf(step)).toEqual(['Cancel subscription', 'Keep subscription']);
    await press(`/${subscriptionId}/cancel`);
    await press(`/${subscriptionId}/cancel`);
    expect(await read(api, subscriptionId)).toMatchObject({ cancelAt: Date.UTC(2027, 1, 28, 12) });
    const cancelled = await look();
    expect(linesOf(cancelled.text)).toContainEqual(['Ends on', '28 February 2027']);
    expect(buttonsOf(cancelled)).toContain('Keep subscription');
    await press(`/${subscriptionId}/keep`);
    await press(`/${subscriptionId}/pause`);
    expect(await read(api, subscriptionId)).toMatchObject({ status: 'PAUSED' });
    expect(linesOf((await look()).text)).toContainEqual([
      'Next payment',
      'None while the subscription is paused',
    ]);
    await press(`/${subscriptionId}/resume`);
    expect(await read(api, subscriptionId)).toMatchObject({
      status: 'ACTIVE',
      nextPaymentDate: Date.UTC(2027, 1, 28, 12),
    });
    const events = (await eventsOf(api, subscriptionId)).slice(before);
    expect(
      events.map(({ type, body }) => [type, (JSON.parse(body) as { actor: string }).actor]),
    ).toEqual([
      ['subscription.cancel_scheduled', 'payer'],
      ['subscription.resumed', 'payer'],
      ['subscription.paused', 'payer'],
      ['subscription.active', 'payer'],
    ]);
    const commands = await api.db
      .select()
      .from(subscriptionCommands)
      .where(eq(subscriptionCommands.subscriptionId, subscriptionId));
    // The checkout, and one command for each change: the second click repeated the first.
    expect(commands).toHaveLength(5);
  });

  test('has no pause for a payment that is due, and no cancellation of what has ended', async ({
    api,
  }) => {
    await allow(api);
    const { subscriptionId } = await subscriptionIn(api, 'UNPAID');
    const { customerId } = await read(api, subscriptionId);
    const { look, press } = await openPortal(api, String(customerId));
    expect(buttonsOf(await look())).not.toContain('Pause subscription');
    await press(`/${subscriptionId}/pause`);
    expect(await read(api, subscriptionId)).toMatchObject({ status: 'UNPAID' });
    expect(spaced((await look(`/${subscriptionId}/cancel`)).text)).toContain('It ends at once,');
    await press(`/${subscriptionId}/cancel`);
    expect(await read(api, subscriptionId)).toMatchObject({ status: 'ENDED' });
    expectSeeOther(await look(`/${subscriptionId}/cancel`), expect.any(String) as string);
  });

  test('opens and changes nothing of another customer', async ({ api }) => {
    await allow(api);
    const mine = await paid(api);
    const other = await paid(api);
    const theirs = await openPortal(api, other.customerId);
    const { look, press } = await openPortal(api, mine.customerId);
    const [, receiptAt = ''] =
      /href="[^"]*(\/receipt\/in_\w+)"/.exec((await theirs.look()).text) ?? [];
    expect((await look(receiptAt)).status).toBe(404);
    expect((await look('/receipt/%00')).status).toBe(404);
    expect((await look(`/${other.subscriptionId}/cancel`)).status).toBe(404);
    expect((await press(`/${other.subscriptionId}/cancel`)).status).toBe(404);
    expect(await read(api, other.subscriptionId)).not.toHaveProperty('cancelAt');
    const page = await look();
    expect(page.text).not.toContain(other.subscriptionId);
  });
});

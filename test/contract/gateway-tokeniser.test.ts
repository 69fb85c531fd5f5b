import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TEST_CARDS } from '../../gateways/sandbox/test-cards.ts';
import { RETURN_ORIGIN, startSandbox } from './gateway-sandbox-harness.ts';
import type { Sandbox } from './gateway-sandbox-harness.ts';

let sandbox: Sandbox;
let sql: postgres.Sql;
// The time of the gateway's clock, in epoch ms. Tokens and cards expire by this clock.
let now = Date.UTC(2026, 10, 20);
const failures: string[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({
    now: () => now,
    onFailure: (error, route) => failures.push(`${route}: ${String(error)}`),
  });
  sql = postgres(sandbox.database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await sandbox.close();
  expect(failures).toEqual([]);
});

/** Every row of every table of the gateway, as text. */
async function everyRow(): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = 'sandbox_gateway' order by 1`;
  expect(tables.map((table) => table.name)).toEqual([
    'charge',
    'forced_decline',
    'method',
    'refund',
    'token',
  ]);
  const rows: string[] = [];
  for (const { name } of tables) {
    const found = await sql<{ line: string }[]>`
      select t::text as line from ${sql(`sandbox_gateway.${name}`)} t`;
    rows.push(...found.map((row) => row.line));
  }
  return rows.join('\n');
}

/** A number that passes the Luhn check and is not published. */
const UNPUBLISHED = '4532015112830366';

const locationOf = (response: Response) => new URL(response.headers.get('location') ?? '');

describe('POST /tokenise', () => {
  it('redirects the browser to the return URL with a one-time token and without the error of an earlier try [D-61]', async () => {
    const response = await sandbox.submitCard({
      return_url: `${RETURN_ORIGIN}/checkout/cs_1?step=2&payment_error=card_declined&payment_error_id=1`,
    });
    expect(response.status).toBe(303);
    const location = locationOf(response);
    expect(location.origin + location.pathname).toBe(`${RETURN_ORIGIN}/checkout/cs_1`);
    expect([...location.searchParams.keys()]).toEqual(['step', 'payment_token']);
    expect(location.searchParams.get('payment_token')).toMatch(/^ptk_[\w-]{32}$/);
  });

  it('answers with headers against framing, caching and referrers [D-61]', async () => {
    const { headers } = await sandbox.submitCard({});
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
  });

  it('refuses a number outside the test cards and stores no row [D-61]', async () => {
    const before = await everyRow();
    // All these numbers pass the Luhn check.
    for (const number of ['4532015112830366', '4532 0151 1283 0366', '6011-0000-0000-0004']) {
      const location = locationOf(await sandbox.submitCard({ number }));
      expect(location.searchParams.get('payment_error')).toBe('incorrect_card_number');
    }
    const after = await everyRow();
    expect(after).toBe(before);
    expect(after).not.toContain('4532015112830366');
  });

  it('stores only brand, country, last four digits and expiry of an accepted card [D-61]', async () => {
    await sandbox.submitCard({ session: 'cs_kept', name: 'Grace Kept', cvc: '987' });
    const columns = await sql<{ name: string }[]>`
      select column_name as name from information_schema.columns
      where table_schema = 'sandbox_gateway' and table_name = 'token' order by ordinal_position`;
    expect(columns.map((column) => column.name)).toEqual([
      'token_hash',
      'session_hash',
      'brand',
      'country',
      'last_four',
      'expiry_month',
      'expiry_year',
      'code',
      'code_when',
      'advice',
      'expires_at',
      'used_by_key',
    ]);
    const rows = await everyRow();
    for (const secret of ['4242424242424242', '4242 4242', 'Grace', 'cs_kept']) {
      expect(rows).not.toContain(secret);
    }
    expect(rows).toContain('visa,US,4242,12,2034');
  });

  it('gives two refusals of one card different ids, also when the return URL has the first id [D-61]', async () => {
    const first = locationOf(await sandbox.submitCard({ number: UNPUBLISHED }));
    const second = locationOf(
      await sandbox.submitCard({ number: UNPUBLISHED, return_url: first.href }),
    );
    const idsOf = (location: URL) => location.searchParams.getAll('payment_error_id');
    expect(idsOf(second)).toHaveLength(1);
    expect(idsOf(second)).not.toEqual(idsOf(first));
  });

  it.each([
    ['another host', 'https://evil.example/checkout'],
    ['another port', 'http://127.0.0.1:8081/checkout'],
    ['another scheme', 'https://127.0.0.1:8080/checkout'],
    ['a name before an @', 'http://127.0.0.1:8080@evil.example/'],
    ['credentials', 'http://user:pw@127.0.0.1:8080/'],
    ['a script', 'javascript:alert(1)'],
    ['only a path', '/checkout/cs_1'],
    ['an empty text', ''],
  ])('answers 400 without a redirect when the return URL has %s [D-61]', async (_, return_url) => {
    const before = await everyRow();
    const response = await sandbox.submitCard({ return_url });
    expect(response.status).toBe(400);
    expect(response.headers.get('location')).toBeNull();
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const page = await response.text();
    expect(page).toContain('does not lead back to an allowed site');
    expect(page).not.toContain('4242');
    expect(await everyRow()).toBe(before);
  });

  it('refuses a form without a session, a long body and another content type [D-61]', async () => {
    expect((await sandbox.submitCard({ session: '' })).status).toBe(400);
    expect((await sandbox.submitCard({ name: 'x'.repeat(9_000) })).status).toBe(413);
    const asJson = await fetch(`${sandbox.server.url}/tokenise`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(asJson.status).toBe(415);
  });

  it('issues a token that the gateway refuses after exactly ten minutes [D-61]', async () => {
    const save = (token: string) =>
      sandbox.gateway.saveMethod({ key: `save:${token.slice(4)}`, token, session: 'cs_late' });
    const early = await sandbox.issueToken('4242424242424242', 'cs_late');
    const late = await sandbox.issueToken('4242424242424242', 'cs_late');
    now += 10 * 60_000 - 1;
    expect((await save(early)).kind).toBe('saved');
    now += 1;
    expect(await save(late)).toEqual({
      kind: 'refused',
      code: 'processing_error',
      reason: 'token_expired',
    });
    // A request that redeemed its token in time can be repeated later under the same key.
    expect((await save(early)).kind).toBe('saved');
  });
});

describe('the sandbox gateway', () => {
  const save = async (number: string, verify: boolean) => {
    const session = `cs_${number}_${verify}`;
    const token = await sandbox.issueToken(number, session);
    return sandbox.gateway.saveMethod({ key: `save:${session}`, token, session, verify });
  };

  it('refuses only 4242 4242 4242 4241 when a card is saved without verification [D-61]', async () => {
    const refused: unknown[] = [];
    for (const { number } of TEST_CARDS) {
      const outcome = await save(number, false);
      if (outcome.kind !== 'saved') refused.push([number, outcome]);
    }
    expect(refused).toEqual([
      [
        '4242424242424241',
        { kind: 'refused', code: 'incorrect_card_number', reason: 'card_refused' },
      ],
    ]);
  });

  it('refuses a declining card when it is verified, but saves 4000 0000 0000 0341 [D-61]', async () => {
    expect(await save('4000000000000002', true)).toEqual({
      kind: 'refused',
      code: 'card_declined',
      reason: 'card_refused',
    });
    const saved = await save('4000000000000341', true);
    if (saved.kind !== 'saved') throw new Error(saved.kind);
    const { gatewayMethodId } = saved.card;
    const charge = (attempt: number) =>
      sandbox.gateway.charge({
        key: `charge:in_0341:${attempt}`,
        gatewayChargeId: null,
        gatewayMethodId,
        amountMinor: 1_000,
        currency: 'USD',
        reference: { merchantId: 'm', intentId: 'i', subscriptionId: null, paymentMethodId: 'p' },
      });
    expect(await charge(1)).toMatchObject({ kind: 'declined', code: 'card_declined' });
    expect(await charge(2)).toMatchObject({ kind: 'declined', code: 'card_declined' });
  });

  it('repeats a refusal for the same key [D-61]', async () => {
    const token = await sandbox.issueToken('4242424242424241', 'cs_repeat');
    const request = { key: 'save:cs_repeat', token, session: 'cs_repeat' };
    const first = await sandbox.gateway.saveMethod(request);
    expect(first.kind).toBe('refused');
    expect(await sandbox.gateway.saveMethod(request)).toEqual(first);
  });
});

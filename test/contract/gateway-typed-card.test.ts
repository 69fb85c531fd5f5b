import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCard } from '../../gateways/sandbox/card-form.ts';
import { RETURN_ORIGIN, startSandbox } from './gateway-sandbox-harness.ts';
import type { Sandbox } from './gateway-sandbox-harness.ts';

const NOW = Date.UTC(2026, 10, 20);
const CARD = { number: '4242 4242 4242 4242', expiry: '12/34', cvc: '123' };

const read = (typed: Partial<typeof CARD>, at = NOW) => readCard({ ...CARD, ...typed }, at);

const mistyped = (mistypes: Record<string, string>) => ({ kind: 'mistyped', mistypes });

describe('the card form', () => {
  it.each([
    ['', 'numberMissing'],
    ['   ', 'numberMissing'],
    ['4242 4242 4242 424x', 'numberUnreadable'],
    ['my card', 'numberUnreadable'],
    ['1', 'numberTooShort'],
    ['4242 4242 4242 424', 'numberTooShort'],
    ['4242 4242 4242 4242 4', 'numberTooLong'],
    ['5555 5555 5555 4444 1', 'numberTooLong'],
    ['6011 0000 0000 0000 0000', 'numberTooLong'],
    ['4242 4242 4242 4243', 'numberMistyped'],
    ['2442 4242 4242 4242', 'numberMistyped'],
  ])('calls the number "%s" a typing error: %s [D-61]', (number, text) => {
    expect(read({ number })).toEqual(mistyped({ number: text }));
  });

  it.each(['', '12', '12/7', '00/27', '13/27', '12/27/30', '12-27-2027', 'ab/cd'])(
    'calls the expiry "%s" a typing error [D-61]',
    (expiry) => {
      expect(read({ expiry })).toEqual(mistyped({ expiry: 'expiryUnreadable' }));
    },
  );

  it.each([
    '12/27',
    '12 / 27',
    ' 12/27 ',
    '12-27',
    '12 27',
    '12 - 2027',
    '1227',
    '12/2027',
    '122027',
    '１２／２７',
    '١٢/٢٧',
    '۱۲/۲۷',
  ])('accepts the expiry "%s" [D-61]', (expiry) => {
    expect(read({ expiry })).toMatchObject({ expiryMonth: 12, expiryYear: 2027 });
  });

  it.each(['4242-4242 4242 4242', '４２４２ ４２４２ ４２４２ ４２４２', '٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢'])(
    'accepts the number "%s" [D-61]',
    (number) => {
      expect(read({ number, cvc: ' 123 ' })).toMatchObject({ kind: 'card', lastFourDigit: '4242' });
    },
  );

  it.each([
    ['12', CARD.number, 'cvcThree'],
    ['12a', CARD.number, 'cvcThree'],
    ['', CARD.number, 'cvcThree'],
    ['1234', CARD.number, 'cvcThree'],
    ['123', '378282246310005', 'cvcFour'],
  ])('calls the CVC "%s" of %s a typing error: %s [D-61]', (cvc, number, text) => {
    expect(read({ cvc, number })).toEqual(mistyped({ cvc: text }));
  });

  it('accepts a card until its expiry month ends in UTC [D-61]', () => {
    const lastMoment = Date.UTC(2026, 11, 1) - 1;
    expect(read({ expiry: '11/26' }, lastMoment)).toMatchObject({ lastFourDigit: '4242' });
    expect(read({ expiry: '11/26' }, lastMoment + 1)).toEqual(mistyped({ expiry: 'expiryPast' }));
  });

  it('reports all mistyped fields at once, in the order of the form [D-61]', () => {
    const all = read({ number: '42', expiry: '1', cvc: '1' });
    expect(JSON.stringify(all)).toBe(
      '{"kind":"mistyped","mistypes":{"number":"numberTooShort","expiry":"expiryUnreadable","cvc":"cvcThree"}}',
    );
  });

  it('reads the published number that fails the Luhn check, and refuses an unpublished number [D-61]', () => {
    expect(read({ number: '4242 4242 4242 4241' })).toMatchObject({ kind: 'card' });
    expect(read({ number: '4532 0151 1283 0366' })).toEqual({
      kind: 'refused',
      code: 'incorrect_card_number',
    });
  });
});

describe('POST /tokenise with a mistyped card', () => {
  let sandbox: Sandbox;
  let sql: postgres.Sql;
  beforeAll(async () => {
    sandbox = await startSandbox({ now: () => NOW });
    sql = postgres(sandbox.database.url, { max: 1 });
  });
  afterAll(async () => {
    await sql.end();
    await sandbox.close();
  });

  it('redirects to the return URL with the names of the typing errors, and stores nothing [D-61]', async () => {
    const tokens = () => sql`select count(*)::int as count from sandbox_gateway.token`;
    const before = await tokens();
    const response = await sandbox.submitCard({
      number: '4242 4242 4242 4243',
      expiry: '1 / 20',
      cvc: '98',
      return_url: `${RETURN_ORIGIN}/checkout/cs_1/return?state=abc&payment_error=x&mistyped=old`,
    });
    expect([response.status, response.headers.get('location')]).toEqual([
      303,
      `${RETURN_ORIGIN}/checkout/cs_1/return?state=abc&mistyped=numberMistyped%2CexpiryPast%2CcvcThree`,
    ]);
    expect(await response.text()).toBe('');
    expect(await tokens()).toEqual(before);
  });
});

import { createHash } from 'node:crypto';
import { parse } from 'node-html-parser';
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

  const wrong = {
    name: 'Ada "Example"',
    number: '4242 4242 4242 4243',
    expiry: '1 / 20',
    cvc: '98',
    locale: 'de',
    merchant: 'Acme <b>Ltd</b>',
    button: 'Jetzt zahlen',
    return_url: `${RETURN_ORIGIN}/checkout/cs_1/return?state=abc`,
  };

  it('answers with the form again, its values without the CVC, and a text at each field [D-61]', async () => {
    const response = await sandbox.submitCard(wrong);
    expect([response.status, response.headers.get('location')]).toEqual([422, null]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const html = await response.text();
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(html).not.toContain('<b>');
    const page = parse(html);
    const root = page.querySelector('html');
    expect([root?.getAttribute('lang'), root?.getAttribute('dir')]).toEqual(['de', 'ltr']);
    expect(page.querySelector('title')?.text).toBe('Fehler: Prüfen Sie Ihre Kartendaten');
    expect(page.querySelector('[role=alert]')?.text).toBe(
      'Berichtigen Sie die markierten Felder. Es wurde nichts abgebucht.',
    );
    const inputs = page.querySelectorAll('input').map((input) => {
      const described = input.getAttribute('aria-describedby');
      return [
        input.getAttribute('name'),
        input.getAttribute('value'),
        input.getAttribute('aria-invalid') ?? '',
        described === undefined ? '' : page.querySelector(`#${described}`)?.text,
        input.hasAttribute('autofocus') ? 'focus' : '',
      ];
    });
    expect(inputs).toEqual([
      ['session', 'cs_1', '', '', ''],
      ['return_url', wrong.return_url, '', '', ''],
      ['locale', 'de', '', '', ''],
      ['merchant', 'Acme <b>Ltd</b>', '', '', ''],
      ['button', 'Jetzt zahlen', '', '', ''],
      ['name', 'Ada "Example"', '', '', ''],
      [
        'number',
        '4242 4242 4242 4243',
        'true',
        'Die Kartennummer stimmt nicht. Vergleichen Sie jede Ziffer mit Ihrer Karte.',
        'focus',
      ],
      [
        'expiry',
        '1 / 20',
        'true',
        'Dieses Datum liegt in der Vergangenheit. Prüfen Sie das Ablaufdatum oder verwenden Sie eine andere Karte.',
        '',
      ],
      ['cvc', '', 'true', 'Geben Sie die 3 Ziffern auf der Rückseite der Karte ein.', ''],
    ]);
    expect(page.querySelector('button')?.text).toBe('Jetzt zahlen');
    expect(page.querySelector('a')?.getAttribute('href')).toBe(wrong.return_url);
  });

  it('allows one script, and forms only to the gateway and to the origin of the return URL [D-61]', async () => {
    const response = await sandbox.submitCard(wrong);
    const policy = (response.headers.get('content-security-policy') ?? '').split('; ');
    const html = await response.text();
    const nonce = /<style nonce="([^"]+)">/.exec(html)?.[1];
    const script = /<script>(.*)<\/script>/s.exec(html)?.[1] ?? '';
    expect(policy).toEqual([
      "default-src 'none'",
      `style-src 'nonce-${nonce}'`,
      `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
      `form-action 'self' ${RETURN_ORIGIN}`,
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  it('stores nothing, and shows English for an unknown locale [D-61]', async () => {
    const tokens = () => sql`select count(*)::int as count from sandbox_gateway.token`;
    const before = await tokens();
    const page = await (await sandbox.submitCard({ number: '42', locale: 'xx' })).text();
    expect(page).toContain('<html lang="en" dir="ltr">');
    expect(page).toContain('<title>Error: Check your card details</title>');
    expect(page).toContain('<button type="submit">Continue</button>');
    expect(await tokens()).toEqual(before);
  });
});

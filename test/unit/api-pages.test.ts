import { expect, test } from 'vitest';
import { callbackUrl } from '../../api/pages/shared/card-page.tsx';
import { offerOf } from '../../api/pages/checkout/page.tsx';
import type { Terms } from '../../domain/subscription/terms.ts';
import { languageOf } from '../../domain/language/language.ts';
import { spaced } from '../support/hosted-pages/page-text.ts';

const FACTS = { subscription_id: 'sub_1', status: 'ACTIVE', receipt_id: null };

test.each([
  ['https://m.example', 'https://m.example?subscription_id=sub_1&status=ACTIVE'],
  ['https://m.example/back', 'https://m.example/back?subscription_id=sub_1&status=ACTIVE'],
  ['https://m.example/?', 'https://m.example/?subscription_id=sub_1&status=ACTIVE'],
  ['https://m.example/?a=1&', 'https://m.example/?a=1&subscription_id=sub_1&status=ACTIVE'],
  [
    'https://m.example/?a=b%20c+d',
    'https://m.example/?a=b%20c+d&subscription_id=sub_1&status=ACTIVE',
  ],
  ['https://m.example/?a=1#b?c', 'https://m.example/?a=1&subscription_id=sub_1&status=ACTIVE#b?c'],
  ['https://m.example/#x#y', 'https://m.example/?subscription_id=sub_1&status=ACTIVE#x#y'],
])(
  'the callback parameters are appended to %s without rewriting the URL [D-44, D-13]',
  (given, expected) => {
    expect(callbackUrl(given, FACTS)).toBe(expected);
  },
);

test('a receipt id that is appended to the callback URL cannot add further parameters [D-44]', () => {
  expect(callbackUrl('https://m.example/', { ...FACTS, receipt_id: '7&status=PAID#x y' })).toBe(
    'https://m.example/?subscription_id=sub_1&status=ACTIVE&receipt_id=7%26status%3DPAID%23x+y',
  );
});

const MONTHLY: Terms = {
  amountMinor: 1_000,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 2,
  upfrontAmountMinor: null,
  trial: null,
};
const DEC_31 = Date.UTC(2026, 11, 31, 23, 59);

test.each<[string, Partial<Terms>, string[][]]>([
  [
    'two payments',
    {},
    [
      ['Today', 'US$10.00'],
      ['Then', 'US$10.00 every month, from 31 January 2027'],
      ['In all', 'US$20.00 in 2 payments, the last on 31 January 2027'],
    ],
  ],
  [
    'three payments, one every three years,',
    { interval: 'YEAR', intervalCount: 3, cycleCount: 3 },
    [
      ['Today', 'US$10.00'],
      ['Then', 'US$10.00 every 3 years, from 31 December 2029'],
      ['In all', 'US$30.00 in 3 payments, the last on 31 December 2032'],
    ],
  ],
  [
    'one payment in a currency without decimals, after a trial that ends in a short month',
    { currency: 'JPY', cycleCount: 1, trial: { interval: 'MONTH', count: 2 } },
    [
      ['Today', 'JP¥0'],
      ['Then', 'JP¥1,000 on 28 February 2027, after 2 months free'],
      ['In all', 'JP¥1,000 in 1 payment'],
    ],
  ],
  [
    'the most payments of a large amount',
    { amountMinor: 99_999_999, interval: 'DAY', cycleCount: 1_200 },
    [
      ['Today', 'US$999,999.99'],
      ['Then', 'US$999,999.99 every day, from 1 January 2027'],
      ['In all', 'US$1,199,999,988.00 in 1,200 payments, the last on 13 April 2030'],
    ],
  ],
  [
    'a currency with three decimals and an upfront amount',
    { currency: 'KWD', upfrontAmountMinor: 50 },
    [
      ['Upfront amount, today', 'KWD 0.050'],
      ['Then', 'KWD 1.000 every month, from 31 January 2027'],
      ['In all', 'KWD 1.050 in 2 payments, the last on 31 January 2027'],
    ],
  ],
])(
  'the checkout page describes %s in amounts and dates [D-05, IF-2.3]',
  (_name, changes, lines) => {
    const offer = offerOf(languageOf('en'), { ...MONTHLY, ...changes }, DEC_31);
    expect(offer.lines.map(({ label, text }) => [label, spaced(text)])).toEqual(lines);
  },
);

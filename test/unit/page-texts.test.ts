import { describe, expect, it } from 'vitest';
import { LOCALES } from '../../domain/locales.ts';
import { createHash } from 'node:crypto';
import { FIXED_WORDS } from '../../domain/language/fixed-words.ts';
import { languageOf, TEXT_VERSION, TEXTS } from '../../domain/language/language.ts';
import type { Forms } from '../../domain/language/texts/en.ts';

const OTHERS = LOCALES.filter((locale) => locale !== 'en');
const TABLES: Readonly<Record<string, Readonly<Record<string, string | Forms>>>> = TEXTS;

/** Texts that are the same in English and in another language. */
const SAME_AS_ENGLISH = new Set([
  'ar.timeInUtc',
  'ar.expiryFormat',
  'de.amountInPayments',
  'de.timeInUtc',
  'de.name',
  'es.timeInUtc',
  'es.errorTitle',
  'fr.timeInUtc',
  'fr.dateLabel',
  'it.amountInPayments',
  'it.timeInUtc',
  'ja.expiryFormat',
  'nl.timeInUtc',
  'nl.productLabel',
  'pt.timeInUtc',
]);

/** English words that are no words of the other languages. */
const ENGLISH_WORD =
  /\b(the|your|you|are|and|this|with|card|enter|again|nothing|payment|please|charged|then)\b/i;

const formsOf = (text: string | Forms | undefined): string[] =>
  text === undefined ? [] : typeof text === 'string' ? [text] : Object.values(text);

const placeholdersOf = (text: string): string[] =>
  [...new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name))].toSorted();

describe('the texts of the hosted pages', () => {
  it.each(OTHERS)('have the same keys in %s as in English', (locale) => {
    expect(Object.keys(TABLES[locale]!)).toEqual(Object.keys(TABLES['en']!));
  });

  it.each(OTHERS)('have the same placeholders in %s as in English', (locale) => {
    const differing = Object.entries(TABLES['en']!).flatMap(([key, english]) => {
      const expected = placeholdersOf(formsOf(english).at(-1)!);
      return formsOf(TABLES[locale]![key]).flatMap((form) => {
        const given = placeholdersOf(form);
        // The plural forms for 1 and 2 may contain the number as a word instead of {count}.
        const named = typeof english === 'string' ? given : [...new Set([...given, 'count'])];
        return named.toSorted().join() === expected.join() ? [] : [[key, form]];
      });
    });
    expect(differing).toEqual([]);
  });

  it.each(OTHERS)('contain no English in %s [D-§7]', (locale) => {
    const english = Object.entries(TABLES[locale]!).flatMap(([key, text]) => {
      const original = formsOf(TABLES['en']![key]);
      const isSame = formsOf(text).some((form) => original.includes(form));
      const hasWord = formsOf(text).some((form) =>
        ENGLISH_WORD.test(form.replaceAll(/\{\w+\}/g, '')),
      );
      return (isSame && !SAME_AS_ENGLISH.has(`${locale}.${key}`)) || hasWord ? [key] : [];
    });
    expect(english).toEqual([]);
  });

  it.each(LOCALES)(
    'have exactly the plural forms in %s that the numbers from 1 to 3650 need',
    (locale) => {
      const rules = new Intl.PluralRules(locale);
      const needed = new Set(Array.from({ length: 3_650 }, (_, index) => rules.select(index + 1)));
      for (const text of Object.values(TABLES[locale]!)) {
        if (typeof text === 'string') continue;
        expect(Object.keys(text).toSorted()).toEqual([...new Set([...needed, 'other'])].toSorted());
      }
    },
  );

  it('use the Arabic plural form of each number', () => {
    const { say } = languageOf('ar');
    expect([1, 2, 3, 11, 100].map((count) => say('payments', { count }))).toEqual([
      'دفعة واحدة',
      'دفعتان',
      '3 دفعات',
      '11 دفعة',
      '100 دفعة',
    ]);
  });

  it('put sentences together with a space, in Japanese without one', () => {
    expect(languageOf('de').join('Bezahlt.', 'Danke.')).toBe('Bezahlt. Danke.');
    expect(languageOf('ja').join('支払済みです。', '以上です。')).toBe('支払済みです。以上です。');
  });

  it('enclose a value of the other writing direction in Unicode isolates', () => {
    expect(languageOf('en').say('paymentTo', { name: 'Acme' })).toBe('Payment to Acme');
    expect(languageOf('en').say('paymentTo', { name: 'شركة' })).toBe('Payment to \u2068شركة\u2069');
    expect(languageOf('ar').say('paymentTo', { name: 'Acme' })).toBe('دفعة إلى \u2068Acme\u2069');
  });
});

describe('amounts and dates of the hosted pages', () => {
  it.each([
    ['en', 'US$1,234.50', '€99.00', 'JP¥500', 'KWD 1,234.567'],
    ['de', '1.234,50 $', '99,00 €', '500 ¥', '1.234,567 KWD'],
    ['fr', '1\u202f234,50 $US', '99,00 €', '500 JPY', '1\u202f234,567 KWD'],
    ['es', '1234,50 US$', '99,00 €', '500 JPY', '1234,567 KWD'],
    ['pt', 'US$ 1.234,50', '€ 99,00', 'JP¥ 500', 'KWD 1.234,567'],
    ['it', '1234,50 USD', '99,00 €', '500 JPY', '1234,567 KWD'],
    ['nl', 'US$ 1.234,50', '€ 99,00', 'JP¥ 500', 'KWD 1.234,567'],
    ['ja', '$1,234.50', '€99.00', '￥500', 'KWD 1,234.567'],
    [
      'ar',
      '\u20661,234.50 US$\u2069',
      '\u206699.00 €\u2069',
      '\u2066500 JP¥\u2069',
      '\u20661,234.567 د.ك.\u200f\u2069',
    ],
  ] as const)(
    'have the currency symbols and digit groups of %s, without a line break',
    (locale, ...texts) => {
      const { money } = languageOf(locale);
      const amounts = [
        money(123_450, 'USD'),
        money(9_900, 'EUR'),
        money(500, 'JPY'),
        money(1_234_567, 'KWD'),
      ];
      expect(amounts).toEqual(texts.map((text) => text.replaceAll(' ', '\u00a0')));
    },
  );

  it.each([
    ['en', '28 February 2027'],
    ['de', '28. Februar 2027'],
    ['fr', '28 février 2027'],
    ['es', '28 de febrero de 2027'],
    ['pt', '28 de fevereiro de 2027'],
    ['it', '28 febbraio 2027'],
    ['nl', '28 februari 2027'],
    ['ja', '2027\u2060年\u20602\u2060月\u206028\u2060日'],
    ['ar', '28 فبراير 2027'],
  ] as const)('name the day in UTC in %s', (locale, text) => {
    const day = languageOf(locale).date(Date.UTC(2027, 1, 28, 23, 59));
    expect(day).toBe(text.replaceAll(' ', '\u00a0'));
  });

  it.each([
    ['en', '28 February 2027 at 16:05'],
    ['de', '28. Februar 2027 um 16:05'],
    ['fr', '28 février 2027 à 16:05'],
    ['es', '28 de febrero de 2027 a las 16:05'],
    ['pt', '28 de fevereiro de 2027 às 16:05'],
    ['it', '28 febbraio 2027 alle ore 16:05'],
    ['nl', '28 februari 2027 om 16:05'],
    ['ja', '2027\u2060年\u20602\u2060月\u206028\u2060日 16:05'],
    ['ar', '28 فبراير 2027 في 4:05 م'],
  ] as const)('name the day and the time in UTC in %s', (locale, text) => {
    const instant = languageOf(locale).dateTime(Date.UTC(2027, 1, 28, 16, 5));
    expect(instant.replaceAll('\u00a0', ' ')).toBe(text);
  });

  it('keep every digit of the largest amount and have the number of decimals of ISO 4217 [D-01, D-02]', () => {
    const { money } = languageOf('en');
    expect(money(Number.MAX_SAFE_INTEGER, 'USD')).toBe('US$90,071,992,547,409.91');
    expect(money(Number.MAX_SAFE_INTEGER, 'JPY')).toBe('JP¥9,007,199,254,740,991');
    expect(money(7, 'USD')).toBe('US$0.07');
    expect(money(12_345, 'HUF')).toBe('HUF\u00a0123.45');
    expect(() => money(0.5, 'USD')).toThrow('an amount is');
    expect(() => money(1, 'ZZZ')).toThrow('the currency of an amount is in the table');
  });
});

it('the version of the texts, which consents name, belongs to these texts [D-64]', () => {
  const digest = createHash('sha256')
    .update(JSON.stringify([TEXTS, FIXED_WORDS]))
    .digest('hex');
  // After a release, a change of a text needs another version.
  expect([TEXT_VERSION, digest.slice(0, 16)]).toEqual(['1', '124f24a673f972ca']);
});

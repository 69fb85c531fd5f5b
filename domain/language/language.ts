import { currencyOf } from '../currencies.ts';
import { invariant } from '../errors.ts';
import type { Locale } from '../locales.ts';
import { isAmountMinor } from '../money.ts';
import { ar } from './texts/ar.ts';
import { de } from './texts/de.ts';
import { en } from './texts/en.ts';
import type { Texts } from './texts/en.ts';
import { es } from './texts/es.ts';
import { fr } from './texts/fr.ts';
import { it } from './texts/it.ts';
import { ja } from './texts/ja.ts';
import { nl } from './texts/nl.ts';
import { pt } from './texts/pt.ts';

export const TEXTS: Readonly<Record<Locale, Texts>> = { en, de, fr, es, pt, it, nl, ja, ar };

/** Changes with every change of a text of the pages, so that a consent names the words. */
export const TEXT_VERSION = '1';

type Placeholder<Text> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;

type English = typeof en;
type EnglishOf<Key extends keyof English> = English[Key] extends { readonly other: infer Other }
  ? Other
  : English[Key];

/** The values of a text's placeholders. `count` is a number and selects the plural form; the others are texts. */
export type Values<Key extends keyof English> = {
  readonly [Name in Placeholder<EnglishOf<Key>>]: Name extends 'count' ? number : string;
};

/** The texts of the hosted pages and the formats of amounts and dates, in one language. */
export interface Language {
  readonly locale: Locale;
  readonly direction: 'ltr' | 'rtl';
  /** Returns a text with its values. Values of the other writing direction do not disturb the text's order. */
  readonly say: <Key extends keyof English>(
    key: Key,
    ...values: Placeholder<EnglishOf<Key>> extends never ? [] : [Values<Key>]
  ) => string;
  /** Joins sentences as the language does. */
  readonly join: (...sentences: string[]) => string;
  /** A text that is not ours, outside a sentence: its direction does not disturb the text around it. */
  readonly quote: (text: string) => string;
  /** Returns the amount with the currency's digits and symbol, and without a place for a line break. */
  readonly money: (amountMinor: number, currency: string) => string;
  /** Returns the day in UTC, without a place for a line break. The page names the time zone once. */
  readonly date: (at: number) => string;
  /** Returns the time of day with the word UTC. */
  readonly time: (at: number) => string;
  readonly minutes: (count: number) => string;
  /** As {@link date}, with hour and minute. */
  readonly dateTime: (at: number) => string;
}

/**
 * English has the formats of Great Britain, which name the country of a dollar: `US$19.99`. Arabic has the digits 0
 * to 9, which are printed on cards.
 */
const FORMATS: Partial<Record<Locale, string>> = { en: 'en-GB', ar: 'ar-u-nu-latn' };

const languages = new Map<Locale, Language>();

export function languageOf(locale: Locale): Language {
  const known = languages.get(locale) ?? createLanguage(locale);
  languages.set(locale, known);
  return known;
}

function createLanguage(locale: Locale): Language {
  const tag = FORMATS[locale] ?? locale;
  const texts = TEXTS[locale];
  const direction = locale === 'ar' ? 'rtl' : 'ltr';
  const plurals = new Intl.PluralRules(tag);
  const counts = new Intl.NumberFormat(tag);
  const days = new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' });
  const times = new Intl.DateTimeFormat(tag, { timeStyle: 'short', timeZone: 'UTC' });
  const minutes = new Intl.NumberFormat(tag, {
    style: 'unit',
    unit: 'minute',
    unitDisplay: 'long',
  });
  const instants = new Intl.DateTimeFormat(tag, {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  });
  const amounts = new Map<string, Intl.NumberFormat>();

  const amountFormat = (currency: string): Intl.NumberFormat => {
    // The digits are not those of `Intl`, which differ from ISO 4217 for some currencies.
    const digits = currencyOf(currency)?.exponent;
    invariant(digits !== undefined, 'the currency of an amount is in the table');
    const format =
      amounts.get(currency) ??
      new Intl.NumberFormat(tag, {
        style: 'currency',
        currency,
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      });
    amounts.set(currency, format);
    return format;
  };

  const say = (
    key: keyof Texts,
    values: Readonly<Record<string, string | number>> = {},
  ): string => {
    const forms = texts[key];
    const count = Number(values['count'] ?? 0);
    const text = typeof forms === 'string' ? forms : (forms[plurals.select(count)] ?? forms.other);
    return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name];
      return typeof value === 'number' ? counts.format(value) : isolated(value ?? '', direction);
    });
  };

  return {
    locale,
    direction,
    say,
    // Japanese has no spaces.
    join: (...sentences) => sentences.join(locale === 'ja' ? '' : ' '),
    quote: (text) => isolated(text, direction),
    money(amountMinor, currency) {
      invariant(isAmountMinor(amountMinor), 'an amount is a safe integer of at least 0');
      const format = amountFormat(currency);
      // Formats a decimal text, because a division would lose digits of large amounts.
      const digits = format.resolvedOptions().maximumFractionDigits ?? 0;
      const text = unbroken(format.format(decimalText(amountMinor, digits)));
      return direction === 'rtl' ? leftToRight(text) : text;
    },
    date: (at) => unbroken(days.format(at)),
    // Does not use `say`, which would isolate the time. Then only the word `UTC` would give the text its direction, and an
    // Arabic time would run from left to right.
    time: (at) => texts.timeInUtc.replace('{time}', unbroken(times.format(at))),
    minutes: (count) => unbroken(minutes.format(count)),
    dateTime: (at) => unbroken(instants.format(at)),
  };
}

function decimalText(amountMinor: number, digits: number): `${number}` {
  const text = String(amountMinor).padStart(digits + 1, '0');
  const decimal = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
  return decimal as `${number}`;
}

const NO_BREAK_SPACE = '\u00A0';
const WORD_JOINER = '\u2060';
/** Between a digit and a Japanese sign, where a line may break. */
const JAPANESE_BREAK = /(?<=\d)(?=\p{Script=Han})|(?<=\p{Script=Han})(?=\d)/gu;

function unbroken(text: string): string {
  return text.replaceAll(' ', NO_BREAK_SPACE).replaceAll(JAPANESE_BREAK, WORD_JOINER);
}

const RIGHT_TO_LEFT = String.raw`[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]`;

/** A letter or digit of the other writing direction, by the direction of the sentence. */
const OTHER_DIRECTION = {
  ltr: new RegExp(RIGHT_TO_LEFT, 'u'),
  rtl: new RegExp(String.raw`(?!${RIGHT_TO_LEFT})[\p{L}\p{N}]`, 'u'),
} as const;

const ISOLATE = '\u2068';
const RIGHT_TO_LEFT_ISOLATE = '\u2067';
const LEFT_TO_RIGHT = '\u2066';
const END_ISOLATE = '\u2069';

/** Returns an Arabic amount with marks for left to right, because from right to left `US$` would read `$US`. */
function leftToRight(amount: string): string {
  return `${LEFT_TO_RIGHT}${amount.replace(/^\u200F/, '')}${END_ISOLATE}`;
}

/** Marks a value of the other writing direction, so that the browser orders the sentence around it. */
function isolated(value: string, direction: 'ltr' | 'rtl'): string {
  if (!OTHER_DIRECTION[direction].test(value)) return value;
  // Browsers ignore isolated parts when they look for the direction of a value, which is ours if it has such parts.
  const isOurs = direction === 'rtl' && value.includes(END_ISOLATE);
  return `${isOurs ? RIGHT_TO_LEFT_ISOLATE : ISOLATE}${value}${END_ISOLATE}`;
}

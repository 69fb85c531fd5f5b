import { LOCALES } from '../../../domain/locales.ts';
import type { Locale } from '../../../domain/locales.ts';
import { languageOf } from '../parts/language.ts';
import type { Language } from '../parts/language.ts';
import type { Context } from '../../context.ts';

/**
 * Returns the language of a page: the merchant's locale, else the best of `Accept-Language`, else English. `chosen`
 * also holds for later calls with this request.
 */
export function languageFor(ctx: Context, chosen: Locale | null = null): Language {
  if (chosen !== null) ctx.state.pageLocale = chosen;
  return languageOf(ctx.state.pageLocale ?? acceptedLocale(ctx));
}

function acceptedLocale(ctx: Context): Locale {
  const accepted = ctx.acceptsLanguages([...LOCALES]);
  return LOCALES.find((locale) => locale === accepted) ?? 'en';
}

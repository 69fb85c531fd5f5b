/** The languages of the hosted pages, as ISO 639-1 codes. The first one is the default. */
export const LOCALES = ['en', 'de', 'fr', 'es', 'pt', 'it', 'nl', 'ja', 'ar'] as const;
export type Locale = (typeof LOCALES)[number];

import { hasAtMost } from './storable-text.ts';

/** The parts of a merchant's brand, besides the name, that the merchant's hosted pages show. */
export interface Branding {
  readonly logoUrl?: string;
  readonly colour?: string;
  readonly termsUrl?: string;
  readonly supportUrl?: string;
}

const INKS = ['#ffffff', '#0d1526'] as const;
type Ink = (typeof INKS)[number];

/** The smallest contrast of text and background that WCAG 2.2 allows at level AA. */
const CONTRAST_MIN = 4.5;
const URL_LENGTH_MAX = 2_048;
/** The host of a URL that a header may contain: a DNS name or an address, with or without a port. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d+)?$/;
const COLOUR = /^#[0-9a-f]{6}$/i;

export function brandUrlProblem(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isUsable = url?.protocol === 'https:' && url.username === '' && url.password === '';
  // `URL` accepts characters such as `;` in a host, and removes line breaks from the text.
  const isPlain = url !== null && HOST.test(url.host) && !/[\s\p{Cc}]/u.test(text);
  return isUsable && isPlain && hasAtMost(text, URL_LENGTH_MAX)
    ? null
    : `"${text}" is not an https URL of at most ${URL_LENGTH_MAX} characters without credentials`;
}

/** Stripe shows 22 characters, of which the account's name needs some. */
const SUFFIX = /^(?=.*[A-Za-z])[A-Za-z0-9 .,&/#+-]{2,14}$/;

export function statementSuffixProblem(text: string): string | null {
  return SUFFIX.test(text)
    ? null
    : `"${text}" is not 2 to 14 characters with a letter: A-Z, a-z, 0-9, space and .,&/#+-`;
}

export function colourProblem(text: string): string | null {
  if (!COLOUR.test(text)) return `"${text}" is not a colour like #1f4fd8`;
  if (inkOn(text) !== null) return null;
  const best = Math.max(...INKS.map((ink) => contrast(text, ink)));
  return (
    `"${text}" has a contrast of only ${best.toFixed(2)} with the button’s text, which is ` +
    `${INKS.join(' or ')}; it needs ${CONTRAST_MIN}: take a darker or a lighter colour`
  );
}

/** Returns the first of the two text colours that can be read on a button of this colour; null if none can be read. */
export function inkOn(colour: string): Ink | null {
  return INKS.find((ink) => contrast(colour, ink) >= CONTRAST_MIN) ?? null;
}

/** Returns the branding without values that {@link brandUrlProblem} or {@link colourProblem} refuses. */
export function usableBranding({ colour, ...urls }: Branding): Branding {
  const usable = Object.entries(urls).filter(([, url]) => brandUrlProblem(url) === null);
  return {
    ...Object.fromEntries(usable),
    ...(colour === undefined || colourProblem(colour) !== null ? {} : { colour }),
  };
}

export function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

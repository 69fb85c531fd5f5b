/** An input of a page's form. An attribute that the input does not have, or an empty value, is left out. */
export interface PageField {
  name: string;
  value?: string;
  label?: string;
  autocomplete?: string;
}

/** Every input of a page in order, with its label. */
export function fieldsOf(html: string): PageField[] {
  return [...html.matchAll(/<input([^>]*)>/g)].map(([, attributes = '']) => {
    const read = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(attributes)?.[1];
    const id = read('id');
    const label = new RegExp(`<label for="${id}">([^<]*)</label>`).exec(html)?.[1];
    const [value, autocomplete] = [read('value'), read('autocomplete')];
    return {
      name: read('name') ?? '',
      ...(value === undefined || value === '' ? {} : { value }),
      ...(label === undefined ? {} : { label }),
      ...(autocomplete === undefined ? {} : { autocomplete }),
    };
  });
}

/** Returns the text with ordinary spaces instead of no-break spaces. */
export const spaced = (text: string): string => text.replaceAll('\u00a0', ' ');

/** The sentence by which the payer permits later charges; undefined without one. */
export const consentOf = (html: string): string | undefined =>
  /<p class="soft small consent">([^<]*)<\/p>/.exec(html)?.[1];

/** Label and text of each line of the price list, with ordinary spaces. */
export function linesOf(html: string): string[][] {
  return [...html.matchAll(/<dt>([^<]*)<\/dt><dd>(?:<svg.*?<\/svg>)?([^<]*)<\/dd>/g)].map(
    ([, ...line]) => line.map(spaced),
  );
}

/** A field of a page's form, without absent attributes. */
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

/** Label and text of each line of the price list. */
export function linesOf(html: string): string[][] {
  return [...html.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g)].map(([, ...line]) => line);
}

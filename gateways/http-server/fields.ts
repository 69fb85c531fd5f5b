import { RequestRefused } from './http.ts';

/** The fields of a JSON body. The functions below refuse a wrong field with 400 and its name. */
export type Fields = Readonly<Record<string, unknown>>;

const TEXT_LIMIT = 255;

export function text(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === 'string' && value.length > 0 && value.length <= TEXT_LIMIT) return value;
  throw wrong(name, `a text of 1 to ${TEXT_LIMIT} characters`);
}

/** Returns null for an absent field and for null. */
export function optionalText(fields: Fields, name: string): string | null {
  return fields[name] === undefined || fields[name] === null ? null : text(fields, name);
}

export function wholeNumber(
  fields: Fields,
  name: string,
  { from, to }: { from: number; to: number },
): number {
  const value = fields[name];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= from && value <= to) {
    return value;
  }
  throw wrong(name, `a whole number from ${from} to ${to}`);
}

export function oneOf<Value extends string>(
  fields: Fields,
  name: string,
  values: readonly Value[],
): Value {
  const found = values.find((value) => value === fields[name]);
  if (found !== undefined) return found;
  throw wrong(name, `one of ${values.join(', ')}`);
}

/** Returns an empty object for an absent field and for null. */
export function object(fields: Fields, name: string): Fields {
  const value = fields[name] ?? {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Fields;
  throw wrong(name, 'an object');
}

export function currency(fields: Fields, name: string): string {
  const value = text(fields, name);
  if (/^[A-Z]{3}$/.test(value)) return value;
  throw wrong(name, 'three upper-case letters');
}

export function wrong(name: string, expected: string): RequestRefused {
  return new RequestRefused(400, 'field_invalid', `${name} must be ${expected}.`);
}

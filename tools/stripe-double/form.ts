import { invalid, notInDouble } from './errors.ts';

/** A decoded parameter: text, a list, or an object of parameters. */
export type Param = string | Param[] | { [name: string]: Param };
export type Params = Readonly<Record<string, Param>>;

/** `a[b]=1` is an object, `a[]=1` and `a[0]=1` are lists. All values are text. */
export function parseForm(text: string): Params {
  const root: Record<string, Param> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const [first = '', ...rest] = name.split('[').map((part) => part.replace(/\]$/, ''));
    put(root, [first, ...rest], value);
  }
  return listsIn(root) as Params;
}

function put(root: Record<string, Param>, path: readonly string[], value: string): void {
  let place = root;
  for (const [index, part] of path.entries()) {
    const name = part === '' ? String(Object.keys(place).length) : part;
    if (index === path.length - 1) {
      place[name] = value;
      return;
    }
    const next = place[name];
    const isObject = typeof next === 'object' && !Array.isArray(next);
    place = (isObject ? next : (place[name] = Object.create(null))) as Record<string, Param>;
  }
}

/** Replaces each object whose names are 0, 1, 2 and so on by a list. */
function listsIn(value: Param): Param {
  if (typeof value === 'string' || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, each]) => [name, listsIn(each)] as const);
  const isList = entries.length > 0 && entries.every(([name], index) => name === String(index));
  return isList ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

/** Returns null for an absent parameter and for an empty parameter. */
export function text(params: Params, name: string): string | null {
  const value = params[name];
  if (value === undefined || value === '') return null;
  if (typeof value === 'string') return value;
  throw invalid(`Invalid string: ${name}`, { param: name });
}

export function requiredText(params: Params, name: string): string {
  const value = text(params, name);
  if (value !== null) return value;
  throw invalid(`Missing required param: ${name}.`, { code: 'parameter_missing', param: name });
}

export function integer(params: Params, name: string): number | null {
  const value = text(params, name);
  if (value === null) return null;
  if (/^-?\d{1,15}$/.test(value)) return Number(value);
  throw invalid(`Invalid integer: ${value}`, { code: 'parameter_invalid_integer', param: name });
}

export function flag(params: Params, name: string): boolean {
  const value = text(params, name);
  if (value === null || value === 'false') return false;
  if (value === 'true') return true;
  throw invalid(`Invalid boolean: ${value}`, { param: name });
}

export function group(params: Params, name: string): Params {
  const value = params[name];
  if (value === undefined || value === '') return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  throw invalid('Invalid object', { param: name });
}

function list(params: Params, name: string): Param[] {
  const value = params[name];
  if (value === undefined || value === '') return [];
  if (Array.isArray(value)) return value;
  throw invalid('Invalid array', { param: name });
}

export function texts(params: Params, name: string): string[] {
  return list(params, name).filter((value) => typeof value === 'string');
}

const METADATA_KEYS = 50;
const METADATA_KEY_LENGTH = 40;
const METADATA_VALUE_LENGTH = 500;

/** Refuses metadata with more than 50 keys, a key over 40 characters or a value over 500 characters. */
export function metadata(params: Params): Record<string, string> {
  const entries = Object.entries(group(params, 'metadata'));
  if (entries.length > METADATA_KEYS) {
    throw invalid(`You can have up to ${METADATA_KEYS} metadata keys.`, { param: 'metadata' });
  }
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (key.length > METADATA_KEY_LENGTH || typeof value !== 'string') {
        throw invalid('Metadata keys must be 40 characters or less.', { param: 'metadata' });
      }
      if (value.length > METADATA_VALUE_LENGTH) {
        throw invalid('Metadata values must be 500 characters or less.', { param: 'metadata' });
      }
      return [key, value];
    }),
  );
}

/** Refuses, with 501, parameters that Stripe has and the double does not support. */
export function expectOnly(params: Params, allowed: readonly string[], where: string): void {
  for (const name of Object.keys(params)) {
    if (!allowed.includes(name)) throw notInDouble(`the parameter ${name} of ${where}`);
  }
}

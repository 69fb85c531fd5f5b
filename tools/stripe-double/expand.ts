import type { Book } from './book.ts';
import { invalid } from './errors.ts';
import type { StripeObject } from './errors.ts';

/** Replaces ids by their objects. `data.x` expands the field `x` of each object of a list. */
export async function expand(
  book: Book,
  body: StripeObject,
  paths: readonly string[],
): Promise<StripeObject> {
  let expanded = body;
  for (const path of paths) expanded = await expandOne(book, expanded, path.split('.'), path);
  return expanded;
}

async function expandOne(
  book: Book,
  body: StripeObject,
  [name = '', ...rest]: readonly string[],
  path: string,
): Promise<StripeObject> {
  const value = body[name];
  if (value === undefined) {
    throw invalid(`This property cannot be expanded (${path}).`, { param: 'expand' });
  }
  if (value === null) return body;
  if (Array.isArray(value)) {
    const each = await Promise.all(
      value.map((item) => expandOne(book, item as StripeObject, rest, path)),
    );
    return { ...body, [name]: each };
  }
  const object =
    typeof value === 'string' ? (await book.find(value))?.body : (value as StripeObject);
  if (object === undefined) {
    throw invalid(`This property cannot be expanded (${path}).`, { param: 'expand' });
  }
  const inner = rest.length === 0 ? object : await expandOne(book, object, rest, path);
  return { ...body, [name]: inner };
}

import { describe, expect } from 'vitest';
import { ROUTES } from '../../../api/routes.ts';
import { test } from '../../support/api-environment.ts';

type Json = Readonly<Record<string, unknown>>;

/** Texts that Postgres cannot store. */
const UNSTORABLE = [
  ['a NUL character', '\0'],
  ['an unpaired surrogate', '\ud800'],
] as const;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The path of each text in a body, as the names of the fields from the outermost inwards. */
function textPaths(body: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof body === 'string') return [path];
  if (!isObject(body)) return [];
  return Object.entries(body).flatMap(([name, value]) => textPaths(value, [...path, name]));
}

/** A copy of `body` in which the text at the given path ends with `added`. */
function changed(body: Json, [name = '', ...rest]: readonly string[], added: string): Json {
  const value = body[name];
  if (rest.length === 0) return { ...body, [name]: `${String(value)}${added}` };
  return { ...body, [name]: changed(value as Json, rest, added) };
}

/**
 * The text fields of every request body: each text in the route's examples, except texts in lists, and each
 * outermost field that accepts any text.
 */
const FIELDS = ROUTES.flatMap(({ method, path, params, body }) => {
  if (body === undefined) return [];
  const url = path.replaceAll(/:(\w+)/g, (_, name: string) => params?.[name]?.example ?? name);
  const accepting = Object.entries(body.fields)
    .filter(([, schema]) => schema.safeParse('a text').success)
    .map(([name]) => [name, 'a text'] as const);
  return body.examples.flatMap(({ value }) => {
    const whole = { ...Object.fromEntries(accepting), ...(value as Json) };
    return textPaths(whole).map(
      (field) => [method.toUpperCase(), path, field.join('.'), { url, whole, field }] as const,
    );
  });
});

describe('text that Postgres cannot store', () => {
  test('is sent in at least 60 fields', () => {
    expect(FIELDS.length).toBeGreaterThanOrEqual(60);
  });

  test.for(FIELDS)(
    'is refused by %s %s in the field %s [D-10]',
    async ([method, , name, { url, whole, field }], { api }) => {
      const before = await api.countRows();
      for (const [text, added] of UNSTORABLE) {
        // Sent as `raw`, because `body` is checked against the OpenAPI document, which allows such text.
        const raw = JSON.stringify(changed(whole, field, added));
        const answer = await api.call(method, url, { raw, key: `unstorable-${name}` });
        expect(answer.status, text).toBe(400);
        expect(answer.json).toMatchObject({
          errorCode: 'bad_request',
          errorDescription: expect.stringContaining(`${name}: `),
        });
      }
      expect(await api.countRows()).toEqual(before);
    },
  );

  test.for(ROUTES.filter(({ path }) => path.includes(':')))(
    'is refused with 400 as an id in the path of $method $path [D-21]',
    async ({ method, path, body }, { api }) => {
      const url = path.replaceAll(/:(\w+)/g, 'x%00');
      const answer = await api.call(method.toUpperCase(), url, { body: body?.examples[0]?.value });
      expect(answer.status).toBe(400);
    },
  );

  test.for(['/l', '/checkout', '/payment', '/setup', '/update-method'])(
    'causes no server error in the address %s/… [D-21]',
    async (path, { api }) => {
      expect((await api.call('GET', `${path}/x%00`, { as: null })).status).toBeLessThan(500);
    },
  );
});

import { describe, expect } from 'vitest';
import { ROUTES } from '../../../api/http/frame.ts';
import { test } from '../../support/api-environment.ts';
import { intentBody } from '../../support/fixtures/payments.ts';
import { subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { openCheckout } from '../../support/hosted-pages/checkouts.ts';
import { updateLinkOf } from '../../support/hosted-pages/update-page.ts';
import { browse, expectSeeOther, postForm } from '../../support/hosted-pages/visits.ts';

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
  return Object.values(body.examples).flatMap((value) => {
    const whole = { ...Object.fromEntries(accepting), ...(value as Json) };
    return textPaths(whole).map(
      (field) => [method.toUpperCase(), path, field.join('.'), { url, whole, field }] as const,
    );
  });
});

/** The addresses of the hosted pages with an id that contains a NUL character, and the status of the answer. */
const PAGE_ADDRESSES = [
  ['GET', '/l/x%00', 410],
  ['POST', '/l/x%00', 410],
  ...['/checkout/x%00', '/payment/x%00', '/setup/x%00', '/update-method/x%00'].flatMap((page) => [
    ['GET', page, 404] as const,
    ['POST', `${page}/card`, 404] as const,
    ['GET', `${page}/return`, 404] as const,
    ['POST', `${page}/return`, 404] as const,
  ]),
  ['POST', '/checkout/x%00', 404],
  ['POST', '/payment/x%00', 404],
  ['GET', '/checkout/x%00/bank/in_%00', 404],
  ['GET', '/payment/x%00/bank/in_%00', 404],
  ['GET', '/update-method/x%00/bank/in_%00', 404],
  ['POST', '/update-method/x%00/bank', 404],
  ['GET', '/?xpay_intent_id=in_%00', 404],
] as const;

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
      const answer = await api.call(method.toUpperCase(), url, {
        body: Object.values(body?.examples ?? {})[0],
      });
      expect(answer.status).toBe(400);
    },
  );

  test('is no address of a hosted page, and changes no row [D-21, D-37]', async ({ api }) => {
    const before = await api.countRows();
    for (const [n, [method, path, status]] of PAGE_ADDRESSES.entries()) {
      const headers = { 'x-forwarded-for': `198.51.100.${n}` };
      const answer =
        method === 'GET'
          ? await browse(api, path, { headers })
          : await postForm(api, path, { payment_token: 'tok_1' }, headers);
      expect([method, path, answer.status]).toEqual([method, path, status]);
    }
    expect(await api.countRows()).toEqual(before);
  });

  test('is no payment in the address of the bank page of a checkout, a payment or an update link [D-21]', async ({
    api,
  }) => {
    const checkout = await openCheckout(api);
    const made = await api.call('POST', '/payments/create-intent', { body: intentBody() });
    const payment = new URL((made.json as { fwdUrl: string }).fwdUrl).pathname;
    const link = await updateLinkOf(api, await subscriptionIn(api, 'ACTIVE'));
    for (const home of [checkout.path, payment, new URL(link).pathname]) {
      const answer = await browse(api, `${home}/bank/in_%00`);
      expectSeeOther(answer, home);
    }
  });

  test('is refused in the address of the events of a gateway with 400 [D-21]', async ({ api }) => {
    for (const path of ['/gateways/x%00/events/x', '/gateways/stripe/events/x%00']) {
      const answer = await api.call('POST', path, { as: null, raw: '{}' });
      expect([path, answer.status]).toEqual([path, 400]);
    }
  });
});

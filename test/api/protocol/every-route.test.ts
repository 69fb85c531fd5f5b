import { describe, expect } from 'vitest';
import { OPERATIONS } from '../../../api/http/frame.ts';
import type { Operation } from '../../../api/http/route.ts';
import { issueCredential } from '../../../db/repositories/merchants/credentials.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';

const test = apiTest.extend('readOnly', { scope: 'file' }, ({ api }) =>
  issueCredential(api.db, {
    merchantId: api.merchant.merchantId,
    mode: 'test',
    pepper: api.pepper,
    nowAt: Date.now(),
    isReadOnly: true,
  }),
);

/** Method, path and body of an operation, with the values of its example. */
const callOf = ({ method, path, params, body }: Operation) =>
  [
    method.toUpperCase(),
    path.replaceAll(/:(\w+)/g, (_, name: string) => params?.[name]?.example ?? name),
    Object.values(body?.examples ?? {})[0],
  ] as const;

const ROUTES = OPERATIONS.filter(({ isOpen }) => isOpen !== true).map(callOf);
const KEYED = OPERATIONS.filter(({ idempotencyKey }) => idempotencyKey === 'listed').map(callOf);

describe('the API', () => {
  test.for(ROUTES)(
    'answers 401 to %s %s without credentials [IF-4, IF-5, IF-2.9]',
    async ([method, path, body], { api }) => {
      const answer = await api.call(method, path, { as: null, body });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toMatch(/^Basic /);
      expect(answer.json).toEqual({
        errorCode: 'unauthorized',
        errorDescription: 'The credentials are missing or not valid.',
      });
    },
  );

  test.for(OPERATIONS.filter(({ isOpen }) => isOpen !== true))(
    'answers 403 to credentials that allow reading only if $operationId changes something [IF-7, D-20]',
    async (operation, { readOnly, api }) => {
      const [method, path, body] = callOf(operation);
      const answer = await api.call(method, path, { as: readOnly, body });
      const isRefused = method !== 'GET' && path !== '/subscription/simulate';
      expect(answer.status === 403).toBe(isRefused);
      if (isRefused) {
        expect(answer.text).toBe(
          '{"errorCode":"read_only_credential","errorDescription":"The credentials allow reading only."}',
        );
      }
    },
  );

  test.for(KEYED)(
    'refuses %s %s with a malformed Idempotency-Key [IF-4, IF-8]',
    async ([method, path, body], { api }) => {
      for (const key of ['a'.repeat(256), 'with blank', 'ü']) {
        const headers = { 'idempotency-key': Buffer.from(key).toString('latin1') };
        const answer = await api.call(method, path, { body, headers });
        expect(answer.status).toBe(400);
        expect(answer.json).toMatchObject({
          errorCode: 'bad_request',
          errorDescription: expect.stringMatching(/Idempotency-Key/),
        });
      }
    },
  );

  test('lists the header Idempotency-Key for the ten routes for which the agreed interface lists the header [IF-4]', () => {
    const keyed = OPERATIONS.filter(
      ({ idempotencyKey, isExtension }) => idempotencyKey === 'listed' && isExtension !== true,
    );
    expect(keyed.map(({ path }) => path).toSorted()).toEqual([
      '/customer/create',
      '/payments/cancel/:xIntentId',
      '/payments/charge-tokenised-pm',
      '/setup-method/create',
      '/subscription/create',
      '/subscription/edit',
      '/subscription/link/merchant/generate-link',
      '/subscription/manual-retry',
      '/subscription/merchant/cancel',
      '/subscription/merchant/one-time-charge',
    ]);
  });
});

test('an address of only country and postal code is accepted for subscriptions, links and setup sessions [IF-2.2]', async ({
  api,
}) => {
  const details = {
    name: 'Ada Example',
    customerAddress: { country: 'GB', postalCode: 'SW1A 1AA' },
  };
  const calls: [string, object][] = [
    ['/subscription/create', subscriptionBody({ customerDetails: details })],
    [
      '/subscription/link/merchant/generate-link',
      { ...subscriptionBody({ customerDetails: details }), expiryDate: Date.now() + 86_400_000 },
    ],
    [
      '/setup-method/create',
      { currency: 'GBP', billingDetails: details, callbackUrl: 'https://merchant.example/back' },
    ],
  ];
  for (const [path, body] of calls) {
    expect(await api.call('POST', path, { body })).toMatchObject({ status: 200 });
  }
});

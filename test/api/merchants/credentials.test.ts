import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import {
  hashSecret,
  issueCredential,
  missingPeppers,
  revokeCredential,
  rotateCredential,
  ROTATION_OVERLAP_MS,
} from '../../../db/repositories/merchants/credentials.ts';
import { credentials } from '../../../db/schema/merchants.ts';
import type { Db } from '../../../db/client.ts';
import { eventually } from '../../support/eventually.ts';
import { test } from '../../support/api-environment.ts';
import { readSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';

/** A time in ms that is longer than the 5 s for which the API caches a credential. */
const CACHE_MS = 5_001;

const HOUR_MS = 3_600_000;

async function newCredential(
  api: ApiEnvironment,
  limits: { isReadOnly?: boolean; expiresAt?: number } = {},
) {
  const { merchantId } = api.merchant;
  const nowAt = Date.now();
  return issueCredential(api.db, {
    merchantId,
    mode: 'test',
    pepper: api.pepper,
    nowAt,
    ...limits,
  });
}

async function rowOf({ db }: ApiEnvironment, keyId: string) {
  const [row] = await db.select().from(credentials).where(eq(credentials.keyId, keyId));
  return row;
}

const list = (api: ApiEnvironment, as: { keyId: string; secret: string }) =>
  api.call('GET', '/webhook', { as });
const withHeader = (api: ApiEnvironment, authorization: string) =>
  api.call('GET', '/webhook', { as: null, headers: { authorization } });
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');

test('a request with a key id and its secret is accepted [IF-5, D-20]', async ({ api }) => {
  const answer = await list(api, api.merchant);
  expect([answer.status, answer.text]).toEqual([200, '{"data":[]}']);
});

test('the Basic scheme is accepted in upper and lower case [IF-5]', async ({ api }) => {
  const { keyId, secret } = api.merchant;
  expect((await withHeader(api, `bAsIc ${base64(`${keyId}:${secret}`)}`)).status).toBe(200);
});

test.for<[string, (api: ApiEnvironment) => string]>([
  ['no header', () => ''],
  ['another scheme', () => 'Bearer abc'],
  ['nothing after the scheme', () => 'Basic '],
  ['no Base64', () => 'Basic %%%'],
  ['Base64 of an invalid length', () => `Basic ${base64('a:b').replace(/=+$/, '')}x`],
  ['no colon', () => `Basic ${base64('mk_test_x')}`],
  ['an empty user', (api) => `Basic ${base64(`:${api.merchant.secret}`)}`],
  ['an empty password', (api) => `Basic ${base64(`${api.merchant.keyId}:`)}`],
  ['a wrong password', (api) => `Basic ${base64(`${api.merchant.keyId}:sk_test_wrong`)}`],
  ['an unknown user', (api) => `Basic ${base64(`mk_test_unknown:${api.merchant.secret}`)}`],
  [
    "another merchant's password",
    (api) => `Basic ${base64(`${api.merchant.keyId}:${api.other.secret}`)}`,
  ],
  [
    'the password with one extra character',
    (api) => `Basic ${base64(`${api.merchant.keyId}:${api.merchant.secret}x`)}`,
  ],
  [
    'a control character',
    (api) => `Basic ${base64(`${api.merchant.keyId}\t:${api.merchant.secret}`)}`,
  ],
  ['a NUL character in the user', (api) => `Basic ${base64(`mk\0:${api.merchant.secret}`)}`],
  ['bytes that are no text', () => `Basic ${base64(randomBytes(40))}`],
  ['a header of 1,000 characters', () => `Basic ${base64('x'.repeat(750))}`],
])(
  'every request with wrong credentials gets the same 401 answer: %s [D-20]',
  async ([, header], { api }) => {
    const answer = await withHeader(api, header(api));
    expect(answer.status).toBe(401);
    expect(answer.text).toBe(
      '{"errorCode":"unauthorized","errorDescription":"The credentials are missing or not valid."}',
    );
    expect(answer.headers['www-authenticate']).toBe('Basic realm="Perennial API", charset="UTF-8"');
  },
);

test('credentials with key id and secret swapped get a 401 that says so, whether or not the key id exists [D-20]', async ({
  api,
}) => {
  const { keyId, secret } = api.merchant;
  const headers = [`${secret}:${keyId}`, `sk_test_none:mk_live_none`].map(
    (text) => `Basic ${base64(text)}`,
  );
  for (const header of headers) {
    const answer = await withHeader(api, header);
    expect([answer.status, answer.json]).toEqual([
      401,
      {
        errorCode: 'unauthorized',
        errorDescription:
          'The user name and the password are swapped: the user name is the key id (mk_…), the password is the secret (sk_…).',
      },
    ]);
  }
});

test('a secret is stored only as its HMAC under the pepper [D-20]', async ({ api }) => {
  const { keyId, secret } = api.merchant;
  const [row] = await api.db.select().from(credentials).where(eq(credentials.keyId, keyId));

  expect(keyId).toMatch(/^mk_test_[0-9A-Za-z]{22}$/);
  expect(secret).toMatch(/^sk_test_[0-9A-Za-z]{43}$/);
  expect(row!.secretHash).toEqual(hashSecret(api.pepper, secret));
  expect(JSON.stringify(row)).not.toContain(secret);
});

test('a revoked credential stops working within five seconds [D-20]', async ({ api }) => {
  const credential = await newCredential(api);
  expect((await list(api, credential)).status).toBe(200);
  expect(await revokeCredential(api.db, credential.keyId, Date.now())).toBe(
    api.merchant.merchantId,
  );

  api.clock.aheadMs += CACHE_MS;

  expect((await list(api, credential)).status).toBe(401);
  expect(await revokeCredential(api.db, credential.keyId, Date.now())).toBeNull();
});

test('a rotated credential works beside the new one for 24 hours [D-20]', async ({ api }) => {
  const old = await newCredential(api);
  const { pepper } = api;
  const fresh = await rotateCredential(api.db, { keyId: old.keyId, pepper, nowAt: Date.now() });
  expect(
    await rotateCredential(api.db, { keyId: old.keyId, pepper, nowAt: Date.now() }),
  ).toBeNull();

  api.clock.aheadMs = ROTATION_OVERLAP_MS - 10_000;
  expect([(await list(api, old)).status, (await list(api, fresh!)).status]).toEqual([200, 200]);

  api.clock.aheadMs = ROTATION_OVERLAP_MS + 10_000;
  expect([(await list(api, old)).status, (await list(api, fresh!)).status]).toEqual([401, 200]);
});

test('a rotation keeps the scope and the expiry of a credential, and never prolongs the old one [D-20]', async ({
  api,
}) => {
  const expiresAt = Date.now() + HOUR_MS;
  const old = await newCredential(api, { isReadOnly: true, expiresAt });
  const { pepper } = api;
  const order = { keyId: old.keyId, pepper, nowAt: Date.now() };
  const fresh = await rotateCredential(api.db, order);
  expect(fresh?.formerUntil).toBe(expiresAt);
  expect(await rowOf(api, fresh!.keyId)).toMatchObject({ isReadOnly: true, expiresAt });
  const longer = await rotateCredential(api.db, {
    ...order,
    keyId: fresh!.keyId,
    expiresAt: expiresAt + HOUR_MS,
  });
  expect(await rowOf(api, longer!.keyId)).toMatchObject({
    isReadOnly: true,
    expiresAt: expiresAt + HOUR_MS,
  });
  api.clock.aheadMs = HOUR_MS + 10_000;
  const statuses = await Promise.all([old, fresh!, longer!].map((one) => list(api, one)));
  expect(statuses.map(({ status }) => status)).toEqual([401, 401, 200]);
});

test('a read-only credential gets no link with which the payment method could be replaced [D-20, D-33]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const all = await readSubscription(api, subscription);
  const { updatePaymentMethodLink, ...rest } = all;
  expect(updatePaymentMethodLink).toMatch(/^https:/);
  const as = await newCredential(api, { isReadOnly: true });
  const path = `/subscription/get-subscription/${subscription.subscriptionId}`;
  expect((await api.call('GET', path, { as })).json).toEqual(rest);
  const { customerId } = rest;
  const listed = await api.call('GET', `/subscription?customerId=${String(customerId)}`, { as });
  expect(listed.json).toEqual({ data: [rest], metadata: {} });
});

test('the latest use is written once a minute, and a request neither waits for this write nor fails with it [D-20]', async ({
  api,
}) => {
  const credential = await newCredential(api);
  const usedAt = async () => (await rowOf(api, credential.keyId))?.lastUsedAt ?? null;
  const written: (number | null)[] = [await usedAt()];
  const untilWritten = async () => {
    await eventually(async () => expect(written).not.toContain(await usedAt()));
    written.push(await usedAt());
  };
  const { keyId } = credential;
  const lock = (tx: Db) =>
    tx.select().from(credentials).where(eq(credentials.keyId, keyId)).for('update');
  await api.db.transaction(async (tx) => {
    await lock(tx);
    expect((await list(api, credential)).status).toBe(200);
    expect(await usedAt()).toBeNull();
  });
  await untilWritten();
  api.clock.aheadMs += 59_000;
  expect((await list(api, credential)).status).toBe(200);
  api.clock.aheadMs += 2_000;
  expect((await list(api, credential)).status).toBe(200);
  await untilWritten();
  expect(written[2]! - written[1]!).toBeGreaterThan(60_000);
});

test('a credential of a former pepper works, and is hashed with the current one after its next use [D-20]', async ({
  api,
  createApi,
}) => {
  const [next, former] = [
    'pepper-of-next-year-000000000000000001',
    'pepper-of-this-year-00000000000000001',
  ];
  const renewed = await createApi({ peppers: [next, former] });
  const { merchantId } = renewed.merchant;
  const order = { merchantId, mode: 'test', pepper: former, nowAt: Date.now() } as const;
  const credential = await issueCredential(renewed.db, order);
  expect(await missingPeppers(renewed.db, [next])).toBe(
    'CREDENTIAL_PEPPER: 1 working credentials were made with another value. ' +
      'Append this value after a comma, or revoke the credentials.',
  );
  expect((await list(renewed, credential)).status).toBe(200);
  await expect.poll(() => missingPeppers(renewed.db, [next])).toBeNull();
  renewed.clock.aheadMs += CACHE_MS;
  expect((await list(renewed, credential)).status).toBe(200);
  const { keyId, secret } = credential;
  expect((await rowOf(renewed, keyId))?.secretHash).toEqual(hashSecret(next, secret));
  expect((await list(api, credential)).status).toBe(401);
});

test('wrong guesses of one key id from one address are refused after 30 a minute, and the right credentials never [D-20]', async ({
  api,
}) => {
  const credential = await newCredential(api);
  const guess = { ...credential, secret: 'sk_test_wrong' };
  for (let guessed = 0; guessed < 30; guessed += 1) {
    expect((await list(api, guess)).status).toBe(401);
  }
  const refused = await list(api, guess);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect((await list(api, credential)).status).toBe(200);
  expect((await list(api, { ...guess, keyId: 'mk_test_another' })).status).toBe(401);
  expect((await list(api, guess)).status).toBe(429);
});

import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  hashSecret,
  issueCredential,
  revokeCredential,
  rotateCredential,
  ROTATION_OVERLAP_MS,
} from '../../db/repositories/merchants/credentials.ts';
import { credentials } from '../../db/schema/credentials.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

/** One millisecond more than the API caches a credential. */
const CACHE_MS = 5_001;

async function newCredential() {
  const { merchantId } = world.merchant;
  const nowAt = Date.now();
  return issueCredential(world.db, { merchantId, mode: 'test', pepper: world.pepper, nowAt });
}

const list = (as: { keyId: string; secret: string }) => world.call('GET', '/webhook', { as });
const withHeader = (authorization: string) =>
  world.call('GET', '/webhook', { as: null, headers: { authorization } });
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');

test('a request with a key id and its secret is accepted [IF-5, D-20]', async () => {
  const answer = await list(world.merchant);
  expect([answer.status, answer.text]).toEqual([200, '{"data":[]}']);
});

test('the Basic scheme is accepted in upper and lower case [IF-5]', async () => {
  const { keyId, secret } = world.merchant;
  expect((await withHeader(`bAsIc ${base64(`${keyId}:${secret}`)}`)).status).toBe(200);
});

test.each([
  ['no header', () => ''],
  ['another scheme', () => 'Bearer abc'],
  ['nothing after the scheme', () => 'Basic '],
  ['no Base64', () => 'Basic %%%'],
  ['Base64 without its padding', () => `Basic ${base64('a:b').replace(/=+$/, '')}x`],
  ['no colon', () => `Basic ${base64('mk_test_x')}`],
  ['an empty user', () => `Basic ${base64(`:${world.merchant.secret}`)}`],
  ['an empty password', () => `Basic ${base64(`${world.merchant.keyId}:`)}`],
  ['a wrong password', () => `Basic ${base64(`${world.merchant.keyId}:sk_test_wrong`)}`],
  ['an unknown user', () => `Basic ${base64(`mk_test_unknown:${world.merchant.secret}`)}`],
  [
    "another merchant's password",
    () => `Basic ${base64(`${world.merchant.keyId}:${world.other.secret}`)}`,
  ],
  [
    'the password with one extra character',
    () => `Basic ${base64(`${world.merchant.keyId}:${world.merchant.secret}x`)}`,
  ],
  [
    'a control character',
    () => `Basic ${base64(`${world.merchant.keyId}\t:${world.merchant.secret}`)}`,
  ],
  ['a NUL character in the user', () => `Basic ${base64(`mk\0:${world.merchant.secret}`)}`],
  ['bytes that are no text', () => `Basic ${base64(randomBytes(40))}`],
  ['a header of 1,000 characters', () => `Basic ${base64('x'.repeat(750))}`],
])(
  'a request with %s gets the same 401 as any other bad credential [D-20]',
  async (_name, header) => {
    const answer = await withHeader(header());
    expect(answer.status).toBe(401);
    expect(answer.text).toBe(
      '{"errorCode":"unauthorized","errorDescription":"The credentials are missing or not valid."}',
    );
    expect(answer.headers['www-authenticate']).toBe('Basic realm="Perennial API", charset="UTF-8"');
  },
);

test('a secret is stored only as its HMAC under the pepper [D-20]', async () => {
  const { keyId, secret } = world.merchant;
  const [row] = await world.db.select().from(credentials).where(eq(credentials.keyId, keyId));

  expect(keyId).toMatch(/^mk_test_[0-9A-Za-z]{22}$/);
  expect(secret).toMatch(/^sk_test_[0-9A-Za-z]{43}$/);
  expect(row!.secretHash).toEqual(hashSecret(world.pepper, secret));
  expect(JSON.stringify(row)).not.toContain(secret);
});

test('a revoked credential stops working within five seconds [D-20]', async () => {
  const credential = await newCredential();
  expect((await list(credential)).status).toBe(200);
  expect(await revokeCredential(world.db, credential.keyId, Date.now())).toBe(true);

  world.clock.aheadMs += CACHE_MS;

  expect((await list(credential)).status).toBe(401);
  expect(await revokeCredential(world.db, credential.keyId, Date.now())).toBe(false);
});

test('a rotated credential works beside the new one for 24 hours [D-20]', async () => {
  const old = await newCredential();
  const { pepper } = world;
  const fresh = await rotateCredential(world.db, { keyId: old.keyId, pepper, nowAt: Date.now() });
  expect(
    await rotateCredential(world.db, { keyId: old.keyId, pepper, nowAt: Date.now() }),
  ).toBeNull();

  world.clock.aheadMs = ROTATION_OVERLAP_MS - 10_000;
  expect([(await list(old)).status, (await list(fresh!)).status]).toEqual([200, 200]);

  world.clock.aheadMs = ROTATION_OVERLAP_MS + 10_000;
  expect([(await list(old)).status, (await list(fresh!)).status]).toEqual([401, 200]);
  world.clock.aheadMs = 0;
});

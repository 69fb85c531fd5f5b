import { expect, onTestFinished } from 'vitest';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import type { CreatedMerchant } from '../../../db/repositories/merchants/merchants.ts';
import { expectError } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { emit, feedPath } from '../../support/fixtures/feed.ts';

const TOO_MANY = 'At most 4 calls may wait for events at the same time.';

/** Creates a merchant with an empty feed. */
const newMerchant = ({ db, pepper }: ApiEnvironment) =>
  createMerchantWithCredential(db, { name: 'Feed', mode: 'test', pepper });

const wait = (api: ApiEnvironment, as: CreatedMerchant, query = {}): Promise<Answer> =>
  api.call('GET', feedPath({ wait: 25, ...query }), { as });

const emitTo = ({ db }: ApiEnvironment, { merchantId }: CreatedMerchant) =>
  db.transaction((tx) => emit(tx, { merchantId, streamId: 'sub_a' }));

const found = ({ status, json }: Answer) => [
  status,
  (json as { data?: { sequence: number }[] }).data?.map(({ sequence }) => sequence),
];

/** Sends five waiting calls. Returns the one that is refused, and the four that wait. */
async function fillWaits(api: ApiEnvironment, as: CreatedMerchant) {
  const calls = Array.from({ length: 5 }, () => wait(api, as));
  const refused = await Promise.race(calls.map((call, index) => call.then(() => index)));
  return { refused: await calls[refused]!, waiting: calls.toSpliced(refused, 1) };
}

test('a waiting call is answered with the next event [D-56]', async ({ api }) => {
  const as = await newMerchant(api);
  const calls = [wait(api, as), wait(api, as, { after: 'now' })];
  await expect.poll(() => api.feedWaits.waiting(as.merchantId)).toBe(2);
  await emitTo(api, as);
  expect((await Promise.all(calls)).map(found)).toEqual([
    [200, [1]],
    [200, [1]],
  ]);
});

test('a call whose wait ends without an event gets an empty page with the cursor that it sent [D-56]', async ({
  api,
}) => {
  const as = await newMerchant(api);
  await emitTo(api, as);
  const { json } = await api.call('GET', feedPath(), { as });
  const { after } = (json as { metadata: { after: string } }).metadata;
  const answer = await wait(api, as, { after, wait: 1 });
  expect(answer.json).toMatchObject({ data: [], metadata: { after } });
});

test('of the waiting calls of a merchant a fifth one is refused, and another merchant’s call waits [D-56]', async ({
  api,
}) => {
  const [as, other] = [await newMerchant(api), await newMerchant(api)];
  const { refused, waiting } = await fillWaits(api, as);
  expectError(refused, 429, 'rate_limit_exceeded', TOO_MANY);
  expect(refused.headers['retry-after']).toBe('1');
  const neighbour = wait(api, other);
  await expect.poll(() => api.feedWaits.waiting(other.merchantId)).toBe(1);
  // A call that finds an event does not wait, so it is never refused.
  await emitTo(api, as);
  const answers = await Promise.all([...waiting, wait(api, as)]);
  expect(answers.map(found)).toEqual(answers.map(() => [200, [1]]));
  await emitTo(api, other);
  expect(found(await neighbour)).toEqual([200, [1]]);
  expect(api.feedWaits.waiting(as.merchantId)).toBe(0);
});

test('a client that goes away while it waits makes room for another call [D-56]', async ({
  api,
}) => {
  const as = await newMerchant(api);
  const leaving = new AbortController();
  const authorization = `Basic ${Buffer.from(`${as.keyId}:${as.secret}`).toString('base64')}`;
  const gone = fetch(api.url + feedPath({ wait: 25 }), {
    headers: { authorization },
    signal: leaving.signal,
  });
  await expect.poll(() => api.feedWaits.waiting(as.merchantId)).toBe(1);
  leaving.abort();
  await expect(gone).rejects.toThrow('aborted');
  await expect.poll(() => api.feedWaits.waiting(as.merchantId)).toBe(0);
});

test('more calls wait than the pool has connections, and other calls are answered meanwhile [D-56]', async ({
  api,
}) => {
  const merchants = [await newMerchant(api), await newMerchant(api), await newMerchant(api)];
  const calls = merchants.flatMap((as) => Array.from({ length: 4 }, () => wait(api, as)));
  for (const { merchantId } of merchants) {
    await expect.poll(() => api.feedWaits.waiting(merchantId)).toBe(4);
  }
  expect((await api.call('GET', '/webhook')).status).toBe(200);
  await expect.poll(() => api.poolUse()).toMatchObject({ used: 0, waiting: 0 });
  for (const as of merchants) await emitTo(api, as);
  expect((await Promise.all(calls)).map(found)).toEqual(calls.map(() => [200, [1]]));
});

test('a call whose database goes away while it waits is answered 503 [D-56, D-§8]', async ({
  api,
}) => {
  const as = await newMerchant(api);
  const call = wait(api, as);
  await expect.poll(() => api.feedWaits.waiting(as.merchantId)).toBe(1);
  const answer = await api.withoutDatabase(() => call);
  expectError(
    answer,
    503,
    'service_unavailable',
    'The service is not available at the moment. It is safe to repeat with the same key.',
  );
  expect(api.feedWaits.waiting(as.merchantId)).toBe(0);
});

test('a stop answers the waiting calls at once, and later calls do not wait [D-56]', async ({
  createApi,
}) => {
  const api = await createApi();
  const as = await newMerchant(api);
  const call = wait(api, as);
  await expect.poll(() => api.feedWaits.waiting(as.merchantId)).toBe(1);
  api.feedWaits.stop();
  onTestFinished(() => api.restore());
  expect(found(await call)).toEqual([200, []]);
  expect(found(await wait(api, as))).toEqual([200, []]);
});

import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import {
  KEY_LEASE_MS,
  KEY_LIFETIME_MS,
} from '../../../db/repositories/merchants/idempotency-keys.ts';
import { customers } from '../../../db/schema/customers.ts';
import { idempotencyKeys } from '../../../db/schema/merchants.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { expectError, untilAvailable } from '../../support/answers.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';
import { saveCard, tokenisedBody } from '../../support/fixtures/payments.ts';

const ADA = { customerDetails: { name: 'Ada', email: 'ada@example.com' } };

async function keyRow(api: ApiEnvironment, key: string) {
  const [row] = await api.db.select().from(idempotencyKeys).where(eq(idempotencyKeys.key, key));
  return row;
}

test('a repeated call is replayed when only the order of its fields or its whitespace differs [D-17]', async ({
  api,
}) => {
  const first = await api.call('POST', '/customer/create', { body: ADA, key: 'order' });
  const second = await api.call('POST', '/customer/create', {
    raw: '{ "customerDetails" : { "email": "ada@example.com", "name": "Ada" } }',
    key: 'order',
  });
  expect(second.text).toBe(first.text);
});

test('the same key on another route is a new request [D-17]', async ({ api }) => {
  const customer = await api.call('POST', '/customer/create', { body: ADA, key: 'shared' });
  const clock = await api.call('POST', '/test-clock/create', { body: { now: 7 }, key: 'shared' });
  expect([customer.status, clock.status]).toEqual([200, 200]);
});

test('the same key sent by another merchant is a new request [D-17, D-21]', async ({ api }) => {
  const mine = await api.call('POST', '/customer/create', { body: ADA, key: 'both' });
  const theirs = await api.call('POST', '/customer/create', {
    body: ADA,
    key: 'both',
    as: api.other,
  });
  expect(theirs.status).toBe(200);
  expect(theirs.headers['idempotent-replayed']).toBeUndefined();
  expect(theirs.text).not.toBe(mine.text);
});

test('a malformed request stores no key, so the corrected request succeeds with the same key [D-17]', async ({
  api,
}) => {
  const wrong = await api.call('POST', '/customer/create', { body: {}, key: 'corrected' });
  expect(wrong.status).toBe(400);
  expect(await keyRow(api, 'corrected')).toBeUndefined();

  const right = await api.call('POST', '/customer/create', { body: ADA, key: 'corrected' });
  expect(right.status).toBe(200);
});

test('an idempotency key may be used for a new request after 45 days [D-17]', async ({ api }) => {
  const first = await api.call('POST', '/customer/create', { body: ADA, key: 'old' });
  api.clock.aheadMs = KEY_LIFETIME_MS + 1_000;
  const later = await api.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Bob' } },
    key: 'old',
  });
  expect(later.status).toBe(200);
  expect(later.text).not.toBe(first.text);
});

test('an idempotency key also works on a route for which the OpenAPI document does not list the header [D-17]', async ({
  api,
}) => {
  const made = await api.call('POST', '/webhook', {
    body: { eventSigner: 's', endpoint: 'https://m.example/', subscribedEventTypes: [] },
  });
  const { webhookConfigId } = made.json as { webhookConfigId: string };
  const put = (endpoint: string) =>
    api.call('PUT', `/webhook/${webhookConfigId}`, {
      body: { eventSigner: 's', endpoint, subscribedEventTypes: [] },
      key: 'put',
    });

  const first = await put('https://m.example/1');
  const again = await put('https://m.example/1');
  const other = await put('https://m.example/2');

  expect([first.status, first.text]).toEqual([204, '']);
  expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([
    204,
    '',
    'true',
  ]);
  expect(other.status).toBe(422);
});

test('a repeat with a key gets 409 with Retry-After while the first call runs [D-17]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api);
  const body = { subscriptionId };
  let release = (): void => undefined;
  api.workflows.faults.holdExecute = new Promise((resolve) => {
    release = resolve;
  });
  const sent = api.workflows.calls.length;
  const running = api.call('POST', '/subscription/merchant/cancel', { body, key: 'running' });
  await expect.poll(() => api.workflows.calls.length).toBe(sent + 1);

  const twin = await api.call('POST', '/subscription/merchant/cancel', { body, key: 'running' });
  release();

  expect(twin.status).toBe(409);
  expect(twin.headers['retry-after']).toBe('1');
  expect(twin.json).toEqual({
    errorCode: 'idempotency_key_in_use',
    errorDescription:
      'A request with this Idempotency-Key is still being processed. Try again shortly.',
  });
  expect((await running).status).toBe(200);
});

test('a repeat returns the result of an applied command whose answer was lost [D-32]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api);
  const key = 'lost-answer';
  const cancel = () =>
    api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId }, key });
  await cancel();
  // The state after a crash before the answer was stored: the key is in flight until its lease expires.
  await api.db
    .update(idempotencyKeys)
    .set({ state: 'IN_FLIGHT', httpStatus: null, body: null })
    .where(eq(idempotencyKeys.key, key));

  const early = await cancel();
  api.clock.aheadMs = KEY_LEASE_MS + 1_000;
  const late = await cancel();
  api.clock.aheadMs = 0;

  expect(early.status).toBe(409);
  // A new command would be refused: the subscription is ENDED.
  expect([late.status, late.text]).toEqual([200, '{}']);
  expect(late.headers['idempotent-replayed']).toBeUndefined();
});

test('one of many parallel calls takes over an abandoned key and does the work [D-17]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api);
  const cancel = () =>
    api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId }, key: 'taken' });
  api.workflows.faults.isDown = true;
  await cancel();
  api.workflows.faults.isDown = false;
  const sent = api.workflows.calls.length;

  const answers = await Promise.all(Array.from({ length: 20 }, () => untilAvailable(cancel)));

  // The call that takes over the key, and calls after its answer, get 200. Calls during its work get 409.
  expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true);
  expect(
    answers.filter(({ headers, status }) => status === 200 && !headers['idempotent-replayed']),
  ).toHaveLength(1);
  expect(api.workflows.calls).toHaveLength(sent + 1);
});

test('a failed request leaves no row and no key [D-17]', async ({ api }) => {
  const before = await api.countRows();
  const [existing] = await api.db.select().from(customers).limit(1);
  await api.db.execute(
    `create function refuse() returns trigger as $$ begin raise 'refused'; end $$ language plpgsql;
     create trigger refuse before insert on checkout_session execute function refuse();`,
  );
  try {
    const answer = await api.call('POST', '/subscription/create', {
      body: subscriptionBody({ customerId: existing!.id }),
      key: 'failing',
    });
    expectError(
      answer,
      500,
      'internal_server_error',
      'Something went wrong on our side. Quote the Request-Id when you report it.',
    );
    expect(await api.countRows()).toEqual(before);
  } finally {
    await api.db.execute('drop trigger refuse on checkout_session; drop function refuse();');
  }
});

const DAY_MS = 86_400_000;

async function charge(api: ApiEnvironment, key: string, amount: number, body: object) {
  const answer = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: { ...body, amount },
    key,
  });
  return {
    ...(answer.json as { intentId: string; status: string; errorCode?: string }),
    isReplayed: answer.headers['idempotent-replayed'] === 'true',
  };
}

test('the answer of a declined charge is kept under its idempotency key for 24 h; after that a call with the key charges anew [D-17]', async ({
  api,
}) => {
  const body = tokenisedBody(await saveCard(api));
  api.orders.faults.card = 'insufficient_funds';
  const declined = await charge(api, 'cycle-7', 2_500, body);
  expect(declined).toMatchObject({ status: 'FAILED', errorCode: 'insufficient_funds' });
  api.orders.faults.card = null;

  api.clock.aheadMs = DAY_MS - 60_000;
  expect(await charge(api, 'cycle-7', 2_500, body)).toEqual({ ...declined, isReplayed: true });

  api.clock.aheadMs = DAY_MS + 60_000;
  const paid = await charge(api, 'cycle-7', 2_600, body);
  expect(paid).toMatchObject({ status: 'SUCCESS', isReplayed: false });
  expect(paid.intentId).not.toBe(declined.intentId);

  api.clock.aheadMs = 44 * DAY_MS;
  expect(await charge(api, 'cycle-7', 2_600, body)).toEqual({ ...paid, isReplayed: true });
});

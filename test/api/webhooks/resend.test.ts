import { asc, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { deactivateWebhookConfig } from '../../../db/repositories/webhooks/configs.ts';
import { outboxEvents, webhookConfigs, webhookDeliveries } from '../../../db/schema/webhooks.ts';
import { expectError } from '../../support/answers.ts';
import { test as apiTest } from '../../support/api-environment.ts';
import { emit } from '../../support/fixtures/feed.ts';

const INACTIVE =
  'The endpoint is inactive. Reactivate it first, with PUT /webhook/{webhookConfigId}.';

/** A merchant with one endpoint and two events, `delivered` and `missed`. */
const test = apiTest.extend('shop', async ({ api }) => {
  const { db, pepper } = api;
  const as = await createMerchantWithCredential(db, { name: 'Resend', mode: 'test', pepper });
  const { merchantId } = as;
  const call = (method: string, path: string, body?: object) =>
    api.call(method, path, { as, ...(body && { body }) });
  const created = await call('POST', '/webhook', {
    eventSigner: 'secret',
    endpoint: 'https://merchant.example/hook',
    subscribedEventTypes: ['intent.success'],
  });
  const { webhookConfigId: configId } = created.json as { webhookConfigId: string };
  await db.transaction((tx) =>
    emit(tx, { merchantId, streamId: 'sub_1' }, ['intent.success', 'intent.success']),
  );
  const events = await db
    .select()
    .from(outboxEvents)
    .where(eq(outboxEvents.merchantId, merchantId))
    .orderBy(asc(outboxEvents.sequence));
  const [delivered, missed] = events.map(({ id }) => id) as [string, string];
  const settle = (eventId: string, values: Partial<typeof webhookDeliveries.$inferInsert>) =>
    db.update(webhookDeliveries).set(values).where(eq(webhookDeliveries.eventId, eventId));
  const at = Date.parse('2026-11-20T12:00:00Z');
  const success = { lastHttpStatus: 200, durationMs: 12, answer: 'ok' };
  await settle(delivered, { state: 'DELIVERED', attempts: 1, settledAt: at, ...success });
  await settle(missed, { state: 'FAILED', attempts: 10, settledAt: at, lastHttpStatus: 500 });
  return { as, merchantId, call, configId, delivered, missed, at };
});

const NOT_FOUND = [
  ['GET', '/events/EVENT/deliveries', undefined, 'event'],
  ['POST', '/events/EVENT/resend', {}, 'event'],
  ['GET', '/webhook/CONFIG/deliveries', undefined, 'webhook configuration'],
  ['POST', '/webhook/CONFIG/recover', { since: 0 }, 'webhook configuration'],
  ['POST', '/webhook/CONFIG/ping', undefined, 'webhook configuration'],
  ['GET', '/webhook/recoveries/RECOVERY', undefined, 'recovery'],
] as const;

test('the log, a resend, a recovery and a ping answer for another merchant’s ids as for unknown ones [D-56]', async ({
  api,
  shop: { call, configId, delivered },
}) => {
  const recovery = await call('POST', `/webhook/${configId}/recover`, { since: 0 });
  const { recoveryId } = recovery.json as { recoveryId: string };
  for (const [method, path, body, what] of NOT_FOUND) {
    const own = { EVENT: delivered, CONFIG: configId, RECOVERY: recoveryId };
    const unknown = {
      EVENT: 'evt_0002sSOLu0000000000001',
      CONFIG: 'whc_0002sSOLu0000000000001',
      RECOVERY: 'rec_0002sSOLu0000000000001',
    };
    for (const ids of [own, unknown, { EVENT: 'x', CONFIG: 'x', RECOVERY: 'x' }]) {
      const named = path.replace(/EVENT|CONFIG|RECOVERY/, (name) => ids[name as keyof typeof ids]);
      const answer = await api.call(method, named, { ...(body && { body }) });
      expectError(answer, 400, 'resource_not_found', `There is no such ${what}.`);
    }
  }
  expect(api.workflows.calls.filter(({ name }) => name === 'ping')).toEqual([]);
});

test('the log tells of the attempt that delivered an event, by event and by endpoint [D-56]', async ({
  shop: { call, configId, delivered, at },
}) => {
  const attempt = {
    eventId: delivered,
    webhookConfigId: configId,
    attempt: 1,
    manual: false,
    at,
    httpStatus: 200,
    durationMs: 12,
    answer: 'ok',
  };
  const ofEvent = await call('GET', `/events/${delivered}/deliveries`);
  expect(ofEvent.json).toEqual({ data: [attempt] });
  const path = `/webhook/${configId}/deliveries`;
  expect((await call('GET', path)).json).toEqual({ data: [attempt], metadata: {} });
  expect((await call('GET', `${path}?outcome=failed`)).json).toEqual({ data: [], metadata: {} });
  expect((await call('GET', `${path}?since=${at + 1}`)).json).toEqual({ data: [], metadata: {} });
  expectError(
    await call('GET', `${path}?offset=x`),
    400,
    'bad_request',
    'offset: must be metadata.offset of this list',
  );
});

test('a resend is answered at once, wakes the queue, and happens once for one Idempotency-Key [D-56, D-17]', async ({
  api,
  shop: { as, configId, delivered },
}) => {
  const options = { as, body: {}, headers: { 'Idempotency-Key': 'resend-1' } };
  const path = `/events/${delivered}/resend`;
  const first = await api.call('POST', path, options);
  const again = await api.call('POST', path, options);
  expect([first.status, first.json]).toEqual([202, { webhookConfigIds: [configId] }]);
  expect([again.status, again.text]).toEqual([202, first.text]);
  const isOf = eq(webhookDeliveries.eventId, delivered);
  const rows = await api.db.select().from(webhookDeliveries).where(isOf);
  expect(rows.map(({ state, attempts, resentAfter }) => [state, attempts, resentAfter])).toEqual([
    ['PENDING', 1, 1],
  ]);
  const woken = api.workflows.calls.filter(
    ({ name, ref }) => name === 'breakerClosed' && 'configId' in ref && ref.configId === configId,
  );
  expect(woken).toHaveLength(1);
});

test('a recovery is a job whose progress can be read, and takes only what did not arrive [D-56]', async ({
  shop: { call, configId, missed },
}) => {
  const listed = await call('GET', '/webhook');
  expect(listed.json).toMatchObject({ data: [{ state: 'HEALTHY', missedEvents: 1 }] });
  const begun = await call('POST', `/webhook/${configId}/recover`, { since: 0, which: ['failed'] });
  const job = begun.json as { recoveryId: string };
  const counts = { events: 1, pending: 1, delivered: 0, failed: 0 };
  expect([begun.status, job]).toEqual([
    202,
    {
      recoveryId: expect.stringMatching(/^rec_/),
      webhookConfigId: configId,
      state: 'RUNNING',
      ...counts,
      createdAt: expect.any(Number),
    },
  ]);
  const read = await call('GET', `/webhook/recoveries/${job.recoveryId}`);
  expect(read.json).toEqual(job);
  const event = await call('GET', `/events/${missed}`);
  expect(event.json).toMatchObject({ deliveries: [{ state: 'PENDING', attempts: 10 }] });
  const again = await call('POST', `/webhook/${configId}/recover`, { since: 0 });
  expect(again.json).toMatchObject({ state: 'DONE', events: 0 });
});

test('an inactive endpoint gets nothing again before it is reactivated, but a ping [D-56]', async ({
  api,
  shop: { call, merchantId, configId, delivered },
}) => {
  const isConfig = eq(webhookConfigs.id, configId);
  const [row] = await api.db.select().from(webhookConfigs).where(isConfig);
  const { updatedAt: readUpdatedAt } = row!;
  const reason = 'endpoint_gone' as const;
  await deactivateWebhookConfig(api.db, { merchantId, configId, readUpdatedAt, reason, at: 1 });
  const paths = [
    [`/events/${delivered}/resend`, { webhookConfigId: configId }],
    [`/events/${delivered}/resend`, {}],
    [`/webhook/${configId}/recover`, { since: 0 }],
  ] as const;
  for (const [path, body] of paths) {
    expectError(await call('POST', path, body), 409, 'operation_not_allowed', INACTIVE);
  }
  expect((await call('GET', '/webhook?includeInactive=true')).json).toMatchObject({
    data: [{ state: 'INACTIVE', isActive: false, deactivatedReason: 'endpoint_gone' }],
  });
  const pinged = await call('POST', `/webhook/${configId}/ping`);
  expect([pinged.status, pinged.json]).toEqual([
    200,
    { httpStatus: 200, durationMs: 7, answer: 'ok' },
  ]);
  expect((await call('POST', `/webhook/${configId}/ping`)).status).toBe(429);
});

test.for([
  [{}, 'since: is required'],
  [{ since: 'yesterday' }, /^since: /],
  [{ since: 0, which: [] }, /^which: /],
  [{ since: 0, which: ['delivered'] }, /^which/],
] as const)('a recovery refuses %j [D-56, IF-7]', async ([body, text], { shop }) => {
  const answer = await shop.call('POST', `/webhook/${shop.configId}/recover`, body);
  expect(answer.status).toBe(400);
  const { errorDescription } = answer.json as { errorDescription: string };
  expect(errorDescription).toMatch(text);
});

import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deactivateWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { webhookConfigs } from '../../db/schema/webhook-configs.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const SECRET = 'whsec_c2VjcmV0LW9mLXRoZS1tZXJjaGFudA==';
const ENDPOINT = 'https://merchant.example/hook?x=1';

async function create(body: Record<string, unknown> = {}): Promise<string> {
  const answer = await world.call('POST', '/webhook', {
    body: {
      eventSigner: SECRET,
      endpoint: ENDPOINT,
      subscribedEventTypes: ['intent.created', 'subscription.created'],
      ...body,
    },
  });
  expect(answer.status).toBe(200);
  return (answer.json as { webhookConfigId: string }).webhookConfigId;
}

async function list(query = ''): Promise<{ webhookConfigId: string; isActive: boolean }[]> {
  const answer = await world.call('GET', `/webhook${query}`);
  expect(answer.status).toBe(200);
  return (answer.json as { data: { webhookConfigId: string; isActive: boolean }[] }).data;
}

async function row(id: string) {
  const [found] = await world.db.select().from(webhookConfigs).where(eq(webhookConfigs.id, id));
  return found!;
}

test('a configuration’s secret is listed masked and stored sealed [IF-2.6, IF-4.14, D-55]', async () => {
  const id = await create({ subscribedEventTypes: ['intent.success', 'intent.success'] });
  expect(id).toMatch(/^whc_[0-9A-Za-z]{22}$/);
  expect((await list()).find(({ webhookConfigId }) => webhookConfigId === id)).toEqual({
    webhookConfigId: id,
    webHookUrl: ENDPOINT,
    eventSigner: '<SIGNING_SECRET>',
    subscribedEventTypes: ['intent.success'],
    isActive: true,
  });
  expect((await row(id)).sealedSigner.toString('latin1')).not.toContain(SECRET);
});

test('an update answers 204 without a body and changes the list [IF-4.15, D-16]', async () => {
  const id = await create();
  const answer = await world.call('PUT', `/webhook/${id}`, {
    body: {
      eventSigner: SECRET,
      endpoint: 'https://merchant.example/other',
      subscribedEventTypes: ['intent.failed'],
    },
  });
  expect([answer.status, answer.text]).toEqual([204, '']);
  expect(answer.headers['content-type']).toBeUndefined();
  expect((await list()).find(({ webhookConfigId }) => webhookConfigId === id)).toMatchObject({
    webHookUrl: 'https://merchant.example/other',
    subscribedEventTypes: ['intent.failed'],
  });
  // An update with the same secret does not rotate it.
  expect((await row(id)).sealedPreviousSigner).toBeNull();
});

test('an update with the masked secret keeps the stored secret [IF-2.6, D-55]', async () => {
  const id = await create();
  const { sealedSigner } = await row(id);
  const shown = { eventSigner: '<SIGNING_SECRET>', endpoint: ENDPOINT, subscribedEventTypes: [] };
  expect((await world.call('PUT', `/webhook/${id}`, { body: shown })).status).toBe(204);
  expect(await row(id)).toMatchObject({ sealedSigner, sealedPreviousSigner: null, eventTypes: [] });
  // A new configuration has no stored secret to keep.
  expect((await world.call('POST', '/webhook', { body: shown })).json).toEqual({
    errorCode: 'bad_request',
    errorDescription: 'eventSigner: must be a secret of your own',
  });
});

test('an update with a new secret keeps the old one for 24 hours [D-53]', async () => {
  const id = await create();
  const { sealedSigner } = await row(id);
  const before = Date.now();
  await world.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: 'another', endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  const { sealedPreviousSigner, previousSignerUntil } = await row(id);
  expect(sealedPreviousSigner).toEqual(sealedSigner);
  const hours = (previousSignerUntil! - before) / 3_600_000;
  expect(hours).toBeGreaterThanOrEqual(24);
  expect(hours).toBeLessThan(24.1);
});

test('an inactive configuration is listed only on request [IF-4.14, D-55]', async () => {
  const id = await create();
  const { merchantId } = world.merchant;
  await deactivateWebhookConfig(world.db, {
    merchantId,
    configId: id,
    url: ENDPOINT,
    reason: '410 Gone',
    at: Date.now(),
  });
  const has = async (query: string) =>
    (await list(query)).some(({ webhookConfigId }) => webhookConfigId === id);

  expect([
    await has(''),
    await has('?includeInactive=false'),
    await has('?includeInactive=true'),
  ]).toEqual([false, false, true]);

  await world.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  expect(await has('')).toBe(true);
});

test('an update closes the breaker and signals the endpoint queue [D-54, D-55]', async () => {
  const id = await create();
  const failures = { consecutiveFailures: 9, pausedUntil: Date.now() + 60_000, failingSince: 1 };
  await world.db.update(webhookConfigs).set(failures).where(eq(webhookConfigs.id, id));
  await world.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  expect(await row(id)).toMatchObject({
    consecutiveFailures: 0,
    pausedUntil: null,
    failingSince: null,
  });
  expect(world.workflows.calls.at(-1)).toEqual({
    name: 'breakerClosed',
    ref: { merchantId: world.merchant.merchantId, configId: id },
  });
});

test('a deleted configuration is in no list and cannot be updated [D-55]', async () => {
  const id = await create();
  const deleted = await world.call('DELETE', `/webhook/${id}`);
  const again = await world.call('DELETE', `/webhook/${id}`);
  const updated = await world.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });

  expect([deleted.status, deleted.text]).toEqual([200, '{}']);
  expect([again.status, updated.status]).toEqual([400, 400]);
  const all = await list('?includeInactive=true');
  expect(all.some(({ webhookConfigId }) => webhookConfigId === id)).toBe(false);
});

test('a configuration gets only the subscribed events of a create request [D-50, D-51]', async () => {
  const id = await create({ subscribedEventTypes: ['intent.created'] });
  await world.call('POST', '/subscription/create', { body: subscriptionBody() });
  const deliveries = await world.db
    .select({ sequence: webhookDeliveries.sequence, state: webhookDeliveries.state })
    .from(webhookDeliveries)
    .where(eq(webhookDeliveries.configId, id));
  expect(deliveries).toEqual([{ sequence: 1, state: 'PENDING' }]);
});

import { and, eq, isNull } from 'drizzle-orm';
import { expect } from 'vitest';
import { deactivateWebhookConfig } from '../../../db/repositories/webhooks/configs.ts';
import { webhookConfigs } from '../../../db/schema/webhooks.ts';
import { untilAvailable } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';

const SECRET = 'whsec_c2VjcmV0LW9mLXRoZS1tZXJjaGFudA==';
const ENDPOINT = 'https://merchant.example/hook?x=1';

async function create(api: ApiEnvironment, body: Record<string, unknown> = {}): Promise<string> {
  const answer = await api.call('POST', '/webhook', {
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

async function list(
  api: ApiEnvironment,
  query = '',
): Promise<{ webhookConfigId: string; isActive: boolean }[]> {
  const answer = await api.call('GET', `/webhook${query}`);
  expect(answer.status).toBe(200);
  return (answer.json as { data: { webhookConfigId: string; isActive: boolean }[] }).data;
}

async function row(api: ApiEnvironment, id: string) {
  const [found] = await api.db.select().from(webhookConfigs).where(eq(webhookConfigs.id, id));
  return found!;
}

/** The number of a merchant's configurations, deleted configurations excluded. */
const countOf = (api: ApiEnvironment, merchantId: string) =>
  api.db.$count(
    webhookConfigs,
    and(eq(webhookConfigs.merchantId, merchantId), isNull(webhookConfigs.deletedAt)),
  );

test('the secret of a webhook configuration is listed masked and stored encrypted [IF-2.6, IF-4.14, D-55]', async ({
  api,
}) => {
  const id = await create(api, { subscribedEventTypes: ['intent.success', 'intent.success'] });
  expect(id).toMatch(/^whc_[0-9A-Za-z]{22}$/);
  expect((await list(api)).find(({ webhookConfigId }) => webhookConfigId === id)).toEqual({
    webhookConfigId: id,
    webHookUrl: ENDPOINT,
    eventSigner: '<SIGNING_SECRET>',
    subscribedEventTypes: ['intent.success'],
    isActive: true,
    breaker: 'CLOSED',
    state: 'HEALTHY',
    missedEvents: 0,
  });
  expect((await row(api, id)).sealedSigner.toString('latin1')).not.toContain(SECRET);
});

test('an update of a webhook configuration answers 204 without a body and changes the list [IF-4.15, D-16]', async ({
  api,
}) => {
  const id = await create(api);
  const answer = await api.call('PUT', `/webhook/${id}`, {
    body: {
      eventSigner: SECRET,
      endpoint: 'https://merchant.example/other',
      subscribedEventTypes: ['intent.failed'],
    },
  });
  expect([answer.status, answer.text]).toEqual([204, '']);
  expect(answer.headers['content-type']).toBeUndefined();
  expect((await list(api)).find(({ webhookConfigId }) => webhookConfigId === id)).toMatchObject({
    webHookUrl: 'https://merchant.example/other',
    subscribedEventTypes: ['intent.failed'],
  });
  // An update with the same secret does not rotate it.
  expect((await row(api, id)).sealedPreviousSigner).toBeNull();
});

test('an update of a webhook configuration with the masked secret keeps the stored secret [IF-2.6, D-55]', async ({
  api,
}) => {
  const id = await create(api);
  const { sealedSigner } = await row(api, id);
  const shown = { eventSigner: '<SIGNING_SECRET>', endpoint: ENDPOINT, subscribedEventTypes: [] };
  expect((await api.call('PUT', `/webhook/${id}`, { body: shown })).status).toBe(204);
  expect(await row(api, id)).toMatchObject({
    sealedSigner,
    sealedPreviousSigner: null,
    eventTypes: [],
  });
  // A new configuration has no stored secret to keep.
  expect((await api.call('POST', '/webhook', { body: shown })).json).toEqual({
    errorCode: 'bad_request',
    errorDescription: 'eventSigner: must be a secret of your own',
  });
});

test('an update of a webhook configuration with a new secret keeps the old secret for 24 hours [D-53]', async ({
  api,
}) => {
  const id = await create(api);
  const { sealedSigner } = await row(api, id);
  const before = Date.now();
  await api.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: 'another', endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  const { sealedPreviousSigner, previousSignerUntil } = await row(api, id);
  expect(sealedPreviousSigner).toEqual(sealedSigner);
  const hours = (previousSignerUntil! - before) / 3_600_000;
  expect(hours).toBeGreaterThanOrEqual(24);
  expect(hours).toBeLessThan(24.1);
});

test('an inactive webhook configuration is listed only on request [IF-4.14, D-55]', async ({
  api,
}) => {
  const id = await create(api);
  const { merchantId } = api.merchant;
  await deactivateWebhookConfig(api.db, {
    merchantId,
    configId: id,
    readUpdatedAt: (await row(api, id)).updatedAt,
    reason: 'endpoint_gone',
    at: Date.now(),
  });
  const has = async (query: string) =>
    (await list(api, query)).some(({ webhookConfigId }) => webhookConfigId === id);

  expect([
    await has(''),
    await has('?includeInactive=false'),
    await has('?includeInactive=true'),
  ]).toEqual([false, false, true]);

  await api.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  expect(await has('')).toBe(true);
});

test('an update of a webhook configuration closes the circuit breaker and signals the endpoint queue [D-54, D-55]', async ({
  api,
}) => {
  const id = await create(api);
  const failures = { consecutiveFailures: 9, pausedUntil: Date.now() + 60_000, failingSince: 1 };
  await api.db.update(webhookConfigs).set(failures).where(eq(webhookConfigs.id, id));
  await api.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });
  expect(await row(api, id)).toMatchObject({
    consecutiveFailures: 0,
    pausedUntil: null,
    failingSince: null,
  });
  expect(api.workflows.calls.at(-1)).toEqual({
    name: 'breakerClosed',
    ref: { merchantId: api.merchant.merchantId, configId: id },
  });
});

test('a deleted webhook configuration is in no list and cannot be updated [D-55]', async ({
  api,
}) => {
  const id = await create(api);
  const deleted = await api.call('DELETE', `/webhook/${id}`);
  const again = await api.call('DELETE', `/webhook/${id}`);
  const updated = await api.call('PUT', `/webhook/${id}`, {
    body: { eventSigner: SECRET, endpoint: ENDPOINT, subscribedEventTypes: [] },
  });

  expect([deleted.status, deleted.text]).toEqual([200, '{}']);
  expect([again.status, updated.status]).toEqual([400, 400]);
  const all = await list(api, '?includeInactive=true');
  expect(all.some(({ webhookConfigId }) => webhookConfigId === id)).toBe(false);
});

test('a merchant gets at most 20 webhook configurations, inactive ones included, also by parallel requests [D-55]', async ({
  api,
}) => {
  const { other } = api;
  const body = {
    eventSigner: SECRET,
    endpoint: ENDPOINT,
    subscribedEventTypes: ['intent.success'],
  };
  const post = () => api.call('POST', '/webhook', { body, as: other });
  for (let made = 1; made <= 18; made += 1) expect((await post()).status).toBe(200);
  const [first] = await api.db
    .select()
    .from(webhookConfigs)
    .where(eq(webhookConfigs.merchantId, other.merchantId));
  const ref = { merchantId: other.merchantId, configId: first!.id };
  const failed = { readUpdatedAt: first!.updatedAt, reason: 'endpoint_gone', at: 1 } as const;
  await deactivateWebhookConfig(api.db, { ...ref, ...failed });

  const answers = await Promise.all(Array.from({ length: 5 }, () => untilAvailable(post)));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200, 200, 400, 400, 400,
  ]);
  const refused = await post();
  expect([refused.status, refused.json]).toEqual([
    400,
    {
      errorCode: 'operation_not_allowed',
      errorDescription:
        'A merchant has at most 20 webhook configurations, deactivated ones included. Delete one first.',
    },
  ]);
  expect(await countOf(api, other.merchantId)).toBe(20);

  // Another merchant is not affected. At the limit an update is allowed, and a deletion allows a new
  // configuration.
  await create(api);
  const put = await api.call('PUT', `/webhook/${first!.id}`, { body, as: other });
  expect(put.status).toBe(204);
  expect((await api.call('DELETE', `/webhook/${first!.id}`, { as: other })).status).toBe(200);
  expect((await post()).status).toBe(200);
  expect((await post()).status).toBe(400);
  expect(await countOf(api, other.merchantId)).toBe(20);
});

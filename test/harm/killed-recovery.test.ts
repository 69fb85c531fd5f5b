import { expect } from 'vitest';
import {
  deactivateWebhookConfig,
  updateWebhookConfig,
} from '../../db/repositories/webhooks/configs.ts';
import { webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { openWorkerScenario } from '../support/worker-scenario.ts';

test('a recovery goes on in order at the next worker when its worker is killed in the middle [D-56]', async ({
  server,
  onTestFinished,
}) => {
  const scenario = await openWorkerScenario(server);
  onTestFinished(() => scenario.close());
  const { env, shop, merchantId } = scenario;
  const [config] = await env.db.select().from(webhookConfigs);
  const { id: configId, updatedAt: readUpdatedAt, url, eventTypes } = config!;
  const gone = { readUpdatedAt, reason: 'endpoint_gone', at: Date.now() } as const;
  await deactivateWebhookConfig(env.db, { merchantId, configId, ...gone });
  const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
    '/subscription/create',
    { ...MONTHLY, callbackUrl: 'https://merchant.example/back' },
  );
  await env.confirmStart({ merchantId, subscriptionId });
  const active = { merchantId, configId, url, eventTypes, reseal: () => null, at: Date.now() };
  await updateWebhookConfig(env.db, active);
  const crashing = await scenario.startMortal('after_delivery');
  const begun = await shop.merchant.post<Record<string, unknown>>(`/webhook/${configId}/recover`, {
    since: 0,
  });
  expect(begun).toMatchObject({ state: 'RUNNING', events: 2 });
  expect(await crashing.gone).toMatchObject({ signal: 'SIGKILL' });
  expect(scenario.received('subscriptionId', subscriptionId)).toEqual(['1 intent.created']);

  await scenario.goOn();
  await env.webhooks.wakeEndpoint({ merchantId, configId });
  await eventually(() =>
    expect(scenario.received('subscriptionId', subscriptionId)).toEqual([
      '1 intent.created',
      '1 intent.created',
      '2 subscription.created',
    ]),
  );
  const path = `/webhook/recoveries/${String(begun['recoveryId'])}`;
  await eventually(async () =>
    expect(await shop.merchant.get(path)).toMatchObject({ state: 'DONE', delivered: 2 }),
  );
  expect(await env.db.$count(webhookDeliveries)).toBe(2);
});

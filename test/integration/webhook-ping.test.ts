import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { deactivateWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { outboxEvents, webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';

const SECRET = 'whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb2Yga2V5';

test('a ping is signed, reaches an inactive endpoint, returns the answer, and is no event [D-56, D-52]', async ({
  env,
  shop,
  onTestFinished,
}) => {
  const receiver = await startWebhookReceiver({ secrets: [SECRET] });
  onTestFinished(() => receiver.close());
  const { merchantId, db } = env;
  const { webhookConfigId: configId } = await shop.merchant.post<{ webhookConfigId: string }>(
    '/webhook',
    { endpoint: receiver.url, eventSigner: SECRET, subscribedEventTypes: [] },
  );
  const isConfig = eq(webhookConfigs.id, configId);
  const config = async () => (await db.select().from(webhookConfigs).where(isConfig))[0]!;
  const { updatedAt: readUpdatedAt } = await config();
  const reason = 'endpoint_gone' as const;
  await deactivateWebhookConfig(db, {
    merchantId,
    configId,
    readUpdatedAt,
    reason,
    at: Date.now(),
  });
  const before = await config();
  const events = await db.$count(outboxEvents);
  const ping = () => shop.merchant.post<object>(`/webhook/${configId}/ping`, {});

  receiver.answerNext({ status: 418, body: 'short and stout' });
  expect(await ping()).toEqual({
    httpStatus: 418,
    durationMs: expect.any(Number) as number,
    answer: 'short and stout',
  });
  const [received] = receiver.received;
  expect(received).toMatchObject({
    event: { eventType: 'webhook.ping', webhookConfigId: configId },
    isStandardSignatureValid: true,
    isXpaySignatureValid: true,
  });
  await receiver.close();
  // One ping a second is allowed; the client repeats after 429.
  await eventually(async () => expect(await ping()).toMatchObject({ error: 'connect' }));
  expect(receiver.received).toHaveLength(1);
  expect(await config()).toEqual(before);
  expect(await db.$count(outboxEvents)).toBe(events);
  expect(await db.$count(webhookDeliveries, eq(webhookDeliveries.configId, configId))).toBe(0);
});

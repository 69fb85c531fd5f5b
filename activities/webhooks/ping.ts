import { randomBytes } from 'node:crypto';
import type { Db } from '../../db/client.ts';
import { findWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import type { PingResult } from '../../domain/delivery-schedule.ts';
import type { EndpointRef } from '../../domain/endpoint-breaker.ts';
import { newId } from '../../domain/ids.ts';
import { openSigners } from './attempt.ts';
import type { AttemptDeps } from './attempt.ts';
import { signatureHeaders, toldOf } from './sender.ts';

/** Sends a signed `webhook.ping`. It is no event: it has no row, is in no stream, and its outcome counts for nothing. */
export async function pingEndpoint(
  deps: AttemptDeps & { db: Db },
  { merchantId, configId }: EndpointRef,
): Promise<PingResult> {
  const config = await findWebhookConfig(deps.db, { merchantId, configId });
  if (config === null) throw new Error(`no webhook configuration ${configId}`);
  const sentAt = Date.now();
  const eventId = newId('evt', sentAt, randomBytes);
  const event = {
    eventId,
    eventType: 'webhook.ping',
    eventTime: sentAt,
    webhookConfigId: configId,
  };
  const body = Buffer.from(JSON.stringify(event), 'utf8');
  const signers = openSigners(deps, { ...config, configId });
  const headers = signatureHeaders({ eventId, sentAt, body, signers });
  return toldOf(await deps.send({ merchantId, url: config.url, headers, body }));
}

import type { WebhookConfig } from '../../../db/repositories/webhook-configs.ts';
import { SHOWN_SIGNER } from './schema.ts';

/** The secret is never shown. Rules: IF-2.6, D-55. */
export function presentWebhook(config: WebhookConfig) {
  return {
    webhookConfigId: config.id,
    webHookUrl: config.url,
    eventSigner: SHOWN_SIGNER,
    subscribedEventTypes: config.eventTypes,
    isActive: config.isActive,
  };
}

import type { WebhookConfig } from '../../../db/repositories/webhook-configs.ts';

/** The secret is never shown again. Rules: IF-2.6, D-55. */
export function presentWebhook(config: WebhookConfig) {
  return {
    webhookConfigId: config.id,
    webHookUrl: config.url,
    eventSigner: '<SIGNING_SECRET>',
    subscribedEventTypes: config.eventTypes,
    isActive: config.isActive,
  };
}

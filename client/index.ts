export { createClient } from './client.ts';
export type { Client, FeedItem, FeedPage } from './client.ts';
export { PerennialError } from './request.ts';
export type { CallOptions, ClientSettings, Repeat } from './request.ts';
export { verifyWebhook, WebhookVerificationError } from './webhook.ts';
export type { ReceivedWebhook } from './webhook.ts';
export type * from './types.gen.ts';

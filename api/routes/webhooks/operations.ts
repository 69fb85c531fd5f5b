import { z } from 'zod';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { id, nothing, url } from '../../openapi/answer-fields.ts';
import { bodyFields, extension, queryFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { ListWebhooksQuery, WebhookShape } from './schema.ts';

/** Rules: IF-2.6, D-55. */
const WebhookConfiguration = z
  .object({
    webhookConfigId: id('whc', 'configuration'),
    webHookUrl: url('URL that events are sent to.'),
    eventSigner: z
      .literal('<SIGNING_SECRET>')
      .meta({ description: 'Placeholder for the secret, which is never shown.' }),
    subscribedEventTypes: z.array(z.enum(EVENT_TYPES)),
    isActive: z.boolean().meta({
      description:
        'False after five days of only failed deliveries, or after an answer of 410. PUT sets it to true.',
    }),
  })
  .meta({ id: 'WebhookConfiguration' });

const CONFIG_ID = 'whc_0002sSOLuT4mR8yNqD1sKjWb';
const configIdParam = { description: 'Id of a webhook configuration.', example: CONFIG_ID };

const exampleBody = {
  eventSigner: 'a-long-secret-of-your-own',
  endpoint: 'https://merchant.example/events',
  subscribedEventTypes: ['intent.success', 'intent.failed', 'subscription.cycle_charged'],
};

const body = bodyFields(
  WebhookShape,
  {
    eventSigner:
      'The secret that signs the events, 1 to 255 visible ASCII characters. With the prefix `whsec_` ' +
      'the rest is the key in Base64.',
    endpoint: 'A public https URL.',
    subscribedEventTypes: 'Types of the events that are sent. No other events are sent.',
  },
  [{ summary: 'Payments', value: exampleBody }],
);

export const webhookOperations: readonly Operation[] = [
  {
    operationId: 'listWebhooks',
    method: 'get',
    path: '/webhook',
    tag: 'Webhooks',
    summary: 'List webhook configurations',
    description: 'Lists the active configurations. `includeInactive=true` lists all.',
    query: queryFields(ListWebhooksQuery, {
      includeInactive: extension('Whether deactivated configurations are listed too.'),
    }),
    answer: {
      description: 'The configurations.',
      schema: z.object({ data: z.array(WebhookConfiguration) }),
      examples: [
        {
          summary: 'One',
          value: {
            data: [
              {
                webhookConfigId: CONFIG_ID,
                webHookUrl: exampleBody.endpoint,
                eventSigner: '<SIGNING_SECRET>',
                subscribedEventTypes: exampleBody.subscribedEventTypes,
                isActive: true,
              },
            ],
          },
        },
      ],
    },
  },
  {
    operationId: 'createWebhook',
    method: 'post',
    path: '/webhook',
    tag: 'Webhooks',
    summary: 'Create a webhook configuration',
    description: 'Events that happen from now on are sent to the endpoint.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body,
    answer: {
      description: 'The configuration is active.',
      schema: z.object({ webhookConfigId: id('whc', 'configuration') }),
      examples: [{ summary: 'Created', value: { webhookConfigId: CONFIG_ID } }],
    },
  },
  {
    operationId: 'updateWebhook',
    method: 'put',
    path: '/webhook/:webhookConfigId',
    tag: 'Webhooks',
    summary: 'Replace a webhook configuration',
    description:
      'Also reactivates a deactivated configuration. After a change of the secret, `webhook-signature` ' +
      'lists a signature with each of the two secrets for 24 hours. `xpay-signature` uses the new ' +
      'secret at once.',
    idempotencyKey: 'honoured',
    params: { webhookConfigId: configIdParam },
    body,
    answer: 'no content',
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'deleteWebhook',
    method: 'delete',
    path: '/webhook/:webhookConfigId',
    tag: 'Webhooks',
    summary: 'Delete a webhook configuration',
    description: 'No more events are sent to the endpoint. Pending deliveries are dropped.',
    isExtension: true,
    idempotencyKey: 'honoured',
    params: { webhookConfigId: configIdParam },
    answer: {
      description: 'The configuration was deleted.',
      schema: nothing,
      examples: [{ summary: 'Done', value: {} }],
    },
    refusals: ['resource_not_found'],
  },
];

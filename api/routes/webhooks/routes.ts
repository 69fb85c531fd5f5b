import { z } from 'zod';
import {
  CONFIGS_MAX,
  createWebhookConfig,
  deleteWebhookConfig,
  listWebhookConfigs,
  updateWebhookConfig,
} from '../../../db/repositories/webhooks/configs.ts';
import type { ListedConfig, Resealed } from '../../../db/repositories/webhooks/configs.ts';
import { DEACTIVATION_REASONS, FAILING_LIMIT_MS } from '../../../domain/delivery-schedule.ts';
import { isOpen } from '../../../domain/endpoint-breaker.ts';
import { DomainError } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { isMailed, MAIL_ENDPOINT, MAIL_EVENT_TYPES } from '../../../domain/mails.ts';
import {
  added,
  count,
  doneAnswer,
  epochMs,
  eventType,
  EXTENSION,
  id,
  url,
} from '../../answer-fields.ts';
import { NO_CONTENT, notFound, ok, withoutNulls } from '../../http/request.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import { text } from '../../fields.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { CONFIG_ID, configIdParam, configRef } from './ref.ts';

const SIGNER_MAX = 255;
const ENDPOINT_MAX = 2_048;
const EVENT_TYPES_MAX = 50;

const SHOWN_SIGNER = '<SIGNING_SECRET>' as const;

const webhookFields = {
  eventSigner: text(SIGNER_MAX)
    .refine((signer) => signer !== '', { error: 'must not be empty' })
    .refine((signer) => !signer.startsWith('whsec_') || isBase64(signer.slice('whsec_'.length)), {
      error: 'must be Base64 after whsec_',
    })
    .describe(
      'The secret that signs the events, as UTF-8: at most 255 characters. Recommended: `whsec_` followed by ' +
        '24 to 64 random bytes in Base64. A text without that prefix is accepted too.',
    ),
  endpoint: text(ENDPOINT_MAX).meta({
    description:
      'A public https URL. A development server also accepts http to the same machine. `mailto:payer` sends the payers ' +
      'e-mails in place of webhooks, if the installation has a mail server; the secret then signs nothing.',
    format: 'uri',
  }),
  subscribedEventTypes: z
    .array(eventType)
    .max(EVENT_TYPES_MAX)
    .transform((types) => [...new Set(types)])
    .describe('The types of events to send. Events of other types are not sent.'),
};

function webhookProblems(
  { endpoint, subscribedEventTypes = [] }: Partial<Fields<typeof webhookFields>>,
  endpointProblem: (endpoint: string) => string | undefined,
): Problem[] {
  const message = endpoint === undefined ? undefined : endpointProblem(endpoint);
  const unmailed = subscribedEventTypes.filter((type) => !isMailed(type));
  return [
    ...(message === undefined ? [] : [{ field: 'endpoint', message }]),
    ...(endpoint !== MAIL_ENDPOINT || unmailed.length === 0
      ? []
      : [
          {
            field: 'subscribedEventTypes',
            message: `no e-mail is made of ${unmailed.join(', ')}, but of ${MAIL_EVENT_TYPES.join(', ')}`,
          },
        ]),
  ];
}

function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}

const REFUSALS = {
  too_many:
    `A merchant has at most ${CONFIGS_MAX} webhook configurations, deactivated ones included. ` +
    'Delete one first.',
  second_of_mails:
    'Payers already get e-mails by another configuration. Change that one, or delete it first.',
  other_kind:
    'A configuration of webhooks cannot become one of e-mails, nor the other way round. Create another one.',
} as const;

const exampleBody = {
  eventSigner: 'whsec_c2VjcmV0IGJ5dGVzIG9mIHlvdXIgb3du',
  endpoint: 'https://merchant.example/events',
  subscribedEventTypes: ['intent.success', 'intent.failed', 'subscription.cycle_charged'],
} as const;

const body = { fields: webhookFields, examples: { Payments: exampleBody } };

const WebhookConfiguration = z
  .object({
    webhookConfigId: id('whc', 'configuration'),
    webHookUrl: url('URL that events are sent to.'),
    eventSigner: z
      .literal(SHOWN_SIGNER)
      .meta({ description: 'Placeholder for the secret, which is never shown.' }),
    subscribedEventTypes: z.array(eventType),
    isActive: z.boolean().meta({
      description:
        'False after five days of only failed deliveries, or after an answer of 410. PUT sets it to true.',
    }),
    breaker: z.enum(['CLOSED', 'OPEN']).meta({
      description:
        'OPEN after repeated failures: only a probe is sent now and then, until one succeeds. PUT closes it.',
      ...EXTENSION,
    }),
    state: z.enum(['HEALTHY', 'FAILING', 'PAUSED', 'INACTIVE']).meta({
      description:
        'FAILING: the latest attempt failed. PAUSED: FAILING, and the breaker is OPEN. INACTIVE: nothing is sent until PUT.',
      ...EXTENSION,
    }),
    lastSuccessAt: added(epochMs('When an event was last delivered.')),
    failingSince: added(epochMs('First failure since the last success.')),
    lastError: added(z.string(), 'Latest failure of an event that still waits.'),
    oldestPendingAt: added(epochMs('When the oldest event that still waits was recorded.')),
    deactivatesAt: added(epochMs('When it will be deactivated, if it goes on failing.')),
    deactivatedReason: added(z.enum(DEACTIVATION_REASONS), 'Why it is INACTIVE.'),
    missedEvents: added(
      count(
        'Number of kept events that `recoverEvents` can send again: those that failed or were dropped, and those of the ' +
          'time when it was inactive. At most 100,000 of each are counted.',
      ),
    ),
  })
  .meta({ id: 'WebhookConfiguration' });

function presentWebhook(config: ListedConfig): z.input<typeof WebhookConfiguration> {
  const { failingSince: failingSinceAt } = config;
  return {
    webhookConfigId: config.id,
    webHookUrl: config.url,
    eventSigner: SHOWN_SIGNER,
    subscribedEventTypes: config.eventTypes,
    isActive: config.isActive,
    breaker: isOpen(config) ? 'OPEN' : 'CLOSED',
    state: stateOf(config),
    missedEvents: config.missedEvents,
    ...withoutNulls({
      lastSuccessAt: config.lastSuccessAt,
      failingSince: failingSinceAt,
      lastError: config.lastError,
      oldestPendingAt: config.oldestPendingAt,
      deactivatesAt:
        config.isActive && failingSinceAt !== null ? failingSinceAt + FAILING_LIMIT_MS : null,
      deactivatedReason: config.deactivatedReason,
    }),
  };
}

function stateOf(config: ListedConfig) {
  if (!config.isActive) return 'INACTIVE';
  if (isOpen(config)) return 'PAUSED';
  return config.failingSince === null ? 'HEALTHY' : 'FAILING';
}

export const getWebhooks = route({
  operationId: 'listWebhooks',
  method: 'get',
  path: '/webhook',
  tag: 'Webhooks',
  summary: 'List webhook configurations',
  description: 'Lists the active configurations. `includeInactive=true` lists all.',
  query: {
    includeInactive: z
      .enum(['true', 'false'])
      .default('false')
      .meta({ description: 'Whether deactivated configurations are listed too.', ...EXTENSION }),
  },
  answer: {
    description: 'The configurations.',
    schema: z.object({
      data: z.array(WebhookConfiguration).meta({ description: 'Oldest first.' }),
    }),
    examples: {
      One: {
        data: [
          {
            webhookConfigId: CONFIG_ID,
            webHookUrl: exampleBody.endpoint,
            eventSigner: SHOWN_SIGNER,
            subscribedEventTypes: [...exampleBody.subscribedEventTypes],
            isActive: true,
            breaker: 'CLOSED',
            state: 'HEALTHY',
            missedEvents: 0,
            lastSuccessAt: 1_796_083_200_812,
          },
        ],
      },
    },
  },
  handle: async ({ merchant, query }, { db }) => {
    const includeInactive = query.includeInactive === 'true';
    const configs = await listWebhookConfigs(db, merchant.id, { includeInactive });
    return ok({ data: configs.map(presentWebhook) });
  },
});

export const createWebhook = route({
  operationId: 'createWebhook',
  method: 'post',
  path: '/webhook',
  tag: 'Webhooks',
  summary: 'Create a webhook configuration',
  description:
    'Events that happen from now on are sent to the endpoint. ' +
    `A merchant has at most ${CONFIGS_MAX} configurations, deactivated ones included.`,
  isExtension: true,
  idempotencyKey: 'honoured',
  sendsEvents: true,
  body: {
    ...body,
    problems: (fields, { endpointProblem }) => [
      // The placeholder is refused, because a new configuration has no stored secret to keep.
      ...(fields.eventSigner === SHOWN_SIGNER
        ? [{ field: 'eventSigner', message: 'must be a secret of your own' }]
        : []),
      ...webhookProblems(fields, endpointProblem),
    ],
  },
  answer: {
    description: 'The configuration is active.',
    schema: z.object({ webhookConfigId: id('whc', 'configuration') }),
    examples: { Created: { webhookConfigId: CONFIG_ID } },
  },
  refusals: ['operation_not_allowed'],
  handle: async (call, deps) => {
    const { endpoint, eventSigner, subscribedEventTypes } = call.body;
    return writeOnce(call, deps, async (tx) => {
      const at = deps.now();
      const webhookConfigId = newId('whc', at, deps.random);
      const refusal = await createWebhookConfig(tx, {
        merchantId: call.merchant.id,
        configId: webhookConfigId,
        url: endpoint,
        sealedSigner: deps.sealing.seal(eventSigner, webhookConfigId),
        eventTypes: subscribedEventTypes,
        at,
      });
      if (refusal !== null) throw new DomainError('operation_not_allowed', REFUSALS[refusal]);
      return { answer: ok({ webhookConfigId }) };
    });
  },
});

export const updateWebhook = route({
  operationId: 'updateWebhook',
  method: 'put',
  path: '/webhook/:webhookConfigId',
  tag: 'Webhooks',
  summary: 'Replace a webhook configuration',
  description:
    'Also reactivates a deactivated configuration, and tries at once what waits. `missedEvents` of `GET /webhook` then counts ' +
    'what it missed, and `recoverEvents` sends that again. After a change of the secret, `webhook-signature` ' +
    'lists a signature with each of the two secrets for 24 hours. `xpay-signature` uses the new ' +
    'secret at once.',
  idempotencyKey: 'honoured',
  params: { webhookConfigId: configIdParam },
  body: {
    ...body,
    problems: (fields, { endpointProblem }) => webhookProblems(fields, endpointProblem),
  },
  answer: 'no content',
  refusals: ['resource_not_found', 'operation_not_allowed'],
  handle: async (call, deps) => {
    const { endpoint, eventSigner, subscribedEventTypes } = call.body;
    const ref = configRef(call);
    const reseal = (stored: Buffer): Resealed | null => {
      if (eventSigner === SHOWN_SIGNER) return null;
      // Null if the encryption key of the stored secret is lost.
      const before = deps.sealing.openIfPossible(stored, ref.configId);
      if (before === eventSigner) return null;
      const sealedSigner = deps.sealing.seal(eventSigner, ref.configId);
      return { sealedSigner, isStoredReadable: before !== null };
    };
    return writeOnce(call, deps, async (tx) => {
      const refusal = await updateWebhookConfig(tx, {
        ...ref,
        url: endpoint,
        eventTypes: subscribedEventTypes,
        reseal,
        at: deps.now(),
      });
      if (refusal === 'unknown') throw notFound('webhook configuration');
      if (refusal !== null) throw new DomainError('operation_not_allowed', REFUSALS[refusal]);
      // Not awaited. The maintenance sweep wakes an endpoint queue that missed the signal.
      return { answer: NO_CONTENT, afterCommit: async () => void deps.webhooks.breakerClosed(ref) };
    });
  },
});

export const deleteWebhook = route({
  operationId: 'deleteWebhook',
  method: 'delete',
  path: '/webhook/:webhookConfigId',
  tag: 'Webhooks',
  summary: 'Delete a webhook configuration',
  description: 'No more events are sent to the endpoint. Pending deliveries are dropped.',
  isExtension: true,
  idempotencyKey: 'honoured',
  params: { webhookConfigId: configIdParam },
  answer: doneAnswer('The configuration was deleted.'),
  refusals: ['resource_not_found'],
  handle: async (call, deps) => {
    const ref = configRef(call);
    return writeOnce(call, deps, async (tx) => {
      const isKnown = await deleteWebhookConfig(tx, { ...ref, at: deps.now() });
      if (!isKnown) throw notFound('webhook configuration');
      // Its drain drops the pending deliveries.
      return { answer: ok({}), afterCommit: async () => void deps.webhooks.breakerClosed(ref) };
    });
  },
});

import { RateLimiterMemory } from 'rate-limiter-flexible';
import { z } from 'zod';
import { findWebhookConfig } from '../../../db/repositories/webhooks/configs.ts';
import { findEvent } from '../../../db/repositories/webhooks/feed.ts';
import {
  findRecovery,
  MISSED_KINDS,
  RECOVERED_MAX,
  recoverMissed,
  resendEvent,
} from '../../../db/repositories/webhooks/resend.ts';
import type { Recovery } from '../../../db/repositories/webhooks/resend.ts';
import { DomainError } from '../../../domain/errors.ts';
import { isId, newId } from '../../../domain/ids.ts';
import { count, epochMs, id } from '../../answer-fields.ts';
import { idText, instant, optional } from '../../fields.ts';
import { checkLimit } from '../../http/caller.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { accepted, found, notFound, ok, withoutNulls } from '../../http/request.ts';
import { route } from '../../http/route.ts';
import { eventIdParam, sendResult } from './attempts.ts';
import { CONFIG_ID, configIdParam, configRef } from './ref.ts';

function refuseInactive<T>(result: T | 'inactive' | null): T {
  if (result === 'inactive') throw new DomainError('endpoint_inactive');
  return found(result, 'webhook configuration');
}

export const resendEventRoute = route({
  operationId: 'resendEvent',
  method: 'post',
  path: '/events/:eventId/resend',
  tag: 'Events',
  summary: 'Send an event again',
  description:
    'Sends the event whether or not it arrived before. Id and body are the same. Later events do not wait for it. If it fails, it is tried again like a new event.',
  isExtension: true,
  idempotencyKey: 'honoured',
  params: { eventId: eventIdParam },
  body: {
    isOptional: true,
    fields: {
      webhookConfigId: optional(idText()).describe(
        'The endpoint. Absent: all active ones that subscribe to the type or were sent the event before.',
      ),
    },
    examples: { 'To one endpoint': { webhookConfigId: CONFIG_ID } },
  },
  answer: {
    description: 'The event will be sent at once.',
    schema: z.object({
      webhookConfigIds: z.array(id('whc', 'configuration')).meta({ description: 'The endpoints.' }),
    }),
    examples: { Begun: { webhookConfigIds: [CONFIG_ID] } },
    status: 202,
  },
  refusals: ['resource_not_found', 'event_expired', 'endpoint_inactive'],
  handle: async (call, deps) => {
    const { eventId } = call.params;
    const { webhookConfigId: configId } = call.body;
    const { id: merchantId } = call.merchant;
    if (!isId('evt', eventId)) throw notFound('event');
    if (configId !== undefined && !isId('whc', configId)) throw notFound('webhook configuration');
    return writeOnce(call, deps, async (tx) => {
      const { event } = found(await findEvent(tx, merchantId, eventId), 'event');
      if (event.bodyDeletedAt !== null) throw new DomainError('event_expired');
      const request = { merchantId, configId, eventId, at: deps.now() };
      const webhookConfigIds = refuseInactive(await resendEvent(tx, request));
      const wake = async () => {
        for (const id of webhookConfigIds)
          void deps.webhooks.breakerClosed({ merchantId, configId: id });
      };
      return { answer: accepted({ webhookConfigIds }), afterCommit: wake };
    });
  },
});

const RECOVERY_ID = 'rec_0002sSOLuQx1oB9bUeVtYw';

const WebhookRecovery = z
  .object({
    recoveryId: id('rec', 'recovery'),
    webhookConfigId: id('whc', 'configuration'),
    state: z.enum(['RUNNING', 'DONE']).meta({ description: 'DONE: no event is left to send.' }),
    events: count('Number of events to send again.'),
    pending: count('Events that are not sent yet, or are tried again.'),
    delivered: count('Events that arrived.'),
    failed: count('Events whose attempts all failed, or that were dropped.'),
    createdAt: epochMs('When it was asked for.'),
  })
  .meta({ id: 'WebhookRecovery' });

const exampleRecovery: z.input<typeof WebhookRecovery> = {
  recoveryId: RECOVERY_ID,
  webhookConfigId: CONFIG_ID,
  state: 'RUNNING',
  events: 412,
  pending: 412,
  delivered: 0,
  failed: 0,
  createdAt: 1_796_083_200_812,
};

function presentRecovery(recovery: Recovery): z.input<typeof WebhookRecovery> {
  const { id: recoveryId, configId: webhookConfigId, ...rest } = recovery;
  const { events, pending, delivered, failed, createdAt } = rest;
  const state = pending > 0 ? 'RUNNING' : 'DONE';
  return { recoveryId, webhookConfigId, state, events, pending, delivered, failed, createdAt };
}

export const recoverEvents = route({
  operationId: 'recoverEvents',
  method: 'post',
  path: '/webhook/:webhookConfigId/recover',
  tag: 'Webhooks',
  summary: 'Send the missed events of an endpoint again',
  description:
    'Sends again, in the order of `sequence`, the events that did not reach the endpoint, beside new events, which do not ' +
    'wait. What has been delivered is left out. Ids and bodies are the same. `failed`: all attempts failed. `dropped`: it ' +
    'waited when the endpoint was deactivated. `missing`: the endpoint was inactive, or did not yet exist or subscribe to ' +
    `the type, when it happened. Takes the ${RECOVERED_MAX.toLocaleString('en')} oldest; repeat the call for more.`,
  isExtension: true,
  idempotencyKey: 'honoured',
  params: { webhookConfigId: configIdParam },
  body: {
    fields: {
      since: instant.describe(
        'Events recorded at this instant or later, in real time. Epoch milliseconds.',
      ),
      until: optional(instant).describe('Events recorded before this instant. Default: now.'),
      which: z
        .array(z.enum(MISSED_KINDS))
        .min(1)
        .max(MISSED_KINDS.length)
        .optional()
        .describe('Default: all three.'),
    },
    examples: { 'All since an instant': { since: 1_796_000_000_000 } },
  },
  answer: {
    description: 'The events are being sent.',
    schema: WebhookRecovery,
    examples: { Begun: exampleRecovery },
    status: 202,
  },
  refusals: ['resource_not_found', 'endpoint_inactive'],
  handle: async (call, deps) => {
    const ref = configRef(call);
    const { since: sinceAt, until, which: kinds = MISSED_KINDS } = call.body;
    return writeOnce(call, deps, async (tx) => {
      const at = deps.now();
      const recoveryId = newId('rec', at, deps.random);
      const request = { ...ref, recoveryId, sinceAt, untilAt: until ?? at, kinds, at };
      const { events } = refuseInactive(await recoverMissed(tx, request));
      const counts = { events, pending: events, delivered: 0, failed: 0 };
      const answer = accepted(
        presentRecovery({ ...counts, id: recoveryId, configId: ref.configId, createdAt: at }),
      );
      return { answer, afterCommit: async () => void deps.webhooks.breakerClosed(ref) };
    });
  },
});

export const getRecovery = route({
  operationId: 'getRecovery',
  method: 'get',
  path: '/webhook/recoveries/:recoveryId',
  tag: 'Webhooks',
  summary: 'Read the progress of a recovery',
  description:
    'Counts the events by their present state. An event that a later recovery sends again counts there only.',
  isExtension: true,
  params: { recoveryId: { description: 'Id of a recovery.', example: RECOVERY_ID } },
  answer: {
    description: 'The recovery.',
    schema: WebhookRecovery,
    examples: { 'Not yet done': { ...exampleRecovery, pending: 80, delivered: 332 } },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params: { recoveryId } }, { db }) => {
    if (!isId('rec', recoveryId)) throw notFound('recovery');
    return ok(presentRecovery(found(await findRecovery(db, merchant.id, recoveryId), 'recovery')));
  },
});

/** Of this process; the limit protects the receiver. */
const pings = new RateLimiterMemory({ points: 1, duration: 1 });

export const pingWebhook = route({
  operationId: 'pingWebhook',
  method: 'post',
  path: '/webhook/:webhookConfigId/ping',
  tag: 'Webhooks',
  summary: 'Send a test message to an endpoint',
  description:
    'Sends a signed message of the type `webhook.ping`, also to an inactive endpoint, and returns the answer. It ' +
    'is no event and counts for nothing. One a second.',
  isExtension: true,
  params: { webhookConfigId: configIdParam },
  body: { isOptional: true, fields: {}, examples: { Empty: {} } },
  answer: {
    description: 'The answer of the endpoint, or why there is none.',
    schema: z.object(sendResult),
    examples: { Received: { httpStatus: 200, durationMs: 41, answer: 'ok' } },
  },
  refusals: ['resource_not_found', 'rate_limit_exceeded', 'service_unavailable'],
  handle: async (call, { db, webhooks }) => {
    const ref = configRef(call);
    found(await findWebhookConfig(db, ref), 'webhook configuration');
    await checkLimit(pings, ref.configId);
    await pings.penalty(ref.configId);
    const { durationMs, ...result } = await webhooks.ping(ref);
    return ok({ durationMs, ...withoutNulls(result) });
  },
});

import { z } from 'zod';
import {
  ATTEMPT_OUTCOMES,
  attemptsOfEndpoint,
  attemptsOfEvent,
} from '../../../db/repositories/webhooks/attempts.ts';
import type { Attempt, AttemptPlace } from '../../../db/repositories/webhooks/attempts.ts';
import { findWebhookConfig } from '../../../db/repositories/webhooks/configs.ts';
import { findEvent } from '../../../db/repositories/webhooks/feed.ts';
import { SEND_ERRORS } from '../../../domain/delivery-schedule.ts';
import { isId } from '../../../domain/ids.ts';
import { count, epochMs, id, pageAnswer } from '../../answer-fields.ts';
import { instantText, optional, text } from '../../fields.ts';
import { found, notFound, ok, withoutNulls } from '../../http/request.ts';
import { route } from '../../http/route.ts';
import { limitOr, pageOf } from '../../lists.ts';
import { CONFIG_ID, configIdParam, configRef } from './ref.ts';

const LIMIT_DEFAULT = 100;
const OFFSET_MAX = 100;

const EVENT_ID = 'evt_0002sSOLu0000000000001';
export const eventIdParam = { description: 'Id of an event.', example: EVENT_ID };

export const sendResult = {
  httpStatus: z.int().optional().meta({
    description:
      'Status of the answer; of an e-mail, the reply of the mail server, or 204 if there was nothing to send. Absent without one.',
  }),
  error: z
    .enum(SEND_ERRORS)
    .optional()
    .meta({
      description:
        'Why there is no answer of the endpoint. `name`: its name was not found. `refused_address`: its address is not ' +
        'public. `too_large`: its headers are too long. `redirect`: redirects are not followed. `refused_recipient`: the ' +
        'mail server refuses the address; what it refuses for good is not sent again.',
    }),
  durationMs: count('Time to the answer or the failure, in milliseconds.'),
  answer: z.string().optional().meta({
    description: 'The first 1,000 characters of the answer. Absent for a redirect.',
  }),
};

const DeliveryAttempt = z
  .object({
    eventId: id('evt', 'event'),
    webhookConfigId: id('whc', 'configuration'),
    attempt: count('Number of the attempt, from 1.'),
    manual: z.boolean().meta({ description: 'True after `resendEvent` or `recoverEvents`.' }),
    at: epochMs('When it ended, in real time.'),
    ...sendResult,
    nextAttemptAt: epochMs(
      'When the next attempt was planned. Absent after the last one.',
    ).optional(),
  })
  .meta({ id: 'DeliveryAttempt' });

function presentAttempt(attempt: Attempt): z.input<typeof DeliveryAttempt> {
  const { httpStatus, error, answer, nextAttemptAt } = attempt;
  return {
    eventId: attempt.eventId,
    webhookConfigId: attempt.configId,
    attempt: attempt.attempt,
    manual: attempt.isManual,
    at: attempt.at,
    durationMs: attempt.durationMs,
    ...withoutNulls({ httpStatus, error, answer, nextAttemptAt }),
  };
}

const EXAMPLE: z.input<typeof DeliveryAttempt> = {
  eventId: EVENT_ID,
  webhookConfigId: CONFIG_ID,
  attempt: 1,
  manual: false,
  at: 1_796_083_200_812,
  httpStatus: 500,
  durationMs: 41,
  answer: 'no database',
  nextAttemptAt: 1_796_083_205_812,
};

export const getEventDeliveries = route({
  operationId: 'getEventDeliveries',
  method: 'get',
  path: '/events/:eventId/deliveries',
  tag: 'Events',
  summary: 'List the attempts to deliver an event',
  description: 'Every request that was made with this event, to all endpoints, the earliest first.',
  isExtension: true,
  params: { eventId: eventIdParam },
  answer: {
    description: 'All attempts.',
    schema: z.object({ data: z.array(DeliveryAttempt).meta({ description: 'Oldest first.' }) }),
    examples: { 'One that failed': { data: [EXAMPLE] } },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params: { eventId } }, { db }) => {
    if (!isId('evt', eventId)) throw notFound('event');
    found(await findEvent(db, merchant.id, eventId), 'event');
    const attempts = await attemptsOfEvent(db, { merchantId: merchant.id, eventId });
    return ok({ data: attempts.map(presentAttempt) });
  },
});

const place = text(OFFSET_MAX).transform((given, ctx): AttemptPlace => {
  const decoded = Buffer.from(given, 'base64url').toString('latin1');
  const [, at, eventId, attempt] = /^(\d{1,15}) (\w+) (\d{1,6})$/.exec(decoded) ?? [];
  const read = { at: Number(at), eventId: eventId ?? '', attempt: Number(attempt) };
  if (attempt !== undefined && isId('evt', eventId) && offsetOf(read) === given) return read;
  ctx.addIssue({ code: 'custom', message: 'must be metadata.offset of this list', input: given });
  return z.NEVER;
});

function offsetOf({ at, eventId, attempt }: AttemptPlace): string {
  return Buffer.from(`${at} ${eventId} ${attempt}`, 'latin1').toString('base64url');
}

export const getWebhookDeliveries = route({
  operationId: 'getWebhookDeliveries',
  method: 'get',
  path: '/webhook/:webhookConfigId/deliveries',
  tag: 'Webhooks',
  summary: 'List the attempts to deliver to an endpoint',
  description: 'Every request that was made to the endpoint, the latest first.',
  isExtension: true,
  params: { webhookConfigId: configIdParam },
  query: {
    outcome: optional(z.enum(ATTEMPT_OUTCOMES)).describe('Only attempts with this outcome.'),
    since: optional(instantText).describe(
      'Only attempts at this instant or later. Epoch milliseconds.',
    ),
    limit: limitOr(LIMIT_DEFAULT, 'attempts on a page'),
    offset: optional(place).describe(
      '`metadata.offset` of the previous page. Absent for the first page.',
    ),
  },
  answer: pageAnswer('A page of attempts.', DeliveryAttempt, EXAMPLE),
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const ref = configRef(call);
    found(await findWebhookConfig(db, ref), 'webhook configuration');
    const { outcome, since: sinceAt, limit, offset: before } = call.query;
    const query = { ...ref, outcome, sinceAt, before, limit: limit + 1 };
    const attempts = await attemptsOfEndpoint(db, query);
    return pageOf(attempts, limit, offsetOf, presentAttempt);
  },
});

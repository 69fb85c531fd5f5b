import { z } from 'zod';
import { assignPositions, findEvent, readFeed } from '../../../db/repositories/webhooks/feed.ts';
import type {
  EventDelivery,
  FeedEvent,
  FeedPage,
  FeedQuery,
} from '../../../db/repositories/webhooks/feed.ts';
import type { Db } from '../../../db/client.ts';
import { DELIVERY_STATES } from '../../../db/schema/webhooks.ts';
import { DomainError } from '../../../domain/errors.ts';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { isId } from '../../../domain/ids.ts';
import { added, count, epochMs, eventType, id } from '../../answer-fields.ts';
import { idText, numberText, optional, text } from '../../fields.ts';
import { found, notFound, ok, withoutNulls } from '../../http/request.ts';
import { route } from '../../http/route.ts';
import { limitOr, oneOrSeveral } from '../../lists.ts';
import EXAMPLES from '../../openapi/event-examples.json' with { type: 'json' };
import { cursorOf, placeOf } from './cursor.ts';

const LIMIT_DEFAULT = 100;
const CURSOR_MAX = 64;
const WAIT_MAX_SECONDS = 25;
/** Most pages without an event that one call reads before it answers an empty one. */
const EMPTY_PAGES_MAX = 5;

const after = text(CURSOR_MAX).transform((given, ctx) => {
  if (given === 'now') return given;
  const place = placeOf(given);
  if (place !== null) return place;
  ctx.addIssue({
    code: 'custom',
    message: 'must be metadata.after of GET /events, or now',
    input: given,
  });
  return z.NEVER;
});

const eventFields = {
  eventId: id('evt', 'event'),
  eventType,
  eventTime: epochMs('When it happened, on a test clock in its time.'),
  sequence: count('Number of the event in its stream, from 1.'),
  body: z.string().meta({
    description:
      'The JSON text that is sent to endpoints and signed: a schema of the section *Webhooks*.',
  }),
};

const FeedEventAnswer = z.object(eventFields).meta({ id: 'FeedEvent' });

const Delivery = z
  .object({
    webhookConfigId: id('whc', 'configuration'),
    state: z.enum(DELIVERY_STATES).meta({
      description:
        'FAILED: the last attempt failed. DROPPED: the configuration was deleted or deactivated.',
    }),
    attempts: count('Number of attempts.'),
    nextAttemptAt: epochMs('When the next attempt is due. Only of a PENDING delivery.').optional(),
    httpStatus: z.int().optional().meta({ description: 'Status of the latest answer.' }),
    error: z.string().optional().meta({ description: 'Why the latest attempt failed.' }),
    settledAt: epochMs('When the delivery ended.').optional(),
  })
  .meta({ id: 'EventDelivery' });

const exampleEvent = exampleOf(EXAMPLES['subscription.cycle_charged']);

function exampleOf(body: (typeof EXAMPLES)['subscription.cycle_charged']) {
  const { eventId, eventTime, sequence } = body;
  const type = 'subscription.cycle_charged' as const;
  return { eventId, eventType: type, eventTime, sequence, body: JSON.stringify(body) };
}

export const getEvents = route({
  operationId: 'getEvents',
  method: 'get',
  path: '/events',
  tag: 'Events',
  summary: 'Read all events in an order that never changes',
  description:
    'The feed has every event, also those that no endpoint subscribed to or received. Events of one stream come in ' +
    'the order of `sequence`. Store `metadata.after` with what you made of the page, and send it as `after` of the next ' +
    'call: no event is left out, and none comes twice. A page may be short: you have reached the end when it has no ' +
    'events and `metadata.after` is what you sent. At most four calls of a merchant may wait; a further one is answered 429. ' +
    '410 `cursor_expired`: the feed cannot be read on from this cursor, because the events behind it are deleted, or the ' +
    'database was restored from a backup. Read your records with the other operations, and begin again without `after`.',
  isExtension: true,
  isCostly: false,
  query: {
    after: optional(after).describe(
      '`metadata.after` of the previous call. Absent: begin at the oldest event. `now`: begin at the end.',
    ),
    types: optional(oneOrSeveral(EVENT_TYPES)).describe(
      'Only events of this type. Several are separated by commas.',
    ),
    subscriptionId: optional(idText()).describe('Only events of this subscription.'),
    limit: limitOr(LIMIT_DEFAULT, 'events on a page'),
    wait: optional(numberText(0, WAIT_MAX_SECONDS)).describe(
      'Seconds to wait for an event at the end of the feed. Default: 0.',
    ),
  },
  answer: {
    description: 'A page of events. It may be empty.',
    schema: z.object({
      data: z.array(FeedEventAnswer).meta({ description: 'In the order of the feed.' }),
      metadata: z.object({
        after: z.string().meta({ description: 'Cursor of the next call.' }),
        oldestEventTime: added(
          epochMs('`eventTime` of the oldest event of the feed, from which on it is complete.'),
        ),
      }),
    }),
    examples: {
      'A renewal': {
        data: [exampleEvent],
        metadata: {
          after: cursorOf({ position: 1, mark: 87_112_310_404_321 }),
          oldestEventTime: exampleEvent.eventTime,
        },
      },
    },
  },
  refusals: ['cursor_expired'],
  handle: async ({ merchant, query, closed }, { db, feedWaits }) => {
    const { subscriptionId: streamId, wait = 0, ...rest } = query;
    let place = rest.after;
    const read = async (): Promise<FeedPage> => {
      const page = await readPage(db, { ...rest, merchantId: merchant.id, streamId, after: place });
      place = page.end;
      return page;
    };
    const waits = { merchantId: merchant.id, waitMs: wait * 1_000, closed };
    const page = await feedWaits.poll(waits, read, ({ events }) => events.length > 0);
    return ok({
      data: page.events.map(presentEvent),
      metadata: {
        after: cursorOf(page.end),
        ...withoutNulls({ oldestEventTime: page.oldestAt }),
      },
    });
  },
});

/** Reads until a page has events or the feed ends. Numbers events first if they are missing on the page. */
async function readPage(db: Db, query: FeedQuery): Promise<FeedPage> {
  let { after: place } = query;
  for (let pages = 1; ; pages += 1) {
    let page = await readFeed(db, { ...query, after: place });
    if (page.isBehind && page.isAtEnd) {
      await assignPositions(db, query.merchantId);
      page = await readFeed(db, { ...query, after: place });
    }
    if (page.lost !== null) throw new DomainError('cursor_expired', LOST[page.lost]);
    if (page.events.length > 0 || page.isAtEnd || pages === EMPTY_PAGES_MAX) return page;
    place = page.end;
  }
}

const LOST = {
  replaced:
    'after: is not of this history: the database was restored from a backup. Read your records, and begin again ' +
    'without `after`.',
  expired:
    'after: events behind this cursor are deleted. Read your records, and begin again without `after`.',
};

export const getEvent = route({
  operationId: 'getEvent',
  method: 'get',
  path: '/events/:eventId',
  tag: 'Events',
  summary: 'Read an event and its deliveries',
  description:
    'Shows the body, and for each endpoint that the event was sent to whether it arrived. An endpoint that was inactive, ' +
    'or not subscribed to the type, has no delivery.',
  isExtension: true,
  params: { eventId: { description: 'Id of an event.', example: exampleEvent.eventId } },
  answer: {
    description: 'The event.',
    schema: z.object({
      ...eventFields,
      deliveries: z.array(Delivery).meta({ description: 'By `webhookConfigId`.' }),
    }),
    examples: {
      Delivered: {
        ...exampleEvent,
        deliveries: [
          {
            webhookConfigId: 'whc_0002sSOLuT4mR8yNqD1sKjWb',
            state: 'DELIVERED',
            attempts: 1,
            httpStatus: 200,
            settledAt: exampleEvent.eventTime + 812,
          },
        ],
      },
    },
  },
  refusals: ['resource_not_found', 'event_expired'],
  handle: async ({ merchant, params: { eventId } }, { db }) => {
    if (!isId('evt', eventId)) throw notFound('event');
    const { event, deliveries } = found(await findEvent(db, merchant.id, eventId), 'event');
    if (event.bodyDeletedAt !== null) throw new DomainError('event_expired');
    return ok({ ...presentEvent(event), deliveries: deliveries.map(presentDelivery) });
  },
});

function presentEvent(event: FeedEvent) {
  return {
    eventId: event.id,
    eventType: event.type,
    eventTime: event.occurredAt,
    sequence: event.sequence,
    body: event.body,
  };
}

function presentDelivery(delivery: EventDelivery): z.input<typeof Delivery> {
  const { state, nextAttemptAt, lastHttpStatus, lastError, settledAt } = delivery;
  return {
    webhookConfigId: delivery.configId,
    state,
    attempts: delivery.attempts,
    ...withoutNulls({
      nextAttemptAt: state === 'PENDING' ? nextAttemptAt : null,
      httpStatus: lastHttpStatus,
      error: lastError,
      settledAt,
    }),
  };
}

import { asc, eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { createWebhookConfig } from '../../../db/repositories/webhooks/configs.ts';
import { deleteOldEvents } from '../../../db/repositories/sweeps/retention.ts';
import { outboxEvents, webhookDeliveries } from '../../../db/schema/webhooks.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { expectError } from '../../support/answers.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import { emit, feedPath, numbersOf, OCCURRED_AT, readEvents } from '../../support/fixtures/feed.ts';
import type { FeedAnswer } from '../../support/fixtures/feed.ts';
import { dumpRows } from '../../support/restored-rows.ts';

const DAY = 24 * 3_600_000;
const REPLACED =
  'after: is not of this history: the database was restored from a backup. Read your records, and begin again without `after`.';
const EXPIRED =
  'after: events behind this cursor are deleted. Read your records, and begin again without `after`.';

/** A merchant without an event, for each test. */
const test = apiTest.extend('shop', async ({ api }) => {
  const { db, pepper } = api;
  const as = await createMerchantWithCredential(db, { name: 'Feed', mode: 'test', pepper });
  const { merchantId } = as;
  return {
    as,
    merchantId,
    emit: (
      streamId: string,
      ...more: Parameters<typeof emit> extends [unknown, unknown, ...infer Rest] ? Rest : []
    ) => db.transaction((tx) => emit(tx, { merchantId, streamId }, ...more)),
    read: (query?: Parameters<typeof readEvents>[1]) => readEvents(api, query, { as }),
    refusal: (query: Parameters<typeof feedPath>[0]) => api.call('GET', feedPath(query), { as }),
    /** Makes the events of a stream 31 days old, and deletes their bodies as the sweep does. */
    expire: async (streamId: string) => {
      await db
        .update(outboxEvents)
        .set({ insertedAt: sql`now() - interval '31 days'` })
        .where(eq(outboxEvents.streamId, streamId));
      return deleteOldEvents(db, { before: Date.now() - 30 * DAY, limit: 100 });
    },
  };
});

test('the feed has the events of a subscription without any endpoint, with the stored bodies, each stream in sequence [D-56]', async ({
  api,
  shop: { as, merchantId, read },
}) => {
  const { json } = await api.call('POST', '/subscription/create', { as, body: subscriptionBody() });
  const { subscriptionId } = json as { subscriptionId: string };
  const page = await read();
  expect(page.data.map(({ eventType, sequence }) => [eventType, sequence])).toEqual([
    ['intent.created', 1],
    ['subscription.created', 2],
  ]);
  const stored = await api.db
    .select()
    .from(outboxEvents)
    .where(eq(outboxEvents.merchantId, merchantId))
    .orderBy(asc(outboxEvents.sequence));
  expect(page.data).toEqual(
    stored.map(({ id, type, occurredAt, sequence, body }) => ({
      eventId: id,
      eventType: type,
      eventTime: occurredAt,
      sequence,
      body,
    })),
  );
  expect(page.metadata.oldestEventTime).toBe(stored[0]!.occurredAt);
  expect(await read({ subscriptionId })).toEqual(page);
  expect((await read({ after: page.metadata.after })).data).toEqual([]);
});

test('pages of every size give the same events once, in the same order, also of one stream or type [D-56]', async ({
  shop: { emit, read },
}) => {
  await emit('sub_b', ['subscription.created', 'intent.created', 'subscription.active']);
  await emit('sub_a', ['intent.created']);
  await read();
  await emit('sub_a', ['subscription.active', 'intent.success']);
  await emit('sub_b', ['intent.success']);
  const all = ['sub_a 1', 'sub_b 1', 'sub_b 2', 'sub_b 3', 'sub_a 2', 'sub_a 3', 'sub_b 4'];
  for (const limit of [1, 2, 3, 100]) {
    for (const [filter, expected] of [
      [{}, all],
      [{ subscriptionId: 'sub_a' }, ['sub_a 1', 'sub_a 2', 'sub_a 3']],
      [{ types: 'intent.success' }, ['sub_a 3', 'sub_b 4']],
      [{ types: 'intent.success,intent.created', subscriptionId: 'sub_b' }, ['sub_b 2', 'sub_b 4']],
      [{ types: 'subscription.ended' }, []],
    ] as const) {
      const found: string[] = [];
      let after: string | undefined;
      for (;;) {
        const page: FeedAnswer = await read({ ...filter, limit, after });
        expect(page.data.length).toBeLessThanOrEqual(limit);
        found.push(...numbersOf(page));
        if (page.data.length === 0 && page.metadata.after === after) break;
        after = page.metadata.after;
      }
      expect([limit, filter, found]).toEqual([limit, filter, expected]);
    }
  }
});

test('`after=now` begins behind every committed event, and an empty feed has a cursor, too [D-56]', async ({
  shop: { emit, read },
}) => {
  const empty = await read();
  expect(empty).toEqual({ data: [], metadata: { after: expect.any(String) } });
  expect(await read({ after: 'now' })).toEqual(empty);
  await emit('sub_a');
  const now = await read({ after: 'now' });
  expect(now.data).toEqual([]);
  await emit('sub_a');
  expect(numbersOf(await read({ after: now.metadata.after }))).toEqual(['sub_a 2']);
  expect(numbersOf(await read({ after: empty.metadata.after }))).toEqual(['sub_a 1', 'sub_a 2']);
});

test('an event that commits late is read after events that began later, and delays none of them [D-56]', async ({
  api,
  shop: { merchantId, emit: commit, read },
}) => {
  let after = '';
  await api.db.transaction(async (tx) => {
    await emit(tx, { merchantId, streamId: 'sub_a' });
    await commit('sub_z');
    const page = await read();
    expect(numbersOf(page)).toEqual(['sub_z 1']);
    ({ after } = page.metadata);
  });
  expect(numbersOf(await read({ after }))).toEqual(['sub_a 1']);
  expect(numbersOf(await read())).toEqual(['sub_z 1', 'sub_a 1']);
});

test('a cursor of the history before a restore is answered 410, also when the same event has its position again [D-56]', async ({
  api,
  shop: { emit, read, refusal },
}) => {
  const cause = { key: 'charge:in_1:1', dueAt: OCCURRED_AT };
  await emit('sub_a');
  const kept = (await read()).metadata.after;
  const restore = await dumpRows(api.db);
  await emit('sub_a', ['intent.failed']);
  await emit('sub_b', ['intent.success'], cause);
  const lost = await read({ after: kept });
  expect(numbersOf(lost)).toEqual(['sub_a 2', 'sub_b 1']);
  const { after } = lost.metadata;
  const waiting = refusal({ after, wait: 25 });

  await restore();
  expectError(await waiting, 410, 'cursor_expired', REPLACED);
  expectError(await refusal({ after }), 410, 'cursor_expired', REPLACED);
  expectError(await refusal({ after, types: 'intent.failed' }), 410, 'cursor_expired', REPLACED);
  await emit('sub_a', ['intent.created']);
  await emit('sub_b', ['intent.success'], cause);
  const again = await read({ after: kept });
  expect(numbersOf(again)).toEqual(['sub_a 2', 'sub_b 1']);
  expect(again.data[1]!.eventId).toBe(lost.data[1]!.eventId);
  expectError(await refusal({ after }), 410, 'cursor_expired', REPLACED);
  expect(numbersOf(await read())).toEqual(['sub_a 1', 'sub_a 2', 'sub_b 1']);
});

test('a reader that has read every deleted event goes on, any other one gets 410, and the feed begins at the oldest body [D-56]', async ({
  api,
  shop: { as, emit, expire, read, refusal },
}) => {
  const empty = (await read()).metadata.after;
  await emit('sub_old', ['intent.created', 'intent.success']);
  const first = await read({ limit: 1 });
  const filtered = (await read({ types: 'subscription.ended' })).metadata.after;
  const border = (await read()).metadata.after;
  await emit('sub_new');
  await read();
  expect(await expire('sub_old')).toEqual({ bodies: 2, deliveries: 0 });

  for (const after of [first.metadata.after, empty]) {
    expectError(await refusal({ after }), 410, 'cursor_expired', EXPIRED);
  }
  const page = await read();
  expect(numbersOf(page)).toEqual(['sub_new 1']);
  expect(page.metadata.oldestEventTime).toBe(OCCURRED_AT);
  for (const after of [border, filtered]) expect(await read({ after })).toEqual(page);
  const path = `/events/${first.data[0]!.eventId}`;
  const expired = await api.call('GET', path, { as });
  expectError(expired, 410, 'event_expired', 'The content of this event is deleted.');
});

test('an event without a position keeps its body past its retention [D-56]', async ({
  shop: { emit, expire, read },
}) => {
  await emit('sub_late');
  expect(await expire('sub_late')).toEqual({ bodies: 0, deliveries: 0 });
  expect(numbersOf(await read())).toEqual(['sub_late 1']);
  expect(await expire('sub_late')).toEqual({ bodies: 1, deliveries: 0 });
  expect(await read()).toMatchObject({ data: [] });
});

test('a cursor of another merchant is answered as an unknown one, and their events and streams are not found [D-56]', async ({
  api,
  shop: { emit, read },
}) => {
  await emit('sub_a');
  const { data, metadata } = await read();
  for (const after of [metadata.after, Buffer.from('1 1').toString('base64url')]) {
    expectError(await api.call('GET', feedPath({ after })), 410, 'cursor_expired', REPLACED);
  }
  expect((await readEvents(api, { subscriptionId: 'sub_a' })).data).toEqual([]);
  for (const id of [data[0]!.eventId, 'evt_0000000000000000000000', 'evt_1', 'sub_a', '%00']) {
    const answer = await api.call('GET', `/events/${id}`);
    expectError(answer, 400, 'resource_not_found', 'There is no such event.');
  }
});

const BAD: [query: Record<string, string>, problem: string][] = [
  [{ after: '' }, 'after: must be metadata.after of GET /events, or now'],
  [{ after: 'NOW' }, 'after: must be metadata.after of GET /events, or now'],
  [
    { after: `${Buffer.from('1 1').toString('base64url')}=` },
    'after: must be metadata.after of GET /events, or now',
  ],
  [
    { after: Buffer.from('-1 1').toString('base64url') },
    'after: must be metadata.after of GET /events, or now',
  ],
  [
    { after: Buffer.from('01 1').toString('base64url') },
    'after: must be metadata.after of GET /events, or now',
  ],
  [{ after: 'a'.repeat(65) }, 'after: must have at most 64 characters'],
  [{ limit: '0' }, 'limit: must be an integer from 1 to 100'],
  [{ limit: '101' }, 'limit: must be an integer from 1 to 100'],
  [{ wait: '26' }, 'wait: must be an integer from 0 to 25'],
  [{ wait: '-1' }, 'wait: must be an integer from 0 to 25'],
  [{ wait: '1.5' }, 'wait: must be an integer from 0 to 25'],
  [{ types: '' }, `types: must be one of ${EVENT_TYPES.join(', ')}, or several with commas`],
  [
    { types: 'intent.lost' },
    `types: must be one of ${EVENT_TYPES.join(', ')}, or several with commas`,
  ],
  [{ subscriptionId: 'a'.repeat(65) }, 'subscriptionId: must have at most 64 characters'],
  [{ before: 'now' }, 'before: is not a parameter of this request'],
];

test.for(BAD)('the feed refuses the query %o [D-56]', async ([query, problem], { shop }) => {
  expectError(await shop.refusal(query), 400, 'bad_request', problem);
});

test('an event is shown with its delivery to each endpoint [D-56]', async ({
  api,
  shop: { as, merchantId, emit, read },
}) => {
  const configIds = ['whc_0000000000000000000001', 'whc_0000000000000000000002'] as const;
  for (const configId of configIds) {
    await createWebhookConfig(api.db, {
      merchantId,
      configId,
      url: 'https://merchant.example/hook',
      sealedSigner: Buffer.from('sealed'),
      eventTypes: ['intent.success'],
      at: OCCURRED_AT,
    });
  }
  await emit('sub_a', ['intent.success', 'intent.refunded']);
  const [delivered, unsubscribed] = (await read()).data;
  const row = await api.db
    .update(webhookDeliveries)
    .set({ state: 'DELIVERED', attempts: 2, lastHttpStatus: 204, settledAt: OCCURRED_AT })
    .where(eq(webhookDeliveries.configId, configIds[0]))
    .returning();
  expect(row).toHaveLength(1);
  const [pending] = await api.db
    .update(webhookDeliveries)
    .set({ attempts: 1, lastError: 'connection refused' })
    .where(eq(webhookDeliveries.configId, configIds[1]))
    .returning();
  const show = async (eventId: string) =>
    (await api.call('GET', `/events/${eventId}`, { as })).json;
  expect(await show(delivered!.eventId)).toEqual({
    ...delivered,
    deliveries: [
      {
        webhookConfigId: configIds[0],
        state: 'DELIVERED',
        attempts: 2,
        httpStatus: 204,
        settledAt: OCCURRED_AT,
      },
      {
        webhookConfigId: configIds[1],
        state: 'PENDING',
        attempts: 1,
        nextAttemptAt: pending!.nextAttemptAt,
        error: 'connection refused',
      },
    ],
  });
  expect(await show(unsubscribed!.eventId)).toEqual({ ...unsubscribed, deliveries: [] });
});

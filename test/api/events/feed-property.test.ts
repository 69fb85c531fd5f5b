import { setTimeout as pause } from 'node:timers/promises';
import { eq, sql } from 'drizzle-orm';
import { expect, onTestFinished } from 'vitest';
import { createDb } from '../../../db/client.ts';
import type { Db } from '../../../db/client.ts';
import { outboxEvents } from '../../../db/schema/webhooks.ts';
import { gate } from '../../support/gate.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { emit, feedPath, numbersOf, readEvents } from '../../support/fixtures/feed.ts';
import type { FeedAnswer } from '../../support/fixtures/feed.ts';

/**
 * The order of the feed beside concurrent writers. At full size:
 * FEED_EVENTS=100000 FEED_PAUSE_MS=5000 npx vitest run test/api/events/feed-property.test.ts
 */
const EVENTS = Number(process.env['FEED_EVENTS'] ?? 2_000);
const PAUSE_MS_MAX = Number(process.env['FEED_PAUSE_MS'] ?? 300);
const WRITERS = 20;
const READERS = 3;
const STREAMS = 30;

class RolledBack extends Error {}

const random = (below: number) => Math.floor(Math.random() * below);
/** Mostly short, at times nearly the longest. */
const wait = () => pause(PAUSE_MS_MAX * Math.random() ** 6);

/** Returns the number of events of one transaction, of a length and kind of its own. A third of them takes its id first, and its stream's lock last. */
async function write(db: Db, merchantId: string): Promise<number> {
  const kind = random(10);
  const streamIds = [random(STREAMS), random(STREAMS)].toSorted((a, b) => a - b);
  const streams = [...new Set(streamIds)].map((id) => ({ merchantId, streamId: `sub_${id + 10}` }));
  let events = 0;
  await db.transaction(async (tx) => {
    if (kind < 3) {
      await tx.execute(sql`select pg_current_xact_id()`);
      await wait();
    }
    for (const stream of kind < 8 ? streams.slice(0, 1) : streams) {
      const types = Array.from({ length: 1 + random(3) }, () => 'intent.success' as const);
      await emit(tx, stream, types);
      events += types.length;
    }
    if (kind >= 3) await wait();
    if (kind === 9) throw new RolledBack();
  });
  return events;
}

/** Reads the feed from its oldest event until it has ended after `isOver`. */
async function readAll(api: ApiEnvironment, isOver: () => boolean, limit: number) {
  const found: FeedAnswer['data'] = [];
  let after: string | undefined;
  for (;;) {
    const wasOver = isOver();
    const page = await readEvents(api, { after, limit, wait: wasOver ? 0 : 1 });
    found.push(...page.data);
    if (wasOver && page.data.length === 0) return found;
    after = page.metadata.after;
  }
}

test(
  'three readers beside twenty writers read every committed event once, in one order, each stream in sequence [D-56]',
  { timeout: process.env['FEED_EVENTS'] === undefined ? 120_000 : 7_200_000 },
  async ({ api }) => {
    const { merchantId } = api.merchant;
    const writing = createDb({
      url: api.databaseUrl,
      poolSize: WRITERS,
      applicationName: 'writers',
    });
    onTestFinished(() => writing.close());
    let committed = 0;
    let rolledBack = 0;
    const writer = async () => {
      while (committed < EVENTS) {
        try {
          const events = await write(writing.db, merchantId);
          committed += events;
        } catch (error) {
          // A long transaction may hold the lock of a stream for longer than the lock's time limit.
          const isLate = String((error as Error).cause).includes('lock timeout');
          if (!isLate && !(error instanceof RolledBack)) throw error;
          rolledBack += 1;
        }
      }
    };
    let isOver = false;
    const readers = Array.from({ length: READERS }, (_, index) =>
      readAll(api, () => isOver, [17, 50, 100][index]!),
    );
    await Promise.all(Array.from({ length: WRITERS }, writer));
    isOver = true;
    const [first, ...others] = await Promise.all(readers);

    const read = first!.map(({ eventId }) => eventId);
    for (const other of others) expect(other.map(({ eventId }) => eventId)).toEqual(read);
    const stored = await api.db
      .select({ id: outboxEvents.id })
      .from(outboxEvents)
      .where(eq(outboxEvents.merchantId, merchantId));
    expect(read).toHaveLength(committed);
    expect(read.toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
    const next = new Map<string, number>();
    for (const [streamId = '', sequence] of numbersOf({ data: first! }).map((text) =>
      text.split(' '),
    )) {
      const due = (next.get(streamId) ?? 0) + 1;
      expect([streamId, Number(sequence)]).toEqual([streamId, due]);
      next.set(streamId, due);
    }
    expect(rolledBack).toBeGreaterThan(0);
  },
);

test.for(['event_feed', 'feed_entry'] as const)(
  'an assigner that is killed while it writes %s leaves no position, and the next one numbers every event [D-56]',
  async (table, { createApi }) => {
    const api = await createApi();
    const stream = { merchantId: api.merchant.merchantId, streamId: 'sub_a' };
    const emitOne = () => api.db.transaction((tx) => emit(tx, stream));
    await emitOne();
    const before = await readEvents(api);
    await emitOne();
    await emitOne();
    await api.db.execute(sql`
      create function stop_here() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(56); return new; end $$`);
    await api.db.execute(
      sql`create trigger stop_here after update on ${sql.identifier(table)} for each row execute function stop_here()`,
    );
    const [held, release] = [gate(), gate()];
    const holder = api.db.transaction(async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(56)`);
      held.open();
      await release.isOpen;
    });
    await held.isOpen;
    const killed = api.call('GET', feedPath());
    const waiting = sql`from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
    const countWaiting = async () => (await api.db.execute(sql`select pid ${waiting}`)).length;
    const kill = async () =>
      (await api.db.execute(sql`select pg_terminate_backend(pid) ${waiting}`)).length;
    await expect.poll(countWaiting).toBe(1);
    // A writer of the same stream does not wait for the assigner.
    await emitOne();
    expect(await kill()).toBe(1);
    expect((await killed).status).toBe(503);
    release.open();
    await holder;
    const [row] = await api.db.execute<{ numbered: number }>(
      sql`select count(position)::int as numbered from feed_entry`,
    );
    expect(row).toEqual({ numbered: 1 });
    const page = await readEvents(api, { after: before.metadata.after });
    expect(numbersOf(page)).toEqual(['sub_a 2', 'sub_a 3', 'sub_a 4']);
  },
);

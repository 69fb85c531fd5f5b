import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { deleteOldEvents } from '../../db/repositories/sweeps/retention.ts';
import { outboxEvents, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import type { Shop } from '../support/shop.ts';

/**
 * At full size, with over 10,000 events, in some minutes:
 * REBUILT_SUBSCRIPTIONS=50 REBUILT_DAYS=2 npx vitest run test/scenarios/rebuilt-records.test.ts --test-timeout=3000000
 */
const SUBSCRIPTIONS = Number(process.env['REBUILT_SUBSCRIPTIONS'] ?? 4);
const CYCLE_DAYS = Number(process.env['REBUILT_DAYS'] ?? 30);
const TERMS = { interval: 'DAY', intervalCount: CYCLE_DAYS, cycleCount: 400 };
const STARTS_AT = Date.parse('2027-01-31T08:00:00Z');
const DAY = 24 * 3_600_000;

type Event = Record<string, unknown> & { eventId: string; eventType: string; sequence: number };

/** What a merchant keeps of a subscription. */
const KEPT = [
  'status',
  'amount',
  'nextPaymentDate',
  'currentPeriodEnd',
  'remainingCycleCount',
] as const;

const kept = (record: Record<string, unknown>) =>
  Object.fromEntries(KEPT.map((field) => [field, record[field] ?? null]));

/** A merchant's records, as `docs/integrating.md` tells to keep them: each event once, none after a later one. */
function createRecords() {
  const known = new Set<string>();
  const sequences = new Map<string, number>();
  const records = new Map<string, unknown>();
  return {
    records,
    apply(event: Event): void {
      const { eventId, eventType, sequence, subscriptionId } = event;
      const id = String(subscriptionId);
      if (known.has(eventId) || !eventType.startsWith('subscription.')) return;
      known.add(eventId);
      if (sequence < (sequences.get(id) ?? 0)) return;
      sequences.set(id, sequence);
      records.set(id, kept(event));
    },
    read: (record: Record<string, unknown>) =>
      void records.set(String(record['subscriptionId']), kept(record)),
  };
}

interface Page {
  data: { body: string }[];
  metadata: { after: string };
}

/** Reads the feed from a cursor, or from its oldest event, to its end. */
async function readOn({ merchant }: Shop, from: string | null, take: (event: Event) => void) {
  let after = from;
  for (;;) {
    const query = after === null ? '' : `?after=${after}`;
    const page = await merchant.get<Page>(`/events${query}`);
    for (const { body } of page.data) take(JSON.parse(body) as Event);
    if (page.data.length === 0) return page.metadata.after;
    after = page.metadata.after;
  }
}

/** Every fifth event never, and the others three times on average, in another order. The same for each run. */
function asTheyArrived(events: readonly Event[]): Event[] {
  const arrived = events.flatMap((event, index) =>
    [1, 7, 13, 29]
      .filter((times) => index % 5 !== 4 && (index * times) % 5 !== 3)
      .map((times) => ({ event, place: (index * times * 2_654_435_761) % 1_009 })),
  );
  return arrived.toSorted((a, b) => a.place - b.place).map(({ event }) => event);
}

/** A year in which each subscription goes another way. */
async function liveAYear(shop: Shop, index: number): Promise<void> {
  const { merchant } = shop;
  const { testClockId, advance } = await shop.createClock(STARTS_AT);
  const { subscriptionId, fwdUrl, declineNext } = await shop.subscribe({ ...TERMS, testClockId });
  await payOnPage(fwdUrl);
  const command = (path: string, body: object = {}) =>
    merchant.post(`/subscription/${path}`, { subscriptionId, ...body });
  await advance(STARTS_AT + 40 * DAY);
  if (index % 4 === 0) await command('edit', { newAmount: 2_999 });
  if (index % 4 === 1) await declineNext('insufficient_funds', 2);
  if (index % 4 === 2) await command('merchant/pause');
  await advance(STARTS_AT + 130 * DAY);
  const newNextPaymentDate = STARTS_AT + 150 * DAY;
  if (index % 4 === 2) await command('merchant/unpause', { newNextPaymentDate });
  if (index % 4 === 3) await command('merchant/cancel', { atPeriodEnd: true });
  await advance(STARTS_AT + 200 * DAY);
}

test('a merchant’s records equal the API after lost, late and repeated events, from the feed alone, and from reads when the events are deleted [D-56, D-40]', async ({
  env,
  shop,
}) => {
  const { merchant, receiver } = shop;
  for (let index = 0; index < SUBSCRIPTIONS; index += 1) await liveAYear(shop, index);
  await eventually(async () =>
    expect(await env.db.$count(webhookDeliveries, eq(webhookDeliveries.state, 'PENDING'))).toBe(0),
  );
  const truth = async () => {
    const all = await merchant.get<{ data: Record<string, unknown>[] }>('/subscription?limit=100');
    return all.data;
  };
  const expected = async () =>
    new Map((await truth()).map((record) => [String(record['subscriptionId']), kept(record)]));
  const sorted = (records: ReadonlyMap<string, unknown>) =>
    [...records].toSorted(([a], [b]) => a.localeCompare(b));
  const now = sorted(await expected());
  expect(now).toHaveLength(SUBSCRIPTIONS);
  expect(new Set(now.map(([, record]) => (record as { status: string }).status))).toEqual(
    new Set(['ACTIVE', 'ENDED']),
  );

  const webhooks = createRecords();
  const sent = [...new Map(receiver.received.map(({ event }) => [event.eventId, event])).values()];
  const arrived = asTheyArrived(sent);
  const ids = new Set(arrived.map(({ eventId }) => eventId));
  expect(ids.size).toBe(Math.ceil((sent.length * 4) / 5));
  for (const event of arrived) webhooks.apply(event);
  await readOn(shop, null, (event) => webhooks.apply(event));
  expect(sorted(webhooks.records)).toEqual(now);

  const feed = createRecords();
  const cursor = await readOn(shop, null, (event) => feed.apply(event));
  expect(sorted(feed.records)).toEqual(now);

  // 40 days later the bodies are deleted. A cursor among them is refused, so the merchant reads the records.
  const { metadata } = await merchant.get<Page>('/events?limit=1');
  await env.db.update(outboxEvents).set({ insertedAt: sql`now() - interval '40 days'` });
  const deletion = { before: Date.now() - 30 * DAY, limit: 5_000 };
  await eventually(async () => expect((await deleteOldEvents(env.db, deletion)).bodies).toBe(0));
  await expect(merchant.get(`/events?after=${metadata.after}`)).rejects.toThrow('cursor_expired');
  const reads = createRecords();
  const after = (await merchant.get<Page>('/events?after=now')).metadata.after;
  expect(after).toBe(cursor);
  await liveAYear(shop, 0);
  for (const record of await truth()) reads.read(record);
  await readOn(shop, after, (event) => reads.apply(event));
  expect(sorted(reads.records)).toEqual(sorted(await expected()));
  expect(await readOn(shop, cursor, () => undefined)).not.toBe(cursor);
});

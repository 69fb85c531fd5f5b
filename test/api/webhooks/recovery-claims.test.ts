import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { claimForEndpoint } from '../../../db/repositories/webhooks/claims.ts';
import { recordDeliveries } from '../../../db/repositories/webhooks/deliveries.ts';
import { webhookDeliveries } from '../../../db/schema/webhooks.ts';
import { hasValues } from '../../../db/repositories/records.ts';
import { test } from '../../support/api-environment.ts';

const EVENTS = 3_000;
const CLAIM = { claimMs: 45_000, batches: 16, resentBatches: 4, mayProbe: false };
/** A claim that reads every pending delivery once reads 3,000 rows. */
const ROWS_MAX = 300;

test('a claim from a recovery and its record read few rows, also when the statistics are older than the recovery [D-56]', async ({
  api,
}) => {
  const { merchantId } = api.merchant;
  const subscribe = async () => {
    const body = {
      eventSigner: 'secret',
      endpoint: 'https://merchant.example/hook',
      subscribedEventTypes: ['intent.success'],
    };
    const { json } = await api.call('POST', '/webhook', { body });
    return (json as { webhookConfigId: string }).webhookConfigId;
  };
  const [other, configId] = [await subscribe(), await subscribe()];
  await api.db.execute(sql`
    insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
    select ${merchantId}, 'evt_' || lpad(n::text, 22, '0'), 'sub_' || lpad((n / 10)::text, 4, '0'), n % 10 + 1, 'intent.success', '{}', now()
    from generate_series(1, ${EVENTS}::int) n`);
  await api.db.execute(sql`
    insert into webhook_delivery (merchant_id, event_id, config_id, stream_id, sequence, state, settled_at)
    select merchant_id, id, ${other}, stream_id, sequence, 'DELIVERED', now() from outbox_event limit 100`);
  await api.db.execute(sql`alter table webhook_delivery set (autovacuum_enabled = off)`);
  await api.db.execute(sql`analyze webhook_delivery, outbox_event`);
  const begun = await api.call('POST', `/webhook/${configId}/recover`, { body: { since: 0 } });
  expect(begun.json).toMatchObject({ events: EVENTS, pending: EVENTS });

  const { claim, rows } = await api.db.transaction(async (tx) => {
    const ref = { merchantId, configId };
    const claimed = await claimForEndpoint(tx, ref, { ...CLAIM, nowAt: Date.now() + 60_000 });
    const attempts = claimed!.batches.flat().map((delivery) => ({
      ...delivery,
      updatedAt: claimed!.endpoint.updatedAt,
      attempts: 1,
      isManual: true,
      at: Date.now(),
      state: 'DELIVERED' as const,
      nextAttemptAt: null,
      httpStatus: 200,
      error: null,
      durationMs: 1,
      answer: null,
    }));
    await recordDeliveries(tx, ref, attempts, []);
    const [read] = await tx.execute<{ rows: number }>(sql`
      select (seq_tup_read + idx_tup_fetch)::int as rows
      from pg_stat_xact_user_tables where relname = 'webhook_delivery'`);
    return { claim: claimed, ...read };
  });
  expect(claim?.batches.map((batch) => batch.map(({ eventId }) => eventId))).toEqual([
    ['evt_0000000000000000000001'],
    ['evt_0000000000000000000010'],
    ['evt_0000000000000000000020'],
    ['evt_0000000000000000000030'],
  ]);
  const delivered = hasValues(webhookDeliveries, { merchantId, configId, state: 'DELIVERED' });
  expect(await api.db.$count(webhookDeliveries, delivered)).toBe(4);
  expect(rows).toBeLessThan(ROWS_MAX);
});

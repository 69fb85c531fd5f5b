import { randomBytes } from 'node:crypto';
import { newId } from '../../../domain/ids.ts';
import { connectWorkflows, withDatabase } from '../../../cli/command-line/servers.ts';
import { createStarts } from '../../../cli/import/starts.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';

const ROWS_AT_ONCE = 1_000;

/**
 * Copies the rows of paid subscriptions `count` times in all under new ids, and starts the workflows of the copies. A copy
 * shares the customer and the card of its original: with many on one card, its limit would delay their charges. Returns
 * the ids.
 */
export async function cloneSubscriptions(
  stack: MeasuredStack,
  originals: readonly string[],
  count: number,
): Promise<string[]> {
  const { demo, sql } = stack;
  const ids = Array.from({ length: count }, () => newId('sub', Date.now(), randomBytes));
  for (let first = 0; first < count; first += ROWS_AT_ONCE) {
    const batch = ids.slice(first, first + ROWS_AT_ONCE);
    const copied = batch.map((_, index) => originals[(first + index) % originals.length] ?? '');
    await sql`
      insert into subscription
      select (jsonb_populate_record(s, replace(to_jsonb(s)::text, s.id, new_id)::jsonb
        || '{"workflow_started_at": null}')).*
      from unnest(${batch}::text[], ${copied}::text[]) as copy (new_id, original)
      join subscription s on s.id = copy.original`;
  }
  const [row] = await sql<{ merchant_id: string }[]>`
    select merchant_id from subscription where id = ${originals[0] ?? ''}`;
  const merchantId = row?.merchant_id ?? '';
  const place = { url: demo.databaseUrl, command: 'bench-clones', poolSize: 4 };
  return withDatabase(place, async (db) => {
    const { workflows, close } = connectWorkflows(db, { ...demo, taskQueuePrefix: '' });
    const starts = createStarts(workflows);
    for (const subscriptionId of ids) await starts.begin({ merchantId, subscriptionId });
    const notStarted = await starts.end();
    await close();
    if (notStarted > 0) throw new Error(`${notStarted} workflows were not started`);
    return ids;
  });
}

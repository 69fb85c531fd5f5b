import type postgres from 'postgres';
import { waitFor } from '../../scripts/client/wait-for.ts';

/** In this time, in ms, the claims of killed workers expire and the sweeps find their work. */
const WITHIN_MS = 300_000;
const HURRY_EVERY_MS = 5_000;
/** In this time, in ms, the records are compared: they must not change meanwhile. */
const QUIET_MS = 30_000;

/** Waits until no work is open or due soon in real time, and makes failed deliveries due at once. After 5 minutes throws, with the open work. */
export async function settle(sql: postgres.Sql): Promise<void> {
  let hurriedAt = 0;
  let left = '';
  await waitFor(
    'everything to be settled',
    WITHIN_MS,
    async () => {
      if (performance.now() - hurriedAt > HURRY_EVERY_MS) {
        hurriedAt = performance.now();
        await sql`update webhook_delivery set next_attempt_at = now() - interval '1 minute'
          where state = 'PENDING' and next_attempt_at > now()`;
      }
      const [open] = await sql<
        {
          attempts: number;
          refunds: number;
          deliveries: number;
          behindClocks: number;
          dueSoon: number;
        }[]
      >`
        select
          (select count(*)::int from payment_attempt
            where state in ('SENDING', 'UNSENT', 'UNKNOWN')) as attempts,
          (select count(*)::int from refund
            where state in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING')) as refunds,
          (select count(*)::int from webhook_delivery where state = 'PENDING') as deliveries,
          (select count(*)::int from subscription s
            join test_clock c on c.merchant_id = s.merchant_id and c.id = s.test_clock_id
            where s.status <> 'ENDED'
              and (s.clock_reached_at is null or s.clock_reached_at < c.target_at)) as "behindClocks",
          (select count(*)::int from subscription
            where status <> 'ENDED' and test_clock_id is null
              and wake_at < now() + ${QUIET_MS} * interval '1 millisecond') as "dueSoon"`;
      left = JSON.stringify(open);
      const isDone = open && Object.values(open).every((count) => count === 0);
      return isDone ? true : undefined;
    },
    () => `Left: ${left}`,
  );
}

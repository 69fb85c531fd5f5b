import { sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { sweepCounts } from '../../schema/sweeps.ts';

/** Adds a sweep's repairs of one kind to `sweep_count`. A repeat counts the repairs again. */
export async function countRepairs(db: Db, kind: string, repaired: number): Promise<void> {
  const lastAt = sql`now()`;
  await db
    .insert(sweepCounts)
    .values({ kind, repaired, lastAt })
    .onConflictDoUpdate({
      target: sweepCounts.kind,
      set: { repaired: sql`${sweepCounts.repaired} + ${repaired}`, lastAt },
    });
}

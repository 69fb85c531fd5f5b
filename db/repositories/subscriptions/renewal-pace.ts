import { sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { renewalPace } from '../../schema/renewal-pace.ts';

/** Null if no worker has learned it yet. */
export async function loadPace(db: Db): Promise<number | null> {
  const [row] = await db.select({ perSecond: renewalPace.perSecond }).from(renewalPace);
  return row?.perSecond ?? null;
}

/** Of several workers, the last one's is kept. */
export async function savePace(db: Db, perSecond: number): Promise<void> {
  const learned = { perSecond, learnedAt: sql`now()` };
  await db
    .insert(renewalPace)
    .values(learned)
    .onConflictDoUpdate({ target: renewalPace.isOnly, set: learned });
}

import type { Books } from './books.ts';

/** A repair is no violation, but shows that a process crashed or a message was lost before. */
export type Repairs = Awaited<ReturnType<typeof readRepairs>>[number];

/** All kinds of repairs that the sweeps made on this database. A healthy system has none. */
export async function readRepairs(books: Books) {
  const rows = await books.ask<{ kind: string; repaired: string; last_at: Date }>(
    'select kind, repaired, last_at from sweep_count order by kind',
  );
  return rows.map(({ kind, repaired, last_at: lastAt }) => ({
    kind,
    repaired: Number(repaired),
    lastAt: lastAt.toISOString(),
  }));
}

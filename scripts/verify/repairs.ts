import type { Books } from './books.ts';

/** What the sweeps had to set going again, of one kind. No fault of the books, but of something. */
export interface Repairs {
  readonly kind: string;
  readonly repaired: number;
  /** ISO 8601. */
  readonly lastAt: string;
}

/** All kinds that were ever repaired on this database; none in a healthy system. Design §5. */
export async function readRepairs(books: Books): Promise<Repairs[]> {
  const rows = await books.ask<{ kind: string; repaired: string; last_at: Date }>(
    'select kind, repaired, last_at from sweep_count order by kind',
  );
  return rows.map(({ kind, repaired, last_at: lastAt }) => ({
    kind,
    repaired: Number(repaired),
    lastAt: lastAt.toISOString(),
  }));
}

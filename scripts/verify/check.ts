import type { Books } from './books.ts';

/** One question to the books. */
export interface Check {
  /** 1..8; the titles are in `invariants.ts`. */
  readonly invariant: number;
  /** Which book it needs beside Postgres. */
  readonly needs?: keyof Books['has'];
  /** How many things were looked at: one row, column `n`. */
  readonly counted: string;
  /** Rows with a column `wrong`: a sentence each. None when all is well. */
  readonly wrong: string;
  /** What it finds is in order, and waits for a person. */
  readonly isForPerson?: true;
}

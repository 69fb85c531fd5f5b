import type { Books } from './books.ts';

/** One query about the books. */
export interface Check {
  /** 1 to 8. The titles are in `invariants.ts`. */
  readonly invariant: number;
  /** The book that it needs beside Postgres. */
  readonly needs?: keyof Books['has'];
  /** SQL for the number of checked records: one row, column `n`. */
  readonly counted: string;
  /** SQL for the violations: a row for each, with a sentence in column `wrong`. */
  readonly wrong: string;
  /** If true, a found row is not a violation but an open manual review. */
  readonly isForPerson?: true;
}

import type { Books } from './books.ts';

export interface Check {
  /** 1 to 11. The titles are in `invariants.ts`. */
  readonly invariant: number;
  /** The book that the check needs in addition to Postgres. `Places` in `books.ts` explains the term. */
  readonly needs?: keyof Books['has'];
  /** SQL for the number of checked records: one row, column `n`. */
  readonly counted: string;
  /** SQL for the violations: one row each, with a sentence in column `wrong`. */
  readonly wrong: string;
  /** True if the rows of `wrong` are no violations, but open manual reviews. */
  readonly isForPerson?: true;
}

import type { Terms } from './entry-schema.ts';

export type { Terms } from './entry-schema.ts';

type Amounts = Pick<Terms, 'amountMinor' | 'cycleCount' | 'upfrontAmountMinor'>;

export function cycleAmountMinor(terms: Amounts, cycleNumber: number): number {
  return cycleNumber === 1 && terms.upfrontAmountMinor !== null
    ? terms.upfrontAmountMinor
    : terms.amountMinor;
}

export function totalAmountMinor(terms: Amounts): number {
  return cycleAmountMinor(terms, 1) + (terms.cycleCount - 1) * terms.amountMinor;
}

/** Returns why the sum of all cycles cannot be an amount, after the name of a field; null if it can. */
export function sumProblem(terms: Amounts): string | null {
  return Number.isSafeInteger(totalAmountMinor(terms))
    ? null
    : `must make a sum of all cycles of at most ${Number.MAX_SAFE_INTEGER}`;
}

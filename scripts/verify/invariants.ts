import type { Books } from './books.ts';
import { calendarChecks } from './calendar-checks.ts';
import type { Check } from './check.ts';
import { chargingChecks } from './charging-checks.ts';
import { subscriptionChecks } from './subscription-checks.ts';
import { deliveryChecks } from './delivery-checks.ts';
import { reviewChecks } from './review-checks.ts';

const INVARIANTS: readonly string[] = [
  'what is owed was charged exactly once, in every book',
  'no cycle is missing and none is late for ever',
  'the gateway charged the amount that was owed',
  'what is left of a subscription is what was not paid',
  'every event was stored in order and reached its receivers, signed',
  'one idempotency key, one answer',
  'nothing is open for longer than its repair takes',
  'statuses follow the table of the rules',
];

export interface Verdict {
  readonly invariant: number;
  readonly title: string;
  /** Null when no book that it needs was given. */
  readonly counted: number | null;
  readonly wrong: readonly string[];
  /** In order, but a person has to settle it: `npm run review`. */
  readonly forPerson: readonly string[];
}

/** At most this many sentences of one check are kept; the first ones tell the story. */
const WRONG_MAX = 20;

/** Asks everything that the given books can answer. Changes nothing. */
export async function judgeBooks(books: Books): Promise<Verdict[]> {
  const checks = [
    ...chargingChecks,
    ...subscriptionChecks,
    ...calendarChecks,
    ...deliveryChecks,
    ...reviewChecks,
  ];
  const verdicts: Verdict[] = [];
  for (const [index, title] of INVARIANTS.entries()) {
    const invariant = index + 1;
    const mine = checks.filter(
      (check) => check.invariant === invariant && isPossible(check, books),
    );
    let counted: number | null = null;
    const wrong: string[] = [];
    const forPerson: string[] = [];
    for (const check of mine) {
      const [row] = await books.ask<{ n: string }>(check.counted);
      counted = (counted ?? 0) + Number(row?.n ?? 0);
      const found = await books.ask<{ wrong: string }>(`${check.wrong} limit ${WRONG_MAX}`);
      (check.isForPerson ? forPerson : wrong).push(...found.map((line) => line.wrong));
    }
    verdicts.push({ invariant, title, counted, wrong, forPerson });
  }
  return verdicts;
}

function isPossible({ needs }: Check, { has }: Books): boolean {
  return needs === undefined || has[needs];
}

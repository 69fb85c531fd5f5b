import type { Books } from './books.ts';
import { calendarChecks } from './calendar-checks.ts';
import type { Check } from './check.ts';
import { chargingChecks } from './charging-checks.ts';
import { subscriptionChecks } from './subscription-checks.ts';
import { deliveryChecks } from './delivery-checks.ts';
import { refundChecks } from './refund-checks.ts';
import { reviewChecks } from './review-checks.ts';

const INVARIANTS: readonly string[] = [
  'every owed amount was charged exactly once, according to all records',
  'no cycle is missing or overdue',
  'the gateway charged the owed amount',
  'the number of remaining cycles is the agreed number minus the paid cycles',
  'every event was stored in order and delivered to its receivers with a signature',
  'every idempotency key has one answer',
  'no payment, refund or delivery is open for longer than its repair takes',
  'every change of status is allowed by the rules and has its event',
  'the recorded state of every subscription can be read',
  'every refund was made exactly once, and gateway, rows and events agree on its amount',
];

export interface CheckResult {
  readonly invariant: number;
  readonly title: string;
  /** Number of checked records; null if a data source that the check needs was not given. */
  readonly counted: number | null;
  readonly wrong: readonly string[];
  /** Records that need manual review (`npm run review`), which are no violations. */
  readonly forPerson: readonly string[];
}

/** Maximum number of violations reported for one check. */
const WRONG_MAX = 20;

/** Runs every check whose data sources are given: Postgres, gateway, receivers, clients. Reads only. */
export async function checkBooks(books: Books): Promise<CheckResult[]> {
  const checks = [
    ...chargingChecks,
    ...subscriptionChecks,
    ...calendarChecks,
    ...deliveryChecks,
    ...reviewChecks,
    ...refundChecks,
  ];
  const results: CheckResult[] = [];
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
    results.push({ invariant, title, counted, wrong, forPerson });
  }
  return results;
}

function isPossible({ needs }: Check, { has }: Books): boolean {
  return needs === undefined || has[needs];
}

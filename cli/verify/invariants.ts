import { COMPANIES } from '../../gateways/processors.ts';
import { readAccepted } from './acceptance.ts';
import type { Acceptance } from './acceptance.ts';
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
  'every subscription follows from its ledger by the rules, and every change of status has its event',
  'the recorded state of every subscription can be read',
  'every refund was made exactly once, and gateway, rows and events agree on its amount',
  'no saved card has more unpaid attempts than card networks allow',
];

export interface CheckResult {
  readonly invariant: number;
  readonly title: string;
  /** Number of checked records; null if none of the invariant's checks could run. */
  readonly counted: number | null;
  readonly unchecked: readonly Unchecked[];
  readonly wrong: readonly string[];
  /** Violations that an operator has accepted, which are none any more. */
  readonly accepted: readonly Acceptance[];
  /** Records that need manual review (`npm run review`), which are no violations. */
  readonly forPerson: readonly string[];
}

export interface Unchecked {
  readonly book: keyof Books['has'];
  readonly reason: string;
}

const NOT_GIVEN: Readonly<Record<keyof Books['has'], string>> = {
  gateway: `no book of a gateway: GATEWAY_URL and GATEWAY_KEY are not set, and no account at ${COMPANIES} was read`,
  receiver: 'no book of a webhook receiver: --receiver-book is not set',
  client: 'no book of a client: --client-book is not set',
};

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
  const unread = await attemptsWithoutBook(books);
  const known = await readAccepted(books);
  const results: CheckResult[] = [];
  for (const [index, title] of INVARIANTS.entries()) {
    const invariant = index + 1;
    const mine = checks.filter((check) => check.invariant === invariant);
    const needs = new Set(mine.flatMap((check) => check.needs ?? []));
    const unchecked = [...needs].flatMap((book): Unchecked[] => {
      if (!books.has[book]) return [{ book, reason: NOT_GIVEN[book] }];
      return book === 'gateway' ? unread : [];
    });
    let counted: number | null = null;
    const wrong: string[] = [];
    const accepted: Acceptance[] = [];
    const forPerson: string[] = [];
    for (const check of mine.filter((each) => isPossible(each, books))) {
      const [row] = await books.ask<{ n: string }>(check.counted);
      counted = (counted ?? 0) + Number(row?.n ?? 0);
      const found = await books.ask<{ wrong: string }>(check.wrong);
      for (const { wrong: line } of found) {
        const acceptance = known.get(line);
        if (check.isForPerson) forPerson.push(line);
        else if (acceptance) accepted.push(acceptance);
        else wrong.push(line);
      }
    }
    results.push({ invariant, title, counted, unchecked, wrong, accepted, forPerson });
  }
  return results;
}

async function attemptsWithoutBook(books: Books): Promise<Unchecked[]> {
  const rows = await books.ask<{ gateway: string; n: string }>(`
    select gateway, count(*) as n from payment_attempt
    where state in ('SUCCEEDED', 'DECLINED') and gateway not in (select gateway from book_gateway)
    group by gateway order by gateway`);
  return rows.map(({ gateway, n }) => ({
    book: 'gateway',
    reason: `${n} attempts at the gateway ${gateway}: ${books.unread.get(gateway) ?? 'its book was not read'}`,
  }));
}

function isPossible({ needs }: Check, { has }: Books): boolean {
  return needs === undefined || has[needs];
}

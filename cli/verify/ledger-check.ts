import type { ReservedSql, Sql } from 'postgres';
import { ENTRY_JSON } from '../../db/repositories/subscriptions/row.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import {
  derive,
  differencesIn,
  jsonOf,
  stateDifferences,
  UnderivableError,
} from '../../domain/subscription/ledger.ts';
import type { DerivedCharge, Difference } from '../../domain/subscription/ledger.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';

/** An attempt on a cycle in its row. `cause` null: a declined one, copied from the gateway's book. */
export interface RecordedCharge extends Omit<DerivedCharge, 'cause'> {
  readonly cause: DerivedCharge['cause'] | null;
  readonly createdAt: number;
  readonly paymentMethodId?: string;
}

/** Returns how the row and the attempts differ from what the ledger leads to by the rules. Empty: not at all. */
export function ledgerProblems(
  state: SubscriptionState,
  entries: readonly Entry[],
  recorded: readonly RecordedCharge[],
): string[] {
  const opened = recorded.map((attempt) => ({ ...attempt, openedAt: openedAtOf(attempt) }));
  try {
    const derived = derive(state, entries, opened);
    return [
      ...stateDifferences(derived.state, state).map((each) => problemOf('its row', each)),
      ...chargeProblems(derived.charges, recorded),
    ];
  } catch (error) {
    if (error instanceof UnderivableError) return [error.message];
    throw error;
  }
}

const isCopied = ({ cause }: Pick<RecordedCharge, 'cause'>): boolean =>
  cause === null || cause.rule === 'adopted';

/** Null for an attempt from the gateway's book, whose entry opens it. */
export function openedAtOf(attempt: Pick<RecordedCharge, 'cause' | 'createdAt'>): number | null {
  return isCopied(attempt) ? null : attempt.createdAt;
}

const nameOf = ({ intentId, attemptNumber }: { intentId: string; attemptNumber: number }): string =>
  `attempt ${attemptNumber} of ${intentId}`;

function chargeProblems(
  derived: readonly DerivedCharge[],
  recorded: readonly RecordedCharge[],
): string[] {
  const left = new Map(recorded.map((charge) => [nameOf(charge), charge]));
  const problems = derived.flatMap((charge) => {
    const name = nameOf(charge);
    const found = left.get(name);
    left.delete(name);
    if (!found) return [`${name} is missing`];
    const { createdAt: _, paymentMethodId: __, ...facts } = found;
    return differencesIn('', charge, facts).map((each) => problemOf(name, each));
  });
  // A copied attempt that was declined is never opened, and one that was not waits for its cycle.
  const extra = [...left].filter(([, charge]) => !isCopied(charge));
  return [...problems, ...extra.map(([name]) => `${name} does not follow from the ledger`)];
}

function problemOf(subject: string, { what, derived, recorded }: Difference): string {
  return `${subject} has ${what} ${jsonOf(recorded)}, by the ledger it is ${jsonOf(derived)}`;
}

const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`;

/** Each subscription with its ledger and the attempts on its cycles. `verify` hides the unreadable ones. */
const LEDGERS = `
  select s.merchant_id, s.id, s.state,
    (select coalesce(json_agg(${ENTRY_JSON} order by e.version), '[]')
      from subscription_entry e where e.merchant_id = s.merchant_id and e.subscription_id = s.id) as entries,
    (select coalesce(json_agg(json_build_object('intentId', i.id, 'attemptNumber', a.attempt_number,
        'trigger', a.trigger, 'amountMinor', a.amount_minor, 'dueAt', ${epochMs('i.due_at')}, 'cause', a.cause,
        'paymentMethodId', a.payment_method_id,
        'createdAt', ${epochMs('a.created_at')})), '[]')
      from payment_intent i
        join payment_attempt a on a.merchant_id = i.merchant_id and a.intent_id = i.id
      where i.merchant_id = s.merchant_id and i.subscription_id = s.id and i.kind = 'cycle') as attempts
  from subscription s`;

interface Ledger {
  merchant_id: string;
  id: string;
  state: SubscriptionState;
  entries: Entry[];
  attempts: RecordedCharge[];
}

const BATCH = 500;

/** Derives every subscription from its ledger, and returns a row for each problem. Reads only. */
export async function readLedgerProblems(sql: Sql | ReservedSql) {
  const found: (Pick<Ledger, 'merchant_id' | 'id'> & { problem: string })[] = [];
  for await (const batch of sql.unsafe<Ledger[]>(LEDGERS).cursor(BATCH)) {
    for (const { merchant_id, id, state, entries, attempts } of batch) {
      const problems = ledgerProblems(state, entries, attempts);
      found.push(...problems.map((problem) => ({ merchant_id, id, problem })));
    }
  }
  return found;
}

import type { Db } from '../../db/client.ts';
import { findMethod } from '../../db/repositories/customers/payment-methods.ts';
import { loadNoticeRules } from '../../db/repositories/merchants/settings.ts';
import { loadRow } from '../../db/repositories/subscriptions/row.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import { cardExpiresAt } from '../../domain/payment-method.ts';
import { factsNeeded } from '../../domain/subscription/plan-notices.ts';
import type { PlanFacts } from '../../domain/subscription/plan-notices.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';

/** For this time in ms a process plans notices by a merchant's former rules, so that a renewal reads none. */
const KEPT_MS = 60_000;

export type NoticeRulesOf = (merchantId: string) => Promise<NoticeRules>;

/** Not inside a transaction: it takes a connection of its own. */
export function cachedNoticeRules(db: Db): NoticeRulesOf {
  const kept = new Map<string, { rules: NoticeRules; until: number }>();
  return async (merchantId) => {
    const known = kept.get(merchantId);
    if (known && Date.now() < known.until) return known.rules;
    const rules = await loadNoticeRules(db, merchantId);
    kept.set(merchantId, { rules, until: Date.now() + KEPT_MS });
    return rules;
  };
}

/** Reads what the plan of `state` needs, before `state` is recorded. */
export async function planFacts(
  db: Db,
  state: SubscriptionState,
  rules: NoticeRules,
): Promise<PlanFacts> {
  const { merchantId, paymentMethodId } = state;
  const needed = factsNeeded(state, rules);
  const card =
    needed.cardExpiresAt && paymentMethodId !== null
      ? await findMethod(db, merchantId, paymentMethodId)
      : null;
  const row = needed.formerAmountMinor ? (await loadRow(db, state)).state : null;
  return {
    cardExpiresAt: card && cardExpiresAt(card),
    formerAmountMinor: row && row.terms.amountMinor,
  };
}

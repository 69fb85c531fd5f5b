import type postgres from 'postgres';
import type { DoubleControl } from '../../scripts/client/double-control.ts';
import { grouped } from '../../scripts/client/terminal.ts';
import type { Figure } from './gateway-faults.ts';

export interface DoubleCount {
  readonly figures: readonly Figure[];
  readonly wrong: readonly string[];
}

/** Counts intents charged twice, paid ones without a charge, the reverse, and attempts in REVIEW that it decided. */
export async function countAtDouble(
  sql: postgres.Sql,
  double: DoubleControl,
): Promise<DoubleCount> {
  const charged = new Map<string, number>();
  const ids = new Set<string>();
  let charges = 0;
  let confirmed = 0;
  for await (const page of double.charges()) {
    for (const { status, metadata, paymentIntentId, confirmCount } of page) {
      charges += 1;
      if (confirmCount > 1) confirmed += 1;
      ids.add(paymentIntentId);
      const intentId = String(metadata['intentId']);
      if (status === 'succeeded') charged.set(intentId, (charged.get(intentId) ?? 0) + 1);
    }
  }
  const paid = await sql<{ id: string }[]>`
    select id from payment_intent where status in ('SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED')`;
  const review = await sql<{ id: string; gateway_charge_id: string | null }[]>`
    select id, gateway_charge_id from payment_attempt where state = 'REVIEW'`;
  const paidIds = new Set(paid.map(({ id }) => id));
  const twice = [...charged].filter(([, count]) => count > 1).map(([id]) => id);
  const missing = [...paidIds].filter((id) => !charged.has(id));
  const unknown = [...charged.keys()].filter((id) => !paidIds.has(id));
  const inReview = review.filter(({ gateway_charge_id: id }) => id !== null && ids.has(id));
  return {
    figures: [
      ['charges in the list of the double', grouped(charges)],
      ['PaymentIntents with several confirm requests', grouped(confirmed)],
      ['intents charged twice there', String(twice.length)],
      ['paid intents without a charge there', String(missing.length)],
      ['charges there without a paid intent', String(unknown.length)],
      ['attempts in REVIEW that a look-up by id settles', String(inReview.length)],
    ],
    wrong: [
      ...twice.map((id) => `the double has charged ${id} twice`),
      ...missing.map((id) => `${id} is paid, and the double has no charge`),
      ...unknown.map((id) => `the double has charged ${id}, which is not paid`),
      ...inReview.map(({ id }) => `attempt ${id} is in REVIEW, and the double has decided it`),
    ],
  };
}

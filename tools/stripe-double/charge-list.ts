import type { Sql } from 'postgres';
import { wholeNumber } from '../../gateways/http-server/fields.ts';
import type { StripeObject } from './errors.ts';

const PAGE_LIMIT = 1_000;

/** A charge as the control route lists it. */
export type DoubleCharge = ReturnType<typeof fromRow>;

export async function listCharges(
  sql: Sql,
  query: Readonly<Record<string, string>>,
): Promise<{ charges: DoubleCharge[]; next: number | null }> {
  const { paymentIntentId, accountId } = query;
  const after =
    query['after'] === undefined
      ? 0
      : wholeNumber({ after: Number(query['after']) }, 'after', {
          from: 0,
          to: Number.MAX_SAFE_INTEGER,
        });
  const rows = await sql<Row[]>`
    select o.sequence, o.account_id, o.body, coalesce(c.count, 0) as confirms
    from stripe_double.object o
    left join stripe_double.confirm_request c on c.intent_id = o.body->>'payment_intent'
    where o.kind = 'charge' and o.sequence > ${after}
      ${paymentIntentId === undefined ? sql`` : sql`and o.body->>'payment_intent' = ${paymentIntentId}`}
      ${accountId === undefined ? sql`` : sql`and o.account_id = ${accountId}`}
    order by o.sequence limit ${PAGE_LIMIT}`;
  const charges = rows.map(fromRow);
  const last = charges.length === PAGE_LIMIT ? charges.at(-1) : undefined;
  return { charges, next: last?.sequence ?? null };
}

interface Row {
  readonly sequence: string;
  readonly account_id: string;
  readonly body: StripeObject;
  /** Number of requests to confirm the PaymentIntent, repeated and refused requests included. */
  readonly confirms: number;
}

function fromRow({ sequence, account_id: accountId, body, confirms }: Row) {
  return {
    sequence: Number(sequence),
    id: String(body['id']),
    accountId,
    paymentIntentId: String(body['payment_intent']),
    paymentMethodId: String(body['payment_method']),
    amountMinor: Number(body['amount']),
    currency: String(body['currency']),
    status: String(body['status']),
    code: body['failure_code'] as string | null,
    metadata: body['metadata'] as StripeObject,
    refundedMinor: Number(body['amount_refunded']),
    disputed: body['disputed'] === true,
    confirmCount: confirms,
  };
}

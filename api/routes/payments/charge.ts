import type { Db } from '../../../db/client.ts';
import { findIntent, withdrawPayment } from '../../../db/repositories/payments.ts';
import { DomainError } from '../../../domain/errors.ts';
import { idOfCommand } from '../../../domain/ids.ts';
import type { IntentRef, PaymentOutcome } from '../../../domain/payment-intent.ts';
import { ok } from '../../answers.ts';
import { callerOf } from '../../context.ts';
import type { Context } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { answerOutcome } from '../../idempotency.ts';
import { handOver } from './hand-over.ts';

/** The outcome of a merchant's charge. A pending charge gets its outcome later. Rule: D-40. */
export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

/** One kind of charge: one-time or tokenised. */
interface ChargeKind {
  /** Writes the intent inside a transaction. Called once for a command, whatever the outcome. */
  insert: (tx: Db, ref: IntentRef) => Promise<void>;
  /** The body of the answer. */
  present: (intentId: string, charged: Charged) => object;
}

/**
 * Answers with the outcome of a charge of a saved method. The intent's id is derived from the command id,
 * so all calls with one Idempotency-Key share one intent, which is charged once. A pending outcome is not
 * stored under the key: a repeat answers with the later outcome. Rules: D-17, D-40.
 */
export async function answerCharge(
  deps: ApiDeps,
  ctx: Context,
  { insert, present }: ChargeKind,
): Promise<void> {
  const { db } = deps;
  const merchantId = callerOf(ctx).id;
  await answerOutcome(deps, ctx, async ({ commandId, isRepeat, giveUp }) => {
    const ref = { merchantId, intentId: idOfCommand('in', commandId) };
    // An existing intent was validated when it was written. It is not validated again.
    const isWritten = isRepeat && (await findIntent(db, merchantId, ref.intentId)) !== null;
    if (!isWritten) await db.transaction((tx) => insert(tx, ref));
    const charged = await charge(deps, ref, giveUp);
    return { ...ok(present(ref.intentId, charged)), isDefinite: charged.kind !== 'pending' };
  });
}

/**
 * Charges the method that the intent names and waits for the outcome.
 *
 * @throws DomainError with the code and reason of a refusal; `service_unavailable` when the charge could
 * not be handed to its workflow. Rules: D-17, D-40.
 */
async function charge(
  { db, payments }: ApiDeps,
  ref: IntentRef,
  giveUp: AbortSignal | null,
): Promise<Charged> {
  const order = {
    give: () => payments.pay({ ...ref, token: null }),
    withdraw: () => withdrawPayment(db, ref),
  };
  const outcome = await handOver(order, giveUp);
  if (outcome.kind === 'refused') throw new DomainError(outcome.code, outcome.message);
  return outcome;
}

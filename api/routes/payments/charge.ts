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

/** What a merchant's charge came to. Pending: its intent tells later. Rule: D-40. */
export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

/** One kind of charge: how its intent is written, and how its outcome is told. */
interface ChargeKind {
  /** Inside a transaction; once for a command, whatever becomes of the charge. */
  insert: (tx: Db, ref: IntentRef) => Promise<void>;
  present: (intentId: string, charged: Charged) => object;
}

/**
 * Answers with the outcome of a charge of a saved method. The intent has the command's id, so every
 * call with one Idempotency-Key is about one intent, which is charged once. An undecided one is not
 * kept under the key: a repeat tells its outcome. Rules: D-17, D-40.
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
    // What is there was allowed when it was written: that is not asked again.
    const isThere = isRepeat && (await findIntent(db, merchantId, ref.intentId)) !== null;
    if (!isThere) await db.transaction((tx) => insert(tx, ref));
    const charged = await charge(deps, ref, giveUp);
    return { ...ok(present(ref.intentId, charged)), isDefinite: charged.kind !== 'pending' };
  });
}

/**
 * Charges the method that the intent names and waits for the outcome.
 *
 * @throws DomainError with the reason of a refusal; `service_unavailable` when the charge could not be
 * handed over. Rules: D-17, D-40.
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

import { findRefund, insertRefund, withdrawRefund } from '../../../db/repositories/refunds.ts';
import type { Refund } from '../../../db/repositories/refunds.ts';
import { DomainError, invariant } from '../../../domain/errors.ts';
import { idOfCommand } from '../../../domain/ids.ts';
import { notFound } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Fields } from '../../fields.ts';
import type { CommandCall } from '../../idempotency.ts';
import { handOver } from './hand-over.ts';
import type { RefundShape } from './schema.ts';

/**
 * Refunds a payment, fully or partly, and waits for the outcome. A repeat of the command returns the same
 * refund.
 *
 * @throws DomainError with the code and reason of a refusal. `payment_outcome_pending`: the refund is not
 * decided yet. `service_unavailable`: the refund could not be handed to its workflow. Rules: D-17, D-§7.
 */
export async function refundIntent(
  deps: ApiDeps,
  merchantId: string,
  body: Fields<typeof RefundShape>,
  { commandId, giveUp }: CommandCall,
): Promise<Refund> {
  const { db, payments, now } = deps;
  const ref = { merchantId, refundId: idOfCommand('rf', commandId) };
  const inserted = await db.transaction((tx) =>
    insertRefund(tx, {
      ...ref,
      intentId: body.xIntentId,
      amountMinor: body.amount ?? null,
      nowAt: now(),
    }),
  );
  if (inserted.kind === 'refused') {
    if (inserted.code === 'resource_not_found') throw notFound('payment intent');
    throw new DomainError(inserted.code, inserted.message);
  }
  const order = { give: () => payments.refund(ref), withdraw: () => withdrawRefund(db, ref) };
  const outcome = await handOver(order, giveUp);
  if (outcome.kind === 'pending') throw new DomainError('payment_outcome_pending');
  if (outcome.kind === 'refused') throw new DomainError('operation_not_allowed', outcome.message);
  const refund = await findRefund(db, merchantId, ref.refundId);
  invariant(refund, 'the refund exists after its insert');
  return refund;
}

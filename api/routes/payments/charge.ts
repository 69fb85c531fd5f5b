import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findIntent, withdrawPayment } from '../../../db/repositories/payments/orders.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import { DomainError, ERRORS } from '../../../domain/errors.ts';
import type { IntentRef, PaymentOutcome } from '../../../domain/payment-intent.ts';
import { declineCode, declineMessage, id } from '../../answer-fields.ts';
import type { Answer } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Shape } from '../../fields.ts';
import { gatewayAmountProblems } from '../../amounts.ts';
import type { chargeFields } from '../../payment-fields.ts';
import type { Call } from '../../route.ts';
import { withOrder } from './hand-over.ts';
import { chargeStatus } from './intent.ts';

const chargeError = z
  .union([declineCode, z.literal('payment_outcome_pending')])
  .meta({ description: 'Why the charge has not succeeded.' });

export const OneTimeCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError.nullable().meta({ description: 'Null on success.' }),
  errorMessage: declineMessage.nullable().meta({ description: 'Null on success.' }),
});

export const TokenisedCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError
    .optional()
    .meta({ description: 'Present only when the charge has not succeeded.' }),
});

export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

export function presentCharge(intentId: string, charged: Charged): z.input<typeof OneTimeCharge> {
  switch (charged.kind) {
    case 'succeeded':
      return { intentId, status: 'SUCCESS', errorCode: null, errorMessage: null };
    case 'declined': {
      const { errorCode } = charged;
      return { intentId, status: 'FAILED', errorCode, errorMessage: messageOf(errorCode) };
    }
    case 'pending': {
      const errorCode = 'payment_outcome_pending';
      return { intentId, status: 'PENDING', errorCode, errorMessage: ERRORS[errorCode].message };
    }
  }
}

type ChargeCall = Call<string, Shape, typeof chargeFields>;

interface ChargeKind<Body> {
  /** Writes the intent inside a transaction. Not called again if the intent exists. */
  readonly insert: (tx: Db, ref: IntentRef) => Promise<void>;
  readonly answer: (intentId: string, charged: Charged) => Answer<Body>;
}

/**
 * Charges a saved method and answers with the outcome. All calls with one Idempotency-Key have the same intent, which
 * is charged once. A pending outcome is not stored under the key.
 */
export async function withCharge<Body>(
  call: ChargeCall,
  deps: ApiDeps,
  { insert, answer }: ChargeKind<Body>,
): Promise<Answer<Body>> {
  const { db, orders } = deps;
  const { amount, currency } = call.body;
  const refOf = (intentId: string) => ({ merchantId: call.merchant.id, intentId });
  return withOrder(call, deps, {
    prefix: 'in',
    problems: await gatewayAmountProblems(deps, call.merchant.id, { amount }, currency),
    isWritten: async (intentId) => (await findIntent(db, call.merchant.id, intentId)) !== null,
    write: (tx, intentId) => insert(tx, refOf(intentId)),
    give: (intentId) => orders.execute('payment', { ...refOf(intentId), token: null }),
    withdraw: (intentId) => withdrawPayment(db, refOf(intentId)),
    answer: (intentId, outcome) => {
      if (outcome.kind === 'refused') throw new DomainError(outcome.code, outcome.message);
      const { kind } = outcome;
      const flags = { isDefinite: kind !== 'pending', isDeclined: kind === 'declined' };
      return { ...answer(intentId, outcome), ...flags };
    },
  });
}

import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findIntent, withdrawPayment } from '../../../db/repositories/payments/orders.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import { DomainError, ERRORS } from '../../../domain/errors.ts';
import { idOfCommand } from '../../../domain/ids.ts';
import type { IntentRef, PaymentOutcome } from '../../../domain/payment-intent.ts';
import { declineCode, declineMessage, id } from '../../answer-fields.ts';
import type { Answer } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import { refuseProblems } from '../../fields.ts';
import type { Shape } from '../../fields.ts';
import { gatewayAmountProblems } from '../../gateway-amounts.ts';
import { withOutcome } from '../../idempotency.ts';
import type { chargeFields } from '../../payment-fields.ts';
import type { Call } from '../../route.ts';
import { handOver } from './hand-over.ts';
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

/** The outcome of a merchant's charge. `pending`: the outcome is not known yet. */
export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

/** Returns the answer, whose error fields are null only on success. */
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

/** One kind of charge: one-time or tokenised. */
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
  const { db } = deps;
  const { amount, currency } = call.body;
  const problems = await gatewayAmountProblems(deps, call.merchant.id, { amount }, currency);
  return withOutcome(
    call,
    deps,
    async ({ commandId, isRepeat, giveUp }) => {
      const ref = { merchantId: call.merchant.id, intentId: idOfCommand('in', commandId) };
      // If an earlier call has written the intent, this call neither validates the request again nor writes the intent
      // again.
      const isWritten = isRepeat && (await findIntent(db, ref.merchantId, ref.intentId)) !== null;
      if (!isWritten) {
        refuseProblems(problems);
        await db.transaction((tx) => insert(tx, ref));
      }
      const charged = await charge(deps, ref, giveUp);
      const { kind } = charged;
      const isDefinite = kind !== 'pending';
      return { ...answer(ref.intentId, charged), isDefinite, isDeclined: kind === 'declined' };
    },
    'in',
  );
}

/**
 * Charges the intent's payment method and waits for the outcome.
 *
 * @throws DomainError with the code and reason of a refusal; `service_unavailable` if the charge's workflow
 * could not be started.
 */
async function charge(
  { db, orders }: ApiDeps,
  ref: IntentRef,
  giveUp: AbortSignal | null,
): Promise<Charged> {
  const order = {
    give: () => orders.execute('payment', { ...ref, token: null }),
    withdraw: () => withdrawPayment(db, ref),
  };
  const outcome = await handOver(order, giveUp);
  if (outcome.kind === 'refused') throw new DomainError(outcome.code, outcome.message);
  return outcome;
}

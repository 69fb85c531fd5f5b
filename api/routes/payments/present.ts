import type { Attempt } from '../../../db/repositories/attempts.ts';
import type { IntentRecord } from '../../../db/repositories/payments-read.ts';
import type { Refund } from '../../../db/repositories/refunds.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { declineMessage, isDeclineCode } from '../../../domain/declines.ts';
import { ERRORS } from '../../../domain/errors.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import type { AttemptState } from '../../../domain/payment-intent.ts';
import type { Charged } from './charge.ts';

/** An intent of any kind. A field without a value is omitted. Rules: D-§7, D-10a. */
export function presentIntent({ intent, order, attempts }: IntentRecord, nowAt: number) {
  const succeeded = attempts.find(({ state }) => state === 'SUCCEEDED');
  const optional = {
    receiptId: intent.receiptId,
    description: intent.description ?? order?.description ?? null,
    callbackUrl: intent.callbackUrl ?? order?.callbackUrl ?? null,
    cancelUrl: intent.cancelUrl ?? order?.cancelUrl ?? null,
    succeededAt: intent.succeededAt,
    subscriptionId: intent.subscriptionId,
    metadata: intent.metadata,
    succeededCharge: succeeded === undefined ? null : presentAttempt(succeeded),
  };
  return {
    xIntentId: intent.id,
    amount: intent.amountMinor,
    currency: intent.currency,
    presentmentCurrency: intent.presentmentCurrency,
    customerDetails: intent.customerDetails,
    createdAt: formatInstant(intent.createdAt),
    status: intentStatusAt(intent, nowAt),
    ...withoutNulls(optional),
    chargeAttempts: attempts.map(presentAttempt),
  };
}

const ATTEMPT_STATUS: Readonly<Record<AttemptState, 'PENDING' | 'SUCCESS' | 'FAILED'>> = {
  CREATED: 'PENDING',
  SENDING: 'PENDING',
  UNKNOWN: 'PENDING',
  REVIEW: 'PENDING',
  SUCCEEDED: 'SUCCESS',
  DECLINED: 'FAILED',
};

function presentAttempt({ attemptNumber, state, errorCode, createdAt }: Attempt) {
  return {
    attempt: attemptNumber,
    status: ATTEMPT_STATUS[state],
    ...withoutNulls({ errorCode, errorMessage: messageOf(errorCode) }),
    createdAt: formatInstant(createdAt),
  };
}

function withoutNulls<T extends object>(fields: T): Partial<T> {
  // Only fields of T are left, so the cast is safe.
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null),
  ) as Partial<T>;
}

function messageOf(errorCode: string | null): string | null {
  return isDeclineCode(errorCode) ? declineMessage(errorCode) : null;
}

/** `errorCode` and `errorMessage` are null only on success. Rules: IF-4.10, D-10a, D-40, D-42. */
export function presentOneTimeCharge(intentId: string, charged: Charged) {
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

/** `errorCode` is present only when the charge has not succeeded. Rules: IF-4.12, D-40. */
export function presentTokenisedCharge(id: string, charged: Charged) {
  const { intentId, status, errorCode } = presentOneTimeCharge(id, charged);
  return { intentId, status, ...(errorCode === null ? {} : { errorCode }) };
}

/** Rule: D-§7. */
export function presentRefund({ id, intentId, amountMinor, currency, refundedAt }: Refund) {
  return { refundId: id, intentId, amount: amountMinor, currency, refundedAt };
}

import { z } from 'zod';
import { INTENT_STATUSES } from '../../../domain/payment-intent.ts';
import {
  count,
  currencyCode,
  dateTime,
  declineCode,
  declineMessage,
  epochMs,
  EXTENSION,
  id,
  minorAmount,
  pairs,
  url,
} from '../../openapi/answer-fields.ts';
import { customerDetails } from '../customers/schema.ts';

const chargeStatus = z.enum(['SUCCESS', 'FAILED', 'PENDING']).meta({
  description:
    'PENDING: not decided within 25 seconds. Repeat the call with its key, or wait for the event.',
});

const chargeError = z
  .union([declineCode, z.literal('payment_outcome_pending')])
  .meta({ description: 'Why the charge has not succeeded.' });

/** Rule: IF-4.10. */
export const OneTimeCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError.nullable().meta({ description: 'Null on success.' }),
  errorMessage: declineMessage.nullable().meta({ description: 'Null on success.' }),
});

/** Rule: IF-4.12. */
export const TokenisedCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError
    .optional()
    .meta({ description: 'Present only when the charge has not succeeded.' }),
});

const Attempt = z
  .object({
    attempt: count('Number of the attempt, from 1.'),
    status: chargeStatus,
    errorCode: declineCode.optional(),
    errorMessage: declineMessage.optional(),
    createdAt: dateTime('When the attempt was started.'),
  })
  .meta({ id: 'ChargeAttempt', ...EXTENSION });

const intentFields = {
  xIntentId: id('in', 'payment intent'),
  amount: minorAmount('Amount owed.'),
  currency: currencyCode,
  presentmentCurrency: currencyCode,
  receiptId: z.string().optional(),
  customerDetails,
  description: z.string().optional(),
  callbackUrl: url('Where the payer’s browser goes afterwards.').optional(),
  cancelUrl: url('Where the payer’s browser goes when the payer cancels.').optional(),
  createdAt: dateTime('When the intent was created.'),
  status: z.enum(INTENT_STATUSES).meta({
    description:
      'PENDING: an attempt is undecided. FAILED may become SUCCESS by a later attempt. CANCELLED and ' +
      'REFUNDED are final.',
  }),
  succeededAt: epochMs('When the intent was paid.').optional(),
  subscriptionId: id('sub', 'subscription that the intent belongs to').optional(),
  metadata: pairs.optional(),
  chargeAttempts: z.array(Attempt).meta({ description: 'Oldest first.' }),
  succeededCharge: Attempt.optional(),
};

/** Rules: IF-2.4, D-§7. */
export const Intent = z.object(intentFields).meta({ id: 'PaymentIntent', ...EXTENSION });

export const CreatedIntent = z
  .object({ ...intentFields, fwdUrl: url('Where to send the payer to pay.') })
  .meta({ id: 'CreatedPaymentIntent', ...EXTENSION });

export const Refund = z.object({
  refundId: id('rf', 'refund'),
  intentId: id('in', 'payment intent'),
  amount: minorAmount('Amount refunded.'),
  currency: currencyCode,
  refundedAt: epochMs('When the refund was made.'),
});

export const INTENT_ID = 'in_0002sSOLuRz8kF5dGhJ3lMnB';

export const exampleIntent = {
  xIntentId: INTENT_ID,
  amount: 4_900,
  currency: 'USD',
  presentmentCurrency: 'USD',
  receiptId: 'order-1001',
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  description: 'A teapot',
  callbackUrl: 'https://merchant.example/thanks',
  createdAt: '2026-11-20T12:00:00.000Z',
  status: 'CREATED',
  chargeAttempts: [],
};

const attempt = { attempt: 1, status: 'SUCCESS', createdAt: '2026-11-20T12:01:00.000Z' };

export const examplePaidIntent = {
  ...exampleIntent,
  status: 'SUCCESS',
  succeededAt: 1_795_176_061_000,
  chargeAttempts: [attempt],
  succeededCharge: attempt,
};

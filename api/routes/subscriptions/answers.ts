import { z } from 'zod';
import { INTERVAL_UNITS } from '../../../domain/calendar.ts';
import { END_REASONS, SUBSCRIPTION_STATUSES } from '../../../domain/subscription/state.ts';
import {
  cardMetadata,
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
  paymentMethodKind,
  url,
} from '../../openapi/answer-fields.ts';

const interval = z.enum(INTERVAL_UNITS);

/** Rules: IF-2.3, D-34. */
export const Subscription = z
  .object({
    subscriptionId: id('sub', 'subscription'),
    customerId: id('cus', 'customer').meta(EXTENSION),
    interval,
    intervalCount: count('Number of intervals between two billings.'),
    cycleCount: count('Total number of billing cycles, including the first.'),
    remainingCycleCount: count('Number of billing cycles that are not paid yet.'),
    currency: currencyCode,
    amount: minorAmount('Amount of each cycle.'),
    presentmentCurrency: currencyCode,
    createdAt: dateTime('When it was created: real time, or the time of its test clock.'),
    status: z.enum(SUBSCRIPTION_STATUSES),
    nextPaymentDate: epochMs(
      'In TRIALING the end of the trial, in ACTIVE the next due date, in UNPAID the next automatic ' +
        'attempt. Else null.',
    )
      .nullable()
      .meta(EXTENSION),
    currentPeriodEnd: epochMs('Until when the payer has paid, or null.').nullable().meta(EXTENSION),
    endReason: z
      .enum(END_REASONS)
      .optional()
      .meta({ description: 'Only when ENDED.', ...EXTENSION }),
    description: z.string().optional(),
    upfrontAmount: minorAmount('Amount of the first cycle, instead of `amount`.').optional(),
    trialPeriodCount: count('Number of trial periods before the first cycle.').optional(),
    trialPeriodInterval: interval.optional(),
    metadata: pairs.optional(),
    updatePaymentMethodLink: url(
      'Page where the payer replaces the payment method. The link works for 30 days. Present only in ' +
        'TRIALING, ACTIVE and UNPAID.',
    ).optional(),
    paymentMetadata: z
      .object({ paymentMethod: paymentMethodKind, cardMetadata: cardMetadata.optional() })
      .optional()
      .meta({ description: 'The payment method. Absent while CREATED.' }),
  })
  .meta({ id: 'Subscription' });

export const CreatedSubscription = z.object({
  subscriptionId: id('sub', 'subscription'),
  createdAt: dateTime('When it was created.'),
  fwdUrl: url('Where to send the payer to pay.'),
});

/** Rule: IF-4.9. */
export const ManualRetry = z.object({
  success: z.boolean().meta({ description: 'Whether the payment succeeded.' }),
  minManualRetryDate: dateTime(
    'Earliest time of the next manual retry. Null once ENDED.',
  ).nullable(),
  status: z.enum(['ACTIVE', 'UNPAID', 'ENDED']).meta({
    description: 'Status after the attempt. ENDED when the attempt paid the last remaining cycle.',
  }),
  errorCode: declineCode.nullable(),
  errorMessage: declineMessage.nullable(),
});

export const Upcoming = z.object({
  data: z
    .array(
      z.object({
        date: epochMs(
          'When the charge is due. Null for an owed cycle without a planned attempt.',
        ).nullable(),
        cycleNumber: count('Number of the cycle, from 1.'),
        amount: minorAmount('Amount that will be charged.'),
        currency: currencyCode,
      }),
    )
    .meta({ description: 'Earliest first.' }),
});

export const Timeline = z.object({
  data: z
    .array(
      z.object({
        date: epochMs('When it happened.'),
        what: z.string(),
        why: z.string(),
      }),
    )
    .meta({ description: 'Oldest first. Contains only the latest entries.' }),
});

export const SUBSCRIPTION_ID = 'sub_0002sSOLuQx1oB9bUeVtYw3c';

export const exampleSubscription = {
  subscriptionId: SUBSCRIPTION_ID,
  customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  remainingCycleCount: 11,
  currency: 'USD',
  amount: 1_999,
  presentmentCurrency: 'USD',
  createdAt: '2026-11-20T12:00:00.000Z',
  status: 'ACTIVE',
  nextPaymentDate: 1_797_768_060_000,
  currentPeriodEnd: 1_797_768_060_000,
  description: 'Tea of the month',
  metadata: { plan: 'oolong' },
  updatePaymentMethodLink: 'https://pay.example/update-method/eyJ2IjoxfQ.c2lnbmF0dXJl',
  paymentMetadata: {
    paymentMethod: 'CARD',
    cardMetadata: {
      brand: 'visa',
      country: 'US',
      lastFourDigit: '4242',
      expiryMonth: 12,
      expiryYear: 2030,
    },
  },
};

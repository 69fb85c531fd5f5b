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
    intervalCount: count('Intervals between two billings.'),
    cycleCount: count('Billing cycles in all; the first counts.'),
    remainingCycleCount: count('Billing cycles that are not paid yet.'),
    currency: currencyCode,
    amount: minorAmount('What each cycle costs.'),
    presentmentCurrency: currencyCode,
    createdAt: dateTime('When it was created, by its own time.'),
    status: z.enum(SUBSCRIPTION_STATUSES),
    nextPaymentDate: epochMs(
      'The end of the trial in TRIALING, the next due date in ACTIVE, the next automatic attempt in ' +
        'UNPAID; else null.',
    )
      .nullable()
      .meta(EXTENSION),
    currentPeriodEnd: epochMs('Up to when the payer has paid, or null.').nullable().meta(EXTENSION),
    endReason: z
      .enum(END_REASONS)
      .optional()
      .meta({ description: 'Only when ENDED.', ...EXTENSION }),
    description: z.string().optional(),
    upfrontAmount: minorAmount('What the first cycle costs instead.').optional(),
    trialPeriodCount: count('Trial periods before the first cycle.').optional(),
    trialPeriodInterval: interval.optional(),
    metadata: pairs.optional(),
    updatePaymentMethodLink: url(
      'Page on which the payer gives another payment method; works for 30 days. Only in TRIALING, ' +
        'ACTIVE and UNPAID.',
    ).optional(),
    paymentMetadata: z
      .object({ paymentMethod: paymentMethodKind, cardMetadata: cardMetadata.optional() })
      .optional()
      .meta({ description: 'How it is paid; not while CREATED.' }),
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
    'Earliest time of the next manual retry; null once ENDED.',
  ).nullable(),
  status: z.enum(['ACTIVE', 'UNPAID', 'ENDED']).meta({
    description: 'Status after the attempt; ENDED when it paid the last remaining cycle.',
  }),
  errorCode: declineCode.nullable(),
  errorMessage: declineMessage.nullable(),
});

export const Upcoming = z.object({
  data: z
    .array(
      z.object({
        date: epochMs(
          'When it is due; null for an owed cycle that nothing is planned for.',
        ).nullable(),
        cycleNumber: count('Which cycle, from 1.'),
        amount: minorAmount('What will be charged.'),
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
    .meta({ description: 'Oldest first; the latest entries only.' }),
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

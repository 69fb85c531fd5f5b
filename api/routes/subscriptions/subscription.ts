import { z } from 'zod';
import type { SubscriptionView } from '../../../db/repositories/subscriptions/read.ts';
import { formatInstant, INTERVAL_UNITS } from '../../../domain/calendar.ts';
import {
  cancelAt,
  END_REASONS,
  nextPaymentAt,
  remainingCycleCount,
  resumeAt,
  SUBSCRIPTION_STATUSES,
  takesNewMethod,
} from '../../../domain/subscription/state.ts';
import {
  count,
  currencyCode,
  dateTime,
  epochMs,
  EXTENSION,
  id,
  minorAmount,
  pairs,
  url,
} from '../../answer-fields.ts';
import { withoutNulls } from '../../answers.ts';
import { cardFields, exampleCard, presentCard } from '../../card.ts';
import type { ApiDeps } from '../../deps.ts';
import { updateMethodLink } from '../../../runtime/payer-links.ts';

const interval = z.enum(INTERVAL_UNITS);

export const SubscriptionAnswer = z
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
    createdAt: dateTime(
      'When the subscription was created: real time, or the time of its test clock.',
    ),
    status: z.enum(SUBSCRIPTION_STATUSES),
    nextPaymentDate: epochMs(
      'The next automatic retry of a declined cycle, if one is planned. Else in TRIALING the end of the trial, and ' +
        'in ACTIVE the next due date. Null in the other cases, and after a cancellation at the end of the period.',
    )
      .nullable()
      .meta(EXTENSION),
    currentPeriodEnd: epochMs(
      'End of the trial, then of the period that the payer has paid. Null before both.',
    )
      .nullable()
      .meta(EXTENSION),
    cancelAt: epochMs('When the subscription ends after a cancellation at the end of its period.')
      .optional()
      .meta(EXTENSION),
    resumeAt: epochMs('When the pause ends without an unpause.').optional().meta(EXTENSION),
    endReason: z
      .enum(END_REASONS)
      .optional()
      .meta({ description: 'Only when ENDED.', ...EXTENSION }),
    description: z.string().optional(),
    upfrontAmount: minorAmount('Amount of the first cycle, instead of `amount`.').optional(),
    trialPeriodCount: count('Number of trial periods before the first cycle.').optional(),
    trialPeriodInterval: interval.optional(),
    metadata: pairs.optional(),
    receiptId: z
      .string()
      .optional()
      .meta({ description: 'Your own order id.', ...EXTENSION }),
    testClockId: id('clk', 'test clock').optional().meta(EXTENSION),
    updatePaymentMethodLink: url(
      'Page where the payer replaces the payment method, or confirms a payment with the bank. The link ' +
        'works for 30 days. Present only in TRIALING, ACTIVE and UNPAID.',
    ).optional(),
    paymentMetadata: z
      .object({ ...cardFields, cardMetadata: cardFields.cardMetadata.optional() })
      .optional()
      .meta({ description: 'The payment method. Absent while CREATED.' }),
  })
  .meta({ id: 'Subscription' });

type Deps = Pick<ApiDeps, 'publicUrl' | 'sessionKey' | 'now'>;

/**
 * Returns the fields of the answer. Fields without a value are omitted; only `nextPaymentDate` and
 * `currentPeriodEnd` may be null.
 */
export function presentSubscription(deps: Deps, view: SubscriptionView) {
  const { state } = view;
  const { terms } = state;
  return {
    subscriptionId: view.id,
    customerId: view.customerId,
    interval: terms.interval,
    intervalCount: terms.intervalCount,
    cycleCount: terms.cycleCount,
    remainingCycleCount: remainingCycleCount(state),
    currency: terms.currency,
    amount: terms.amountMinor,
    presentmentCurrency: view.presentmentCurrency,
    createdAt: formatInstant(view.createdAt),
    status: view.status,
    nextPaymentDate: nextPaymentAt(state),
    currentPeriodEnd: state.currentPeriodEndAt,
    ...withoutNulls({
      cancelAt: cancelAt(state),
      resumeAt: resumeAt(state),
      endReason: state.endReason,
      description: view.description,
      upfrontAmount: terms.upfrontAmountMinor,
      trialPeriodCount: terms.trial?.count ?? null,
      trialPeriodInterval: terms.trial?.interval ?? null,
      metadata: view.metadata,
      receiptId: view.receiptId,
      testClockId: view.testClockId,
    }),
    ...updatePaymentMethodLink(deps, view),
    ...paymentMetadata(view),
  };
}

/** Returns no field in a status that does not allow a new payment method. */
function updatePaymentMethodLink(deps: Deps, { status, state }: SubscriptionView) {
  if (!takesNewMethod(status)) return {};
  return { updatePaymentMethodLink: updateMethodLink(deps, state, deps.now()) };
}

function paymentMetadata({ status, paymentMethod }: SubscriptionView) {
  if (status === 'CREATED' || paymentMethod === null) return {};
  return { paymentMetadata: presentCard(paymentMethod) };
}

export const SUBSCRIPTION_ID = 'sub_0002sSOLuQx1oB9bUeVtYw3c';

export const subscriptionIdParam = {
  description: 'Id of a subscription.',
  example: SUBSCRIPTION_ID,
};

export const exampleSubscription = {
  subscriptionId: SUBSCRIPTION_ID,
  customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
  interval: 'MONTH' as const,
  intervalCount: 1,
  cycleCount: 12,
  remainingCycleCount: 11,
  currency: 'USD',
  amount: 1_999,
  presentmentCurrency: 'USD',
  createdAt: '2026-11-20T12:00:00.000Z',
  status: 'ACTIVE' as const,
  nextPaymentDate: 1_797_768_060_000,
  currentPeriodEnd: 1_797_768_060_000,
  description: 'Tea of the month',
  metadata: { plan: 'oolong' },
  updatePaymentMethodLink: 'https://pay.example/update-method/eyJ2IjoxfQ.c2lnbmF0dXJl',
  paymentMetadata: exampleCard,
};

import type { SubscriptionView } from '../../../db/repositories/subscriptions-read.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { declineMessage, isDeclineCode } from '../../../domain/declines.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { nextPaymentAt, remainingCycleCount } from '../../../domain/subscription/state.ts';
import type { LogEntry } from '../../../domain/subscription/state.ts';
import type { UpcomingCharge } from '../../../domain/subscription/upcoming.ts';
import { presentCard } from '../../present-card.ts';
import type { ApiDeps } from '../../deps.ts';
import { updateMethodLink } from '../../pages/update-method/link.ts';

type Deps = Pick<ApiDeps, 'publicUrl' | 'sessionKey' | 'now'>;

/**
 * The answer of the read operation. A field without a value is omitted, except `nextPaymentDate` and
 * `currentPeriodEnd`, which are null. Rules: IF-2.3, D-10a, D-33, D-34.
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
    ...(state.endReason === null ? {} : { endReason: state.endReason }),
    ...(view.description === null ? {} : { description: view.description }),
    ...(terms.upfrontAmountMinor === null ? {} : { upfrontAmount: terms.upfrontAmountMinor }),
    ...(terms.trial === null
      ? {}
      : {
          trialPeriodCount: terms.trial.count,
          trialPeriodInterval: terms.trial.interval,
        }),
    ...(view.metadata === null ? {} : { metadata: view.metadata }),
    ...updatePaymentMethodLink(deps, view),
    ...paymentMetadata(view),
  };
}

/** Only in the statuses that allow a new payment method. Rules: IF-2.3, D-33. */
function updatePaymentMethodLink(deps: Deps, { status, state }: SubscriptionView) {
  if (status !== 'TRIALING' && status !== 'ACTIVE' && status !== 'UNPAID') return {};
  return { updatePaymentMethodLink: updateMethodLink(deps, state, deps.now()) };
}

function paymentMetadata({ status, paymentMethod }: SubscriptionView) {
  if (status === 'CREATED' || paymentMethod === null) return {};
  return { paymentMetadata: presentCard(paymentMethod) };
}

/** The outcome of a manual retry. Rules: IF-4.9, D-31, D-10a, D-42. */
export function presentManualRetry(result: CommandResult) {
  if (result.kind !== 'manualRetry') throw new Error(`not a retry's result: ${result.kind}`);
  const { success, minManualRetryAt, status, errorCode } = result;
  return {
    success,
    minManualRetryDate: minManualRetryAt === null ? null : formatInstant(minManualRetryAt),
    status,
    errorCode,
    errorMessage: isDeclineCode(errorCode) ? declineMessage(errorCode) : null,
  };
}

/** Earliest first. `date` is null for an owed cycle without a planned attempt. Rule: D-§7. */
export function presentUpcoming(charges: readonly UpcomingCharge[]) {
  return {
    data: charges.map(({ at, cycleNumber, amountMinor, currency }) => ({
      date: at,
      cycleNumber,
      amount: amountMinor,
      currency,
    })),
  };
}

/** Oldest first. Rule: D-§7. */
export function presentTimeline(log: readonly LogEntry[]) {
  return { data: log.map(({ at, what, why }) => ({ date: at, what, why })) };
}

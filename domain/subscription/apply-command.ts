import { addTrial, firstIndexAfter, formatInstant } from '../calendar.ts';
import { AUTOMATIC_ATTEMPTS_MAX, MANUAL_RETRY_COOLDOWN_MS } from '../retry-plan.ts';
import { changed, orderOf } from './change.ts';
import type { Cause, Change } from './change.ts';
import type { CancelCommand, Command, EditCommand, PauseCommand } from './commands.ts';
import { attemptPatch } from './apply-attempt.ts';
import { awaitsPayer, isSuperseded } from './authentication.ts';
import { cancelAt, chargesNewMethod, earliestAttemptAt, isInTrial } from './state.ts';
import type { EndReason, OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';

/** The transitions. All are pure. The caller has checked the command with `validateCommand`. */

/** Voids the open attempt. Only the void of a cancellation can be undone, by a `resume`. */
function voided(
  attempt: OpenAttempt | null,
  by: NonNullable<OpenAttempt['voidedBy']>,
): OpenAttempt | null {
  return attempt && { ...attempt, voidedBy: by === 'cancel' ? (attempt.voidedBy ?? by) : by };
}

export function applyEdit(state: SubscriptionState, command: EditCommand, now: number): Change {
  const terms = {
    ...state.terms,
    amountMinor: command.newAmountMinor ?? state.terms.amountMinor,
    cycleCount: command.newCycleCount ?? state.terms.cycleCount,
    interval: command.interval ?? state.terms.interval,
    intervalCount: command.intervalCount ?? state.terms.intervalCount,
  };
  const moved = command.newNextPaymentAt;
  return changed(
    state,
    {
      terms,
      ...(moved === undefined ? {} : { anchorAt: moved, nextIndex: 0 }),
      ...(moved !== undefined && isInTrial(state) ? { currentPeriodEndAt: moved } : {}),
      owed: moved === undefined ? state.owed : owedMovedTo(state, moved),
    },
    { at: now, what: `edited: ${editedFields(command)}`, ...orderOf(command) },
  );
}

/** The edited date `at` replaces the rest of the retry plan in UNPAID, else only a planned retry. */
function owedMovedTo(state: SubscriptionState, at: number): OwedCycle | null {
  const { owed } = state;
  if (!owed) return owed;
  if (state.status !== 'UNPAID' && owed.nextRetryAt === null) return owed;
  return { ...owed, nextRetryAt: at, retriesUsed: owed.retryPlan?.delaysMs.length ?? 0 };
}

function editedFields(command: EditCommand): string {
  const fields = [
    command.newAmountMinor !== undefined && `amount ${command.newAmountMinor}`,
    command.newCycleCount !== undefined && `cycles ${command.newCycleCount}`,
    command.interval !== undefined && `every ${command.intervalCount} ${command.interval}`,
    command.newNextPaymentAt !== undefined &&
      `next payment ${formatInstant(command.newNextPaymentAt)}`,
  ];
  return fields.filter((field) => field !== false).join(', ');
}

export function applyCancel(state: SubscriptionState, command: CancelCommand, now: number): Change {
  if (command.atPeriodEnd !== true) return end(state, command.reason, now, orderOf(command));
  const openAttempt = voided(state.openAttempt, 'cancel');
  const endAt = cancelAt({ ...state, cancelAtPeriodEnd: true }) ?? now;
  const entry = { at: now, what: `cancelled at ${formatInstant(endAt)}`, ...orderOf(command) };
  return changed(state, { cancelAtPeriodEnd: true, openAttempt }, entry);
}

/**
 * Withdraws a cancellation for the end of the period. Of the calendar's dates that have passed, one is charged. If
 * the owed cycle's retries are stopped, it waits in UNPAID for another payment method.
 */
export function applyResume(state: SubscriptionState, command: Command, now: number): Change {
  const status = state.owed?.retriesStopped === true ? 'UNPAID' : state.status;
  const entry = { at: now, what: 'cancellation withdrawn', ...orderOf(command) };
  const nextIndex = indexAfterResume(state, now);
  const { openAttempt: open } = state;
  const openAttempt = open?.voidedBy === 'cancel' ? { ...open, voidedBy: null } : open;
  const patch = { status, cancelAtPeriodEnd: false, nextIndex, openAttempt };
  return changed(state, patch, entry);
}

/** The latest date that has passed, so that earlier ones are not billed; with an open attempt, the next date. */
function indexAfterResume(state: SubscriptionState, now: number): number {
  const { anchorAt, terms, nextIndex, openAttempt } = state;
  if (anchorAt === null) return nextIndex;
  const after = firstIndexAfter(anchorAt, terms.interval, terms.intervalCount, now);
  return Math.max(nextIndex, openAttempt ? after : after - 1);
}

export function applyPeriodEnd(state: SubscriptionState, now: number): Change {
  const why = 'it was cancelled at the end of its period';
  return end(state, 'cancelled', now, { why, actor: 'schedule' });
}

export function applyCheckoutExpiry(state: SubscriptionState, now: number): Change {
  const why = 'the checkout expired without a payment';
  return end(state, 'checkout_expired', now, { why, actor: 'schedule' });
}

function end(state: SubscriptionState, reason: EndReason, now: number, cause: Cause): Change {
  // A subscription that ends before its first payment cancels its first intent. If an attempt is open, the
  // intent stays, because the attempt's outcome must still be recorded.
  const isUnpaid = state.status === 'CREATED' && !state.openAttempt;
  return changed(
    state,
    {
      status: 'ENDED',
      endReason: reason,
      cooldownUntilAt: null,
      openAttempt: voided(state.openAttempt, 'cancel'),
    },
    { at: now, what: `ended (${reason})`, ...cause },
    {
      ...(isUnpaid && { releasesLinkUse: true }),
      ...(isUnpaid && state.owed && { cancelledIntentId: state.owed.intentId }),
    },
  );
}

export function applyPause(state: SubscriptionState, command: PauseCommand, now: number): Change {
  const { resumeAt } = command;
  const owed = state.owed && { ...state.owed, nextRetryAt: null };
  // Stays after an unpause, which sets a new date for the charge.
  const openAttempt = voided(state.openAttempt, 'pause');
  const until = resumeAt === undefined ? '' : ` until ${formatInstant(resumeAt)}`;
  const patch = { status: 'PAUSED', owed, openAttempt, resumeAt: resumeAt ?? null } as const;
  return changed(state, patch, { at: now, what: `paused${until}`, ...orderOf(command) });
}

/**
 * Makes `newNextPaymentAt` the anchor and the date of the owed cycle, else of the next. If the owed cycle's retries
 * are stopped, it waits in UNPAID for another payment method.
 */
export function applyUnpause(
  state: SubscriptionState,
  { newNextPaymentAt }: { newNextPaymentAt: number },
  now: number,
  cause: Cause,
): Change {
  const isStopped = state.owed?.retriesStopped === true;
  // If the open attempt is declined or voided later, its cycle is charged at `newNextPaymentAt`.
  const owed =
    state.owed && state.openAttempt && !isStopped
      ? { ...state.owed, nextRetryAt: newNextPaymentAt, retriesUsed: 0 }
      : state.owed;
  const date = formatInstant(newNextPaymentAt);
  return changed(
    state,
    {
      status: isStopped ? 'UNPAID' : 'ACTIVE',
      anchorAt: newNextPaymentAt,
      nextIndex: 0,
      owed,
      resumeAt: null,
    },
    {
      at: now,
      what: isStopped
        ? `resumed, calendar from ${date}; the card must be replaced first`
        : `resumed, next payment ${date}`,
      ...cause,
    },
  );
}

export function applyManualRetry(
  state: SubscriptionState,
  command: Command,
  now: number,
  realNow: number,
): Change {
  const { commandId, actor } = command;
  const patch = attemptPatch(state, { trigger: 'manual_retry', commandId, actor, now, realNow });
  return changed(
    state,
    { ...patch, cooldownUntilAt: now + MANUAL_RETRY_COOLDOWN_MS },
    { at: now, what: 'manual retry accepted', ...orderOf(command) },
  );
}

/** Opens the attempt that the payer confirms with the bank. The retry plan does not change. */
export function applyAuthentication(
  state: SubscriptionState,
  { commandId, checkoutSessionId: sessionId }: { commandId: string; checkoutSessionId: string },
  now: number,
  realNow: number,
): Change {
  const start = { trigger: 'authentication', commandId, sessionId, now, realNow } as const;
  const patch = attemptPatch(state, start);
  const authentications = patch.owed.authentications + 1;
  const what = 'the payer began to confirm the payment';
  return changed(
    state,
    { ...patch, owed: { ...patch.owed, authentications } },
    { at: now, what, why: 'the bank asks for it', actor: 'payer' },
  );
}

/** Starts the trial, because the payer has saved a method. Nothing is charged. */
export function applyTrialStart(
  state: SubscriptionState,
  paymentMethodId: string,
  now: number,
): Change {
  const { trial } = state.terms;
  if (!trial) throw new Error(`${state.subscriptionId} has no trial`);
  const anchorAt = addTrial(now, trial.interval, trial.count);
  const what = `trial until ${formatInstant(anchorAt)}`;
  return changed(
    state,
    { status: 'TRIALING', paymentMethodId, anchorAt, nextIndex: 0, currentPeriodEndAt: anchorAt },
    { at: now, what, why: 'the payer saved a method', actor: 'payer' },
    { livePaymentMethodId: paymentMethodId },
  );
}

/**
 * Replaces the payment method and starts the retry plan anew. In UNPAID the owed cycle is charged at once, after an
 * open attempt has failed, and within 15 automatic attempts in 30 days.
 */
export function applyNewPaymentMethod(
  state: SubscriptionState,
  order: { paymentMethodId: string; commandId: string; sessionId: string },
  now: number,
  realNow: number,
): Change {
  const { paymentMethodId, commandId, sessionId } = order;
  const { paymentMethodId: former } = state;
  const owed = state.owed && { ...state.owed, retriesStopped: false, retriesUsed: 0 };
  const updated = { ...state, paymentMethodId, owed };
  const earliestAt = earliestAttemptAt(state);
  const isUnpaid = state.status === 'UNPAID';
  const mustWait = isUnpaid && !chargesNewMethod(state, now);
  let patch: Pick<SubscriptionState, 'owed' | 'openAttempt'> = updated;
  if (owed && (state.openAttempt || mustWait)) {
    const nextRetryAt = Math.max(now, earliestAt);
    // An attempt that waits for the payer is not voided: it is declined as not confirmed.
    const isVoided = isSuperseded(updated) && !awaitsPayer(state);
    const openAttempt = isVoided
      ? voided(state.openAttempt, 'replacePaymentMethod')
      : state.openAttempt;
    patch = { owed: { ...owed, nextRetryAt, payer: { sessionId, at: realNow } }, openAttempt };
  } else if (isUnpaid) {
    const start = { trigger: 'new_method', commandId, sessionId, now, realNow } as const;
    patch = attemptPatch(updated, start);
  }
  return changed(
    state,
    { paymentMethodId, owed: patch.owed, openAttempt: patch.openAttempt },
    {
      at: now,
      what: 'payment method replaced',
      why: mustWait
        ? `the payer gave another one; ${AUTOMATIC_ATTEMPTS_MAX} automatic attempts in 30 days are made, so the next is at ${formatInstant(earliestAt)}`
        : 'the payer gave another one',
      actor: 'payer',
    },
    {
      livePaymentMethodId: paymentMethodId,
      ...(former !== null && former !== paymentMethodId && { deletedPaymentMethodId: former }),
    },
  );
}

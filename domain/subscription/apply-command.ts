import { addTrial, firstIndexAfter } from '../calendar.ts';
import { MANUAL_RETRY_COOLDOWN_MS, RETRIES_MAX } from '../retry-plan.ts';
import type { ChangedTerms, SubscriptionEventType } from '../events.ts';
import { changed, ordered, subscriptionEvent } from './change.ts';
import type { DateSetter } from './entry-schema.ts';
import type { Change } from './change.ts';
import type { CancelCommand, Command, EditCommand, PauseCommand } from './commands.ts';
import type { EntryDraft } from './entries.ts';
import { attemptPatch, paidByFormerDates, paidByMovedDates } from './apply-attempt.ts';
import { awaitsPayer, isSuperseded } from './authentication.ts';
import { cancelAt, chargesNewMethod, isInTrial, lowestNextIndex } from './state.ts';
import type { EndReason } from './end-reason.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';

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
  const edited = editedTerms(command);
  const change = changed(
    state,
    {
      terms,
      ...(moved === undefined ? {} : { anchorAt: moved, nextIndex: 0 }),
      ...(moved !== undefined && isInTrial(state) ? { currentPeriodEndAt: moved } : {}),
      owed: moved === undefined ? state.owed : owedMovedTo(state, moved, ordered(command)),
      openAttempt: moved === undefined ? state.openAttempt : paidByFormerDates(state, now),
    },
    { at: now, kind: 'edited', ...edited, ...ordered(command) },
  );
  return announced(change, 'subscription.edited', edited);
}

/** Adds the event that names what a command has changed. An event of a new status comes after it. */
function announced(change: Change, type: SubscriptionEventType, changes: ChangedTerms): Change {
  const { state, events } = change;
  const event = { ...subscriptionEvent(type, state, state.latest.at), changes };
  return { ...change, events: [event, ...events] };
}

/**
 * The edited date `at` replaces the rest of the retry plan, as if the outcome of an open attempt had been known. Outside
 * UNPAID, the date of an unpause or of a new card is only moved: the plan starts anew after it.
 */
function owedMovedTo(
  state: SubscriptionState,
  at: number,
  dateSetBy: DateSetter,
): OwedCycle | null {
  const { owed, openAttempt, status } = state;
  if (!owed) return owed;
  const mayBeRetried = status !== 'PAUSED' && openAttempt !== null;
  if (status !== 'UNPAID' && owed.nextRetryAt === null && !mayBeRetried) return owed;
  const setBy = owed.dateSetBy?.actor ?? 'retry_plan';
  const isMoved = status !== 'UNPAID' && setBy !== 'retry_plan';
  const planLength = owed.retryPlan?.delaysMs.length ?? RETRIES_MAX + 1;
  const retriesUsed = isMoved ? owed.retriesUsed : planLength;
  return { ...owed, nextRetryAt: at, dateSetBy, retriesUsed };
}

function editedTerms(command: EditCommand) {
  const { newAmountMinor, newCycleCount, newNextPaymentAt, interval, intervalCount } = command;
  return {
    ...(newAmountMinor !== undefined && { amountMinor: newAmountMinor }),
    ...(newCycleCount !== undefined && { cycleCount: newCycleCount }),
    ...(interval !== undefined &&
      intervalCount !== undefined && { every: { interval, intervalCount } }),
    ...(newNextPaymentAt !== undefined && { nextPaymentAt: newNextPaymentAt }),
  };
}

export function applyCancel(state: SubscriptionState, command: CancelCommand, now: number): Change {
  if (command.atPeriodEnd !== true) {
    const { reason } = command;
    return end(state, { at: now, kind: 'ended', reason, rule: 'command', ...ordered(command) });
  }
  const openAttempt = voided(state.openAttempt, 'cancel');
  const endAt = cancelAt({ ...state, cancelAtPeriodEnd: true }) ?? now;
  // A pause with a date would end before the period does.
  const patch = { cancelAtPeriodEnd: true, openAttempt, resumeAt: null };
  const entry = { at: now, kind: 'cancellation_planned', endAt, ...ordered(command) } as const;
  return announced(changed(state, patch, entry), 'subscription.cancel_scheduled', {
    cancelAt: endAt,
  });
}

/**
 * Withdraws a cancellation for the end of the period. Of the calendar's dates that have passed, one is charged. If
 * the owed cycle's retries are stopped, it waits in UNPAID for another payment method.
 */
export function applyResume(state: SubscriptionState, command: Command, now: number): Change {
  const isStopped = state.owed?.retriesStopped === true && state.status !== 'PAUSED';
  const status = isStopped ? 'UNPAID' : state.status;
  const nextIndex = indexAfterResume(state, now);
  const { openAttempt: open } = state;
  const openAttempt = open?.voidedBy === 'cancel' ? { ...open, voidedBy: null } : open;
  const patch = { status, cancelAtPeriodEnd: false, nextIndex, openAttempt };
  const entry = { at: now, kind: 'cancellation_withdrawn', ...ordered(command) } as const;
  return announced(changed(state, patch, entry), 'subscription.resumed', { cancelAt: null });
}

/** The latest date that has passed, so that earlier ones are not billed; with an open attempt, the next date. */
function indexAfterResume(state: SubscriptionState, now: number): number {
  const { anchorAt, terms, nextIndex, openAttempt } = state;
  if (anchorAt === null) return nextIndex;
  const after = firstIndexAfter(anchorAt, terms.interval, terms.intervalCount, now);
  return Math.max(nextIndex, openAttempt ? after : after - 1);
}

export function applyPeriodEnd(state: SubscriptionState, now: number): Change {
  return end(state, endedBySchedule('cancelled', 'period_end', now));
}

export function applyCheckoutExpiry(state: SubscriptionState, now: number): Change {
  return end(state, endedBySchedule('checkout_expired', 'checkout_expiry', now));
}

type Ended = Extract<EntryDraft, { kind: 'ended' }>;

function endedBySchedule(reason: EndReason, rule: Ended['rule'], now: number): Ended {
  return { at: now, kind: 'ended', reason, rule, actor: 'schedule' };
}

function end(state: SubscriptionState, entry: Ended): Change {
  // A subscription that ends before its first payment cancels its first intent. If an attempt is open, the
  // intent stays, because the attempt's outcome must still be recorded.
  const isUnpaid = state.status === 'CREATED' && !state.openAttempt;
  return changed(
    state,
    {
      status: 'ENDED',
      nextIndex: lowestNextIndex(state),
      endReason: entry.reason,
      cooldownUntilAt: null,
      openAttempt: voided(state.openAttempt, 'cancel'),
    },
    entry,
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
  const patch = {
    status: 'PAUSED',
    nextIndex: lowestNextIndex(state),
    owed,
    openAttempt,
    resumeAt: resumeAt ?? null,
  } as const;
  const entry = {
    at: now,
    kind: 'paused',
    resumeAt: resumeAt ?? null,
    ...ordered(command),
  } as const;
  return changed(state, patch, entry);
}

/**
 * Makes `newNextPaymentAt` the anchor and the date of the owed cycle, else of the next. If the owed cycle's retries
 * are stopped, it waits in UNPAID for another payment method. `command` null: the end of the pause is reached.
 */
export function applyUnpause(
  state: SubscriptionState,
  newNextPaymentAt: number,
  now: number,
  command: Command | null,
): Change {
  const isStopped = state.owed?.retriesStopped === true;
  // If the open attempt is declined or voided later, its cycle is charged at `newNextPaymentAt`. A pause does not end
  // by its date while an attempt is open.
  const owed =
    state.owed && state.openAttempt && command && !isStopped
      ? {
          ...state.owed,
          nextRetryAt: newNextPaymentAt,
          dateSetBy: ordered(command),
          retriesUsed: 0,
        }
      : state.owed;
  return changed(
    state,
    {
      status: isStopped ? 'UNPAID' : 'ACTIVE',
      anchorAt: newNextPaymentAt,
      nextIndex: 0,
      owed,
      openAttempt: isStopped ? paidByMovedDates(state) : paidByFormerDates(state, now),
      resumeAt: null,
    },
    {
      at: now,
      kind: 'unpaused',
      nextPaymentAt: newNextPaymentAt,
      needsMethod: isStopped,
      ...(command
        ? { rule: 'command', ...ordered(command) }
        : { rule: 'pause_end', actor: 'schedule' }),
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
    { at: now, kind: 'manual_retry', ...ordered(command) },
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
  return changed(
    state,
    { ...patch, owed: { ...patch.owed, authentications } },
    { at: now, kind: 'authentication_begun', actor: 'payer' },
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
  return changed(
    state,
    { status: 'TRIALING', paymentMethodId, anchorAt, nextIndex: 0, currentPeriodEndAt: anchorAt },
    { at: now, kind: 'trial_begun', until: anchorAt, paymentMethodId, actor: 'payer' },
    { livePaymentMethodId: paymentMethodId },
  );
}

/**
 * Replaces the payment method and starts the retry plan anew. In UNPAID the owed cycle is charged at once, or after an
 * open attempt has failed.
 */
export function applyNewPaymentMethod(
  state: SubscriptionState,
  order: { paymentMethodId: string; commandId: string; sessionId: string },
  now: number,
  realNow: number,
): Change {
  const { paymentMethodId, commandId, sessionId } = order;
  const { paymentMethodId: former } = state;
  const owed = state.owed && {
    ...state.owed,
    ...(state.owed.nextRetryAt !== null && {
      dateSetBy: state.owed.dateSetBy ?? ({ actor: 'retry_plan' } as const),
    }),
    retriesStopped: false,
    retriesUsed: 0,
  };
  const updated = { ...state, paymentMethodId, owed };
  let patch: Pick<SubscriptionState, 'owed' | 'openAttempt'> = updated;
  // In PAUSED nothing is charged. The unpause sets the date of the owed cycle.
  if (owed && state.status !== 'PAUSED' && state.openAttempt) {
    // Outside UNPAID, an unpause or an edit has set the date of a retry, and only that date is charged.
    const setAt = chargesNewMethod(state) ? null : owed.nextRetryAt;
    const nextRetryAt = Math.max(now, setAt ?? 0);
    const dateSetBy = nextRetryAt === setAt ? owed.dateSetBy : ({ actor: 'payer' } as const);
    // An attempt that waits for the payer is not voided: it is declined as not confirmed.
    const isVoided = isSuperseded(updated) && !awaitsPayer(state);
    const openAttempt = isVoided
      ? voided(state.openAttempt, 'replacePaymentMethod')
      : state.openAttempt;
    const payer = { sessionId, at: realNow };
    patch = { owed: { ...owed, nextRetryAt, dateSetBy, payer }, openAttempt };
  } else if (chargesNewMethod(state)) {
    const start = { trigger: 'new_method', commandId, sessionId, now, realNow } as const;
    patch = attemptPatch(updated, start);
  }
  return changed(
    state,
    { paymentMethodId, owed: patch.owed, openAttempt: patch.openAttempt },
    {
      at: now,
      kind: 'method_replaced',
      paymentMethodId,
      actor: 'payer',
    },
    {
      livePaymentMethodId: paymentMethodId,
      ...(former !== null && former !== paymentMethodId && { deletedPaymentMethodId: former }),
    },
  );
}

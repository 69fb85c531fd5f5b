import { cycleAt, firstIndexAfter } from '../calendar.ts';
import { isDeclineCode, stopsAutomaticRetries } from '../declines.ts';
import { lookupDelayMs, REVIEW_DELAY_MS } from '../lookup-delays.ts';
import { formatAmount } from '../money.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import { MANUAL_RETRY_COOLDOWN_MS, nextAutomaticAttemptAt } from '../retry-plan.ts';
import type { RetryPlan } from '../retry-plan.ts';
import { entryEvents, intentEvent, next, subscriptionEvent } from './change.ts';
import type { Change } from './change.ts';
import type { CommandResult } from './commands.ts';
import { cycleAmountMinor, newOwedCycle } from './state.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';

/**
 * What an attempt came to. `retryPlan` is the merchant's at the moment of a decline. `byPerson`: not
 * the gateway said so. `isWithdrawn`: nobody did, it was called off before the gateway had it.
 * `review`: only a person can find out.
 */
export type AttemptOutcome =
  | { kind: 'succeeded'; byPerson?: true }
  | {
      kind: 'declined';
      code: string;
      retryPlan: RetryPlan;
      byPerson?: true;
      isWithdrawn?: true;
    }
  | { kind: 'unknown' }
  | { kind: 'review'; reason: string };

const AUTOMATIC: readonly AttemptTrigger[] = ['scheduled', 'automatic_retry', 'new_method'];

/** The attempt is to be settled now, not when the gateway is asked next: a person decided it. */
export function settleNow(state: SubscriptionState, realNow: number): SubscriptionState {
  const { openAttempt } = state;
  return openAttempt ? { ...state, openAttempt: { ...openAttempt, lookupAt: realNow } } : state;
}

/**
 * The gateway made a charge after all that a person had settled as not made. It pays no cycle; only
 * the timeline tells of it.
 */
export function applyLateCharge(
  state: SubscriptionState,
  charge: { amountMinor: number; currency: string; gatewayKey: string },
  now: number,
): Change {
  const line = {
    at: now,
    what: `a late charge came to light, ${formatAmount(charge.amountMinor, charge.currency)}`,
    why: `${charge.gatewayKey} had been settled as not paid; it is given back`,
  };
  return { state: next(state, {}, line), events: [], effects: {} };
}

/** The cycle that falls due now, owed from here on; an owed one stays as it is. */
export function owe(
  state: SubscriptionState,
  dueAt: number,
  newIntentId: string,
): SubscriptionState {
  if (state.owed) return state;
  const cycleNumber = state.cyclesCharged + 1;
  const amount = cycleAmountMinor(state.terms, cycleNumber);
  return { ...state, owed: newOwedCycle(cycleNumber, newIntentId, amount, dueAt) };
}

export interface AttemptStart {
  trigger: AttemptTrigger;
  /** The command that waits for the outcome. */
  commandId: string | null;
  now: number;
  realNow: number;
  /** Only in the checkout, where the subscription has no method yet. */
  paymentMethodId?: string;
}

/**
 * Opens the next attempt on the owed cycle: recorded before anything is sent, so that whoever takes
 * over knows of it. Throws when none is owed, an attempt is open, or there is nothing to pay with:
 * charging out of turn is a bug, never a request to be answered.
 */
export function openAttempt(state: SubscriptionState, start: AttemptStart): Change {
  return { state: next(state, attemptPatch(state, start), null), events: [], effects: {} };
}

export function attemptPatch(
  state: SubscriptionState,
  start: AttemptStart,
): { owed: OwedCycle; openAttempt: OpenAttempt } {
  const { owed } = state;
  const paymentMethodId = start.paymentMethodId ?? state.paymentMethodId;
  const isTurn = owed !== null && owed.cycleNumber === state.cyclesCharged + 1;
  if (!isTurn || state.openAttempt || paymentMethodId === null) {
    throw new Error(`${state.subscriptionId}: no attempt may start (${start.trigger})`);
  }
  const isAutomatic = AUTOMATIC.includes(start.trigger);
  return {
    owed: {
      ...owed,
      attempts: owed.attempts + 1,
      nextRetryAt: isAutomatic ? null : owed.nextRetryAt,
      automaticAttemptsAt: isAutomatic
        ? [...owed.automaticAttemptsAt, start.now]
        : owed.automaticAttemptsAt,
    },
    openAttempt: {
      attemptNumber: owed.attempts + 1,
      trigger: start.trigger,
      paymentMethodId,
      commandId: start.commandId,
      startedAt: start.now,
      lookups: 0,
      lookupAt: start.realNow,
    },
  };
}

/** The cycle's intent was made before, under another id: whoever made it first is right. */
export function withIntent<State extends SubscriptionState>(state: State, intentId: string): State {
  return state.owed && state.owed.intentId !== intentId
    ? { ...state, owed: { ...state.owed, intentId } }
    : state;
}

/** The open attempt came to `outcome` at `now`. Pure; the caller records it whole. Rules: D-§4, D-40. */
export function applyOutcome(
  state: SubscriptionState,
  outcome: AttemptOutcome,
  now: number,
  realNow: number,
): Change {
  const { owed, openAttempt } = state;
  if (!owed || !openAttempt) throw new Error(`${state.subscriptionId}: no attempt is open`);
  if (outcome.kind === 'unknown') {
    const after = next(
      state,
      { openAttempt: postponed(openAttempt, realNow) },
      { at: now, what: 'payment outcome unknown', why: 'the gateway did not answer' },
    );
    return { state: after, events: [], effects: {} };
  }
  if (outcome.kind === 'review') {
    const reviewed = postponed({ ...openAttempt, reviewReason: outcome.reason }, realNow);
    const line = { at: now, what: 'a payment needs a person', why: outcome.reason };
    return { state: next(state, { openAttempt: reviewed }, line), events: [], effects: {} };
  }
  return outcome.kind === 'succeeded'
    ? paid(state, owed, openAttempt, outcome, now)
    : declined(state, owed, openAttempt, outcome, now);
}

/** The gateway was asked once more and could not say: ask later. Not a transition of its own. */
export function postponed(attempt: OpenAttempt, realNow: number): OpenAttempt {
  const delayMs =
    attempt.reviewReason === undefined ? lookupDelayMs(attempt.lookups) : REVIEW_DELAY_MS;
  const lookupAt = realNow + delayMs;
  return { ...attempt, lookups: attempt.lookups + 1, lookupAt };
}

function paid(
  state: SubscriptionState,
  owed: OwedCycle,
  attempt: OpenAttempt,
  outcome: Extract<AttemptOutcome, { kind: 'succeeded' }>,
  now: number,
): Change {
  const cyclesCharged = state.cyclesCharged + 1;
  const isLast = cyclesCharged >= state.terms.cycleCount;
  const calendar = calendarAfterPayment(state, attempt, now);
  const goesOn = state.status === 'PAUSED' ? 'PAUSED' : 'ACTIVE';
  const alreadyEnded = state.status === 'ENDED';
  const status = alreadyEnded || isLast ? 'ENDED' : goesOn;
  const keepsMethod = attempt.trigger === 'checkout';
  const after = next(
    state,
    {
      ...calendar,
      status,
      endReason: alreadyEnded ? state.endReason : isLast ? 'completed' : null,
      cyclesCharged,
      owed: null,
      openAttempt: null,
      cooldownUntilAt: status === 'ENDED' ? null : state.cooldownUntilAt,
      currentPeriodEndAt: dateOf(state, calendar.anchorAt, calendar.nextIndex),
      ...(keepsMethod ? { paymentMethodId: attempt.paymentMethodId } : {}),
    },
    {
      at: now,
      what: `cycle ${owed.cycleNumber} paid, ${formatAmount(owed.amountMinor, state.terms.currency)}`,
      why: reasonOf(attempt, outcome),
    },
  );
  const cycle = {
    intentId: owed.intentId,
    cycleNumber: owed.cycleNumber,
    amountMinor: owed.amountMinor,
  };
  return {
    state: after,
    events: [
      intentEvent('intent.success', owed.intentId, now, 'SUCCESS'),
      subscriptionEvent('subscription.cycle_charged', after, now, cycle),
      ...entryEvents(state, after, now),
    ],
    effects: keepsMethod ? { livePaymentMethodId: attempt.paymentMethodId } : {},
  };
}

/**
 * A first payment makes the calendar; a recovery skips what passed; else it takes one step, unless
 * the next date was moved while the attempt was open: then that date is still to come.
 */
function calendarAfterPayment(
  state: SubscriptionState,
  attempt: OpenAttempt,
  now: number,
): { anchorAt: number; nextIndex: number } {
  const { anchorAt, terms } = state;
  if (anchorAt === null) return { anchorAt: now, nextIndex: 1 };
  if (state.status === 'UNPAID') {
    const nextIndex = firstIndexAfter(anchorAt, terms.interval, terms.intervalCount, now);
    return { anchorAt, nextIndex };
  }
  const dueAt = dateOf(state, anchorAt, state.nextIndex);
  return {
    anchorAt,
    nextIndex: dueAt <= attempt.startedAt ? state.nextIndex + 1 : state.nextIndex,
  };
}

function dateOf(state: SubscriptionState, anchorAt: number, index: number): number {
  return cycleAt(anchorAt, state.terms.interval, state.terms.intervalCount, index);
}

function declined(
  state: SubscriptionState,
  owed: OwedCycle,
  attempt: OpenAttempt,
  outcome: Extract<AttemptOutcome, { kind: 'declined' }>,
  now: number,
): Change {
  const isOwedOn = state.status !== 'CREATED' && state.status !== 'ENDED';
  const dunned = isOwedOn ? dunning(state, owed, attempt, outcome) : owed;
  const gaveUp =
    isOwedOn &&
    state.status !== 'PAUSED' &&
    AUTOMATIC.includes(attempt.trigger) &&
    dunned.nextRetryAt === null &&
    !dunned.retriesStopped &&
    dunned.retryPlan?.afterExhausted === 'end';
  const status = gaveUp
    ? 'ENDED'
    : state.status === 'TRIALING' || state.status === 'ACTIVE'
      ? 'UNPAID'
      : state.status;
  const after = next(
    state,
    {
      status,
      endReason: gaveUp ? 'retries_exhausted' : state.endReason,
      openAttempt: null,
      cooldownUntilAt: gaveUp ? null : state.cooldownUntilAt,
      owed: { ...dunned, lastDeclineCode: outcome.code },
    },
    {
      at: now,
      what: `cycle ${owed.cycleNumber} declined (${outcome.code})`,
      why: reasonOf(attempt, outcome),
    },
  );
  return {
    state: after,
    events: [
      intentEvent('intent.failed', owed.intentId, now, 'FAILED', outcome.code),
      ...entryEvents(state, after, now),
    ],
    // It was cancelled unpaid while this attempt was under way: only now is that certain.
    effects: state.status === 'ENDED' && state.anchorAt === null ? { releasesLinkUse: true } : {},
  };
}

/** Where the retry plan stands after a decline. Rule: D-30. */
function dunning(
  state: SubscriptionState,
  owed: OwedCycle,
  attempt: OpenAttempt,
  outcome: Extract<AttemptOutcome, { kind: 'declined' }>,
): OwedCycle {
  const stops = isDeclineCode(outcome.code) && stopsAutomaticRetries(outcome.code);
  const hasNewerMethod = attempt.paymentMethodId !== state.paymentMethodId;
  if (stops && !hasNewerMethod) return { ...owed, retriesStopped: true, nextRetryAt: null };
  // A manual retry leaves the plan where it was. So does what came while the attempt was open: an
  // automatic one clears the next try when it starts, so one that is set was set since, by an edit of
  // the date, an unpause or a new method. And only a new method ends what a hard decline stopped.
  if (attempt.trigger === 'manual_retry' || owed.nextRetryAt !== null || owed.retriesStopped) {
    return owed;
  }
  const startsAnew = attempt.trigger !== 'automatic_retry';
  const plan = startsAnew || !owed.retryPlan ? outcome.retryPlan : owed.retryPlan;
  const retriesUsed = startsAnew ? 0 : owed.retriesUsed;
  const nextRetryAt =
    state.status === 'PAUSED'
      ? null
      : nextAutomaticAttemptAt(plan, retriesUsed, owed.automaticAttemptsAt);
  return {
    ...owed,
    retryPlan: plan,
    retriesUsed: nextRetryAt === null ? retriesUsed : retriesUsed + 1,
    nextRetryAt,
  };
}

/** What the command that waits for this attempt is answered. Rules: IF-4.9, D-10a. */
export function resultOf(
  attempt: OpenAttempt,
  outcome: AttemptOutcome,
  after: SubscriptionState,
): CommandResult | null {
  if (outcome.kind === 'unknown' || outcome.kind === 'review') return null;
  const errorCode = outcome.kind === 'declined' ? outcome.code : null;
  const success = errorCode === null;
  if (attempt.trigger !== 'manual_retry') {
    return { kind: 'checkout', outcome: success ? 'paid' : 'declined', errorCode };
  }
  return {
    kind: 'manualRetry',
    success,
    minManualRetryAt:
      after.status === 'ENDED' ? null : attempt.startedAt + MANUAL_RETRY_COOLDOWN_MS,
    status: after.status === 'ACTIVE' || after.status === 'ENDED' ? after.status : 'UNPAID',
    errorCode,
  };
}

function reasonOf(
  attempt: OpenAttempt,
  { byPerson, isWithdrawn }: { byPerson?: true; isWithdrawn?: true },
): string {
  const reasons: Record<AttemptTrigger, string> = {
    checkout: 'the payer paid in the checkout',
    scheduled: 'its date had come',
    automatic_retry: 'the retry plan said so',
    manual_retry: 'the merchant asked for a retry',
    new_method: 'the payer gave another method',
    one_time: 'the merchant asked for a one-time charge',
    tokenised: 'the merchant charged a saved method',
  };
  const reason = `${reasons[attempt.trigger]} (attempt ${attempt.attemptNumber})`;
  if (isWithdrawn) return `${reason}; it was called off before the gateway had it`;
  return byPerson ? `${reason}; a person settled it` : reason;
}

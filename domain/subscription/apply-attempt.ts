import { cycleAt, firstIndexAfter } from '../calendar.ts';
import { stopsAutomaticRetries } from '../declines.ts';
import type { RetryAdvice } from '../declines.ts';
import { lookupDelayMs, lookupsAfter, REVIEW_DELAY_MS } from '../delays.ts';
import { attemptNumberOf } from '../payment-intent.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import { MANUAL_RETRY_COOLDOWN_MS, nextAutomaticAttemptAt } from '../retry-plan.ts';
import type { RetryPlan } from '../retry-plan.ts';
import type { Settlement } from '../settlement.ts';
import type { Orderer } from './actor.ts';
import { AUTHENTICATION_MS } from './authentication.ts';
import { causeOf } from './charge-cause.ts';
import { changed, entryEvents, intentEvent, next, ofAttempt, subscriptionEvent } from './change.ts';
import type { Change } from './change.ts';
import type { CommandResult } from './commands.ts';
import type { ChargeAtGateway } from './entries.ts';
import { cancelAt, newOwedCycle, lowestNextIndex } from './state.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';
import type { SubscriptionStatus } from './status.ts';

/**
 * What the rules need of a settlement, and the history of the run keeps. `awaitsPayer`: the payer has to confirm the
 * charge.
 */
export type AttemptOutcome =
  | Pick<SettledAs<'succeeded'>, 'kind' | 'byPerson'>
  | (Pick<SettledAs<'declined'>, 'kind' | 'code' | 'byPerson' | 'isWithdrawn'> & {
      retryPlan: RetryPlan;
      gatewayCode?: string;
      networkCode?: string;
      advice?: RetryAdvice;
    })
  | UndecidedOutcome;

type UndecidedOutcome =
  | { kind: 'unknown'; awaitsPayer?: true }
  | { kind: 'unsent' | 'review'; reason: string };

type SettledAs<Kind> = Extract<Settlement, { kind: Kind }>;

const isUndecided = (outcome: AttemptOutcome): outcome is UndecidedOutcome =>
  outcome.kind !== 'succeeded' && outcome.kind !== 'declined';

const AUTOMATIC: readonly AttemptTrigger[] = ['scheduled', 'automatic_retry', 'new_method'];
const isRetry = ({ trigger }: OpenAttempt): boolean =>
  trigger !== 'scheduled' && trigger !== 'checkout';

export function settleNow(state: SubscriptionState, realNow: number): SubscriptionState {
  const { openAttempt } = state;
  return openAttempt ? { ...state, openAttempt: { ...openAttempt, lookupAt: realNow } } : state;
}

/** Makes the next cycle, due at `dueAt`, the owed cycle. Changes nothing if a cycle is already owed. */
export function owe(state: SubscriptionState, dueAt: number): SubscriptionState {
  const owed = state.owed ?? newOwedCycle(state, state.cyclesCharged + 1, dueAt);
  return { ...state, owed };
}

export interface AttemptStart {
  trigger: AttemptTrigger;
  /** The command that waits for the outcome; null for a due step. */
  commandId: string | null;
  /** Who ordered the attempt. Absent: `trigger` implies the actor. */
  actor?: Orderer | undefined;
  now: number;
  realNow: number;
  /** The session of the hosted page on which the payer caused the attempt. Absent: the payer is absent. */
  sessionId?: string;
  /** Set only in the checkout, because the subscription has no payment method yet. */
  paymentMethodId?: string;
}

/** Opens the next attempt on the owed cycle. Throws if no attempt may start: such a call is a bug. */
export function openAttempt(state: SubscriptionState, start: AttemptStart): Change {
  return { state: next(state, attemptPatch(state, start), null), events: [], effects: {} };
}

export function attemptPatch(
  state: SubscriptionState,
  start: AttemptStart,
): { owed: OwedCycle; openAttempt: OpenAttempt } {
  const { owed } = state;
  const paymentMethodId = start.paymentMethodId ?? state.paymentMethodId;
  const isNextCycleOwed = owed !== null && owed.cycleNumber === state.cyclesCharged + 1;
  if (!isNextCycleOwed || state.openAttempt || paymentMethodId === null) {
    throw new Error(`${state.subscriptionId}: no attempt may start (${start.trigger})`);
  }
  const { now } = start;
  const isAutomatic = AUTOMATIC.includes(start.trigger);
  const { payer, ...owedWithoutPayer } = owed;
  const isPayerThere = payer !== undefined && start.realNow - payer.at < AUTHENTICATION_MS;
  const sessionId = start.sessionId ?? (isPayerThere ? payer.sessionId : undefined);
  return {
    owed: {
      ...owedWithoutPayer,
      attempts: owed.attempts + 1,
      ...(isAutomatic && {
        nextRetryAt: null,
        dateSetBy: undefined,
        automaticAttemptsAt: [...owed.automaticAttemptsAt, now],
      }),
    },
    openAttempt: {
      attemptNumber: owed.attempts + 1,
      trigger: start.trigger,
      cause: causeOf(state, owed, start),
      paymentMethodId,
      commandId: start.commandId,
      startedAt: now,
      lookups: 0,
      lookupAt: start.realNow,
      voidedBy: null,
      ...(start.actor === undefined || start.actor === 'merchant' ? {} : { actor: start.actor }),
      ...(sessionId === undefined ? {} : { sessionId }),
    },
  };
}

/** Opens the attempt of a charge in the gateway's book, whose amount and date count. Its look-up is due at once. */
export function applyAdoption(
  state: SubscriptionState,
  { gatewayKey, amountMinor, currency, dueAt }: ChargeAtGateway & { dueAt: number },
  now: number,
  realNow: number,
): Change {
  const start = { trigger: 'scheduled', commandId: null, now, realNow } as const;
  const { owed, openAttempt } = attemptPatch(owe(state, dueAt), start);
  const attemptNumber = attemptNumberOf(gatewayKey);
  const { cycleNumber } = owed;
  const facts = { cycleNumber, gatewayKey, amountMinor, currency, dueAt };
  return changed(
    state,
    {
      owed: { ...owed, amountMinor, attempts: attemptNumber },
      openAttempt: { ...openAttempt, attemptNumber, cause: { rule: 'adopted' } },
    },
    { at: now, actor: 'operator', kind: 'adopted', ...facts },
  );
}

export function applyOutcome(
  state: SubscriptionState,
  outcome: AttemptOutcome,
  now: number,
  realNow: number,
): Change {
  const { owed, openAttempt } = state;
  if (!owed || !openAttempt) throw new Error(`${state.subscriptionId}: no attempt is open`);
  if (isUndecided(outcome)) {
    const { found, facts } = undecided(outcome, realNow);
    const waiting = postponed(state, { ...openAttempt, ...found }, realNow);
    const attempt = { ...ofAttempt(owed, openAttempt), actor: 'gateway' as const };
    return changed(state, { openAttempt: waiting }, { at: now, ...attempt, ...facts });
  }
  return outcome.kind === 'succeeded'
    ? paid(state, owed, openAttempt, outcome, now)
    : declined(state, owed, openAttempt, outcome, now);
}

type Undecided =
  | { kind: 'review' | 'unsent'; reason: string }
  | { kind: 'payer_asked' | 'unanswered' };

function undecided(
  outcome: UndecidedOutcome,
  realNow: number,
): { found: Partial<OpenAttempt>; facts: Undecided } {
  if (outcome.kind === 'unknown') {
    return outcome.awaitsPayer
      ? { found: { awaitsPayer: true, unsentReason: undefined }, facts: { kind: 'payer_asked' } }
      : { found: { unsentReason: undefined }, facts: { kind: 'unanswered' } };
  }
  const { kind, reason } = outcome;
  const found =
    kind === 'unsent'
      ? { unsentReason: reason }
      : { reviewReason: reason, unsentReason: undefined, lookupAt: realNow };
  return { found, facts: { kind, reason } };
}

/** True if a look-up at `realNow` comes before the scheduled look-up, which then still takes place. */
export function isEarlyLookup(attempt: OpenAttempt, realNow: number): boolean {
  return realNow < attempt.lookupAt;
}

/** Schedules the next look-up. An early look-up changes nothing, so it does not shorten the time until REVIEW. */
export function postponed(
  { subscriptionId }: Pick<SubscriptionState, 'subscriptionId'>,
  attempt: OpenAttempt,
  realNow: number,
): OpenAttempt {
  if (isEarlyLookup(attempt, realNow)) return attempt;
  const delayMs =
    attempt.reviewReason === undefined
      ? lookupDelayMs(attempt.lookups, subscriptionId)
      : REVIEW_DELAY_MS;
  const lookups = lookupsAfter(attempt.lookups, attempt.unsentReason !== undefined);
  return { ...attempt, lookups, lookupAt: realNow + delayMs };
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
  const nextAt = dateOf(state, calendar);
  const continuedStatus = state.status === 'PAUSED' ? 'PAUSED' : 'ACTIVE';
  const alreadyEnded = state.status === 'ENDED';
  const status = alreadyEnded || isLast ? 'ENDED' : continuedStatus;
  const savesMethod = attempt.trigger === 'checkout';
  const after = next(
    state,
    {
      ...calendar,
      status,
      endReason: alreadyEnded ? state.endReason : isLast ? 'completed' : null,
      cyclesCharged,
      owed: null,
      openAttempt: null,
      ...(state.raised && owed.amountMinor === state.terms.amountMinor && { raised: undefined }),
      ...(state.givenNotices?.every(({ chargeAt }) => chargeAt !== nextAt) && {
        givenNotices: undefined,
      }),
      cooldownUntilAt: status === 'ENDED' ? null : state.cooldownUntilAt,
      // If an edit has moved the charge to an earlier date, the payment does not shorten the time already paid.
      currentPeriodEndAt: Math.max(state.currentPeriodEndAt ?? 0, attempt.paysUntilAt ?? nextAt),
      ...(savesMethod ? { paymentMethodId: attempt.paymentMethodId } : {}),
    },
    {
      at: now,
      kind: 'paid',
      ...ofAttempt(owed, attempt, outcome.byPerson),
      amountMinor: owed.amountMinor,
      currency: state.terms.currency,
    },
  );
  const { intentId } = owed;
  return {
    state: after,
    events: [
      intentEvent('intent.success', intentId, now, 'SUCCESS'),
      subscriptionEvent('subscription.cycle_charged', after, now, owed),
      ...entryEvents(state, after, now),
    ],
    effects: savesMethod ? { livePaymentMethodId: attempt.paymentMethodId } : {},
  };
}

/**
 * Returns the calendar after a payment. A retry's payment skips the dates that have passed; any other payment moves the
 * calendar by one date. A date that a command has moved past the attempt's start stays the next one. An adopted charge
 * pays the next date, although the edit may be lost that had moved this date to the charge.
 */
export function calendarAfterPayment(
  state: SubscriptionState,
  attempt: OpenAttempt,
  now: number,
): { anchorAt: number; nextIndex: number } {
  const { anchorAt, terms } = state;
  // Without a trial, the instant of the first payment is the anchor.
  if (anchorAt === null) return { anchorAt: now, nextIndex: 1 };
  const indexAfterNow = () => firstIndexAfter(anchorAt, terms.interval, terms.intervalCount, now);
  if (state.status === 'UNPAID' || (isRetry(attempt) && state.status !== 'ACTIVE')) {
    return { anchorAt, nextIndex: Math.max(lowestNextIndex(state), indexAfterNow()) };
  }
  const dueAt = dateOf(state, { anchorAt, nextIndex: state.nextIndex });
  const paysNextDate = attempt.cause.rule === 'adopted' && attempt.paysUntilAt === undefined;
  if (dueAt > attempt.startedAt && !paysNextDate) return { anchorAt, nextIndex: state.nextIndex };
  return { anchorAt, nextIndex: isRetry(attempt) ? indexAfterNow() : state.nextIndex + 1 };
}

/** For a command that moves the dates: the open attempt still pays until the former date, but not in UNPAID. */
export function paidByFormerDates(state: SubscriptionState, now: number): OpenAttempt | null {
  const { openAttempt: open, status } = state;
  if (open === null || open.paysUntilAt !== undefined || status === 'UNPAID') return open;
  return { ...open, paysUntilAt: dateOf(state, calendarAfterPayment(state, open, now)) };
}

/** For a moved date that belongs to the owed cycle: the open attempt pays until the date after it. */
export function paidByMovedDates({ openAttempt }: SubscriptionState): OpenAttempt | null {
  return openAttempt && { ...openAttempt, paysUntilAt: undefined };
}

function dateOf(
  { terms }: SubscriptionState,
  { anchorAt, nextIndex }: { anchorAt: number; nextIndex: number },
): number {
  return cycleAt(anchorAt, terms.interval, terms.intervalCount, nextIndex);
}

function declined(
  state: SubscriptionState,
  owed: OwedCycle,
  attempt: OpenAttempt,
  outcome: Extract<AttemptOutcome, { kind: 'declined' }>,
  now: number,
): Change {
  // Nothing is retried after a cancellation for the end of the period.
  const isDunned =
    state.status !== 'CREATED' && state.status !== 'ENDED' && cancelAt(state) === null;
  const owedAfter = isDunned
    ? dunning(state, owed, attempt, outcome)
    : { ...withHardDecline(state, owed, attempt, outcome), nextRetryAt: null };
  const isExhausted =
    isDunned &&
    state.status !== 'PAUSED' &&
    AUTOMATIC.includes(attempt.trigger) &&
    owedAfter.nextRetryAt === null &&
    !owedAfter.retriesStopped &&
    owedAfter.retryPlan?.afterExhausted === 'end';
  const status = isExhausted ? 'ENDED' : statusAfterDecline(state, owedAfter, outcome);
  const after = next(
    state,
    {
      status,
      endReason: isExhausted ? 'retries_exhausted' : state.endReason,
      openAttempt: null,
      cooldownUntilAt: isExhausted ? null : state.cooldownUntilAt,
      owed: { ...owedAfter, lastDeclineCode: outcome.code },
    },
    {
      at: now,
      kind: 'declined',
      ...ofAttempt(owed, attempt, outcome.byPerson),
      code: outcome.code,
      ...(outcome.gatewayCode !== undefined && { gatewayCode: outcome.gatewayCode }),
      ...(outcome.networkCode !== undefined && { networkCode: outcome.networkCode }),
      ...(outcome.advice && { advice: outcome.advice }),
      ...(outcome.isWithdrawn && { isWithdrawn: true as const }),
      plan: outcome.retryPlan,
    },
  );
  return {
    state: after,
    events: [
      {
        ...intentEvent('intent.failed', owed.intentId, now, 'FAILED', outcome.code),
        ...(isDunned && {
          dunning: { cycleNumber: owed.cycleNumber, nextRetryAt: owedAfter.nextRetryAt },
        }),
      },
      ...entryEvents(state, after, now),
      ...(endsRetries(state, attempt, after, outcome.retryPlan)
        ? [subscriptionEvent('subscription.retries_exhausted', after, now)]
        : []),
    ],
    // It was cancelled during its first payment, and has ended unpaid.
    effects: state.status === 'ENDED' && state.anchorAt === null ? { releasesLinkUse: true } : {},
  };
}

/**
 * Changes TRIALING and ACTIVE to UNPAID, unless the subscription ends with its period, or another attempt is planned and
 * the attempt was voided or `unpaidFrom` is `retries_exhausted`.
 */
function statusAfterDecline(
  state: SubscriptionState,
  { retryPlan, nextRetryAt }: OwedCycle,
  { retryPlan: latestPlan, isWithdrawn }: Extract<AttemptOutcome, { kind: 'declined' }>,
): SubscriptionStatus {
  const { status } = state;
  if (cancelAt(state) !== null) return status;
  if (status !== 'TRIALING' && status !== 'ACTIVE') return status;
  const isQuiet = (retryPlan ?? latestPlan).unpaidFrom === 'retries_exhausted';
  return (isQuiet || isWithdrawn === true) && nextRetryAt !== null ? status : 'UNPAID';
}

/** True if the decline uses up the last automatic retry and `subscription.unpaid` does not report the same. */
function endsRetries(
  before: SubscriptionState,
  { trigger }: OpenAttempt,
  { status, owed }: SubscriptionState,
  latestPlan: RetryPlan,
): boolean {
  const hadRetry = AUTOMATIC.includes(trigger) || (before.owed?.nextRetryAt ?? null) !== null;
  const isQuiet = (owed?.retryPlan ?? latestPlan).unpaidFrom === 'retries_exhausted';
  const isTold = isQuiet && before.status !== 'UNPAID';
  return status === 'UNPAID' && hadRetry && owed?.nextRetryAt === null && !isTold;
}

/** Stops the automatic retries if the decline rules them out and the payer has given no newer method. */
function withHardDecline(
  state: SubscriptionState,
  owed: OwedCycle,
  attempt: OpenAttempt,
  { code, advice }: Extract<AttemptOutcome, { kind: 'declined' }>,
): OwedCycle {
  const isHard = stopsAutomaticRetries(code, advice);
  const hasNewerMethod = attempt.paymentMethodId !== state.paymentMethodId;
  return isHard && !hasNewerMethod ? { ...owed, retriesStopped: true, nextRetryAt: null } : owed;
}

function dunning(
  state: SubscriptionState,
  owedBefore: OwedCycle,
  attempt: OpenAttempt,
  outcome: Extract<AttemptOutcome, { kind: 'declined' }>,
): OwedCycle {
  const owed = withHardDecline(state, owedBefore, attempt, outcome);
  if (owed !== owedBefore) return owed;
  const hasNewerMethod = attempt.paymentMethodId !== state.paymentMethodId;
  const notBeforeAt =
    outcome.advice?.kind === 'not_before' && !hasNewerMethod ? outcome.advice.at : null;
  // A manual retry does not change the plan. If `nextRetryAt` is set, a command has set it during the attempt.
  // After a decline that stops the retries, only a new method restarts them.
  if (attempt.trigger === 'manual_retry' || owed.nextRetryAt !== null || owed.retriesStopped) {
    return owed.nextRetryAt === null ? owed : notBefore(owed, notBeforeAt, owed.nextRetryAt);
  }
  const startsNewPlan = attempt.trigger !== 'automatic_retry';
  const plan = startsNewPlan || !owed.retryPlan ? outcome.retryPlan : owed.retryPlan;
  const retriesUsed = startsNewPlan ? 0 : owed.retriesUsed;
  const previousAt = owed.automaticAttemptsAt.at(-1);
  const nextRetryAt =
    state.status === 'PAUSED'
      ? null
      : nextAutomaticAttemptAt(plan, retriesUsed, previousAt, notBeforeAt);
  const planned = {
    ...owed,
    retryPlan: plan,
    retriesUsed: nextRetryAt === null ? retriesUsed : retriesUsed + 1,
    nextRetryAt,
    dateSetBy: undefined,
  };
  const byPlanAt = nextAutomaticAttemptAt(plan, retriesUsed, previousAt, null);
  return nextRetryAt === null ? planned : notBefore(planned, notBeforeAt, byPlanAt ?? 0);
}

/** Moves the next attempt from `plannedAt` to the instant that the bank advised, if this is later. */
function notBefore(owed: OwedCycle, notBeforeAt: number | null, plannedAt: number): OwedCycle {
  if (notBeforeAt === null || notBeforeAt <= plannedAt) return owed;
  const dateSetBy = { actor: 'gateway', said: 'not_before' } as const;
  return { ...owed, nextRetryAt: notBeforeAt, dateSetBy };
}

/** Returns the result for the command that opened the attempt; null while the outcome is not known. */
export function resultOf(
  attempt: OpenAttempt,
  outcome: AttemptOutcome,
  after: SubscriptionState,
): CommandResult | null {
  if (isUndecided(outcome)) return null;
  const errorCode = outcome.kind === 'declined' ? outcome.code : null;
  const success = errorCode === null;
  if (attempt.trigger !== 'manual_retry') {
    return { kind: 'checkout', outcome: success ? 'paid' : 'declined', errorCode };
  }
  // The answer has no PAUSED: after a pause, a paid retry is answered ACTIVE.
  const isActive = success || after.status === 'ACTIVE';
  return {
    kind: 'manualRetry',
    success,
    minManualRetryAt:
      after.status === 'ENDED' ? null : attempt.startedAt + MANUAL_RETRY_COOLDOWN_MS,
    status: after.status === 'ENDED' ? 'ENDED' : isActive ? 'ACTIVE' : 'UNPAID',
    errorCode,
  };
}

import { cycleAt } from '../calendar.ts';
import type { IntervalUnit } from '../calendar.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import type { RetryPlan } from '../retry-plan.ts';

/** Rule: IF-3. */
export const SUBSCRIPTION_STATUSES = [
  'CREATED',
  'TRIALING',
  'ACTIVE',
  'UNPAID',
  'PAUSED',
  'ENDED',
] as const;
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

/** Rule: D-34. */
export const END_REASONS = [
  'completed',
  'cancelled',
  'checkout_expired',
  'checkout_cancelled',
  'retries_exhausted',
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** How everything names a subscription: an id alone says nothing about whose it is. Rule: D-21. */
export interface SubscriptionRef {
  merchantId: string;
  subscriptionId: string;
}

/** What the payer agreed to; `edit` replaces parts of it. */
export interface Terms {
  amountMinor: number;
  currency: string;
  interval: IntervalUnit;
  intervalCount: number;
  cycleCount: number;
  /** Replaces the first cycle's amount. */
  upfrontAmountMinor: number | null;
  trial: { interval: IntervalUnit; count: number } | null;
}

/** A billing cycle that is due and not yet paid. Its amount is fixed. */
export interface OwedCycle {
  cycleNumber: number;
  intentId: string;
  amountMinor: number;
  dueAt: number;
  /** Attempts started so far; the next one gets this plus 1. */
  attempts: number;
  /** The plan as it stood when the dunning began; null before a first decline. */
  retryPlan: RetryPlan | null;
  retriesUsed: number;
  /** Starts of automatic attempts, oldest first. */
  automaticAttemptsAt: number[];
  nextRetryAt: number | null;
  lastDeclineCode: string | null;
  /** Set while automatic retries are off until the method changes. */
  retriesStopped: boolean;
}

/** The one attempt whose outcome is not known yet. */
export interface OpenAttempt {
  attemptNumber: number;
  trigger: AttemptTrigger;
  paymentMethodId: string;
  /** The command that waits for this attempt's outcome. */
  commandId: string | null;
  startedAt: number;
  /** How often the gateway was asked without an answer; 0 before the first send ended. */
  lookups: number;
  /** Real time, also on a test clock: a gateway does not live by our clocks. */
  lookupAt: number;
  /** Set once a person has to settle it: why. The gateway is asked once a day from then on. */
  reviewReason?: string;
}

/** One line of "what happened and why", newest last; the oldest fall off. */
export interface LogEntry {
  at: number;
  what: string;
  why: string;
}
export const LOG_ENTRIES_MAX = 16;

/**
 * Everything a subscription's workflow knows: the argument of continue-as-new, the answer of the
 * `state` query and the `state` column of its row. JSON-plain. Instants are epoch ms of the
 * subscription's own time.
 */
export interface SubscriptionState {
  schemaVersion: 1;
  subscriptionId: string;
  merchantId: string;
  customerId: string;
  /** Raised by one with every recorded transition. */
  version: number;
  status: SubscriptionStatus;
  endReason: EndReason | null;
  terms: Terms;
  createdAt: number;
  checkoutExpiresAt: number;
  /** Date 0 of the calendar in force; null until a trial began or a first payment succeeded. */
  anchorAt: number | null;
  /** Which date of the calendar is the next one due. */
  nextIndex: number;
  cyclesCharged: number;
  paymentMethodId: string | null;
  /** Up to when the payer has paid. */
  currentPeriodEndAt: number | null;
  owed: OwedCycle | null;
  openAttempt: OpenAttempt | null;
  /** No manual retry before this; null when none is in force. */
  cooldownUntilAt: number | null;
  testClockId: string | null;
  /** How long after a date of the calendar its cycle is charged; absent: at once. Design §5. */
  jitterMs?: number;
  log: LogEntry[];
}

/** Date `index` of the calendar in force. Only for subscriptions that have an anchor. Rule: D-05. */
export function calendarDate(state: SubscriptionState, index: number): number {
  if (state.anchorAt === null) throw new Error(`${state.subscriptionId} has no anchor`);
  return cycleAt(state.anchorAt, state.terms.interval, state.terms.intervalCount, index);
}

/**
 * The latest instant that the state knows of, in the subscription's own time: a test clock that carries it
 * on must not stand before it, or dates that were charged would fall due again. Rule: D-60.
 */
export function knownUntil(state: SubscriptionState): number {
  return Math.max(state.openAttempt?.startedAt ?? 0, state.log.at(-1)?.at ?? 0);
}

export function remainingCycleCount(state: SubscriptionState): number {
  return Math.max(0, state.terms.cycleCount - state.cyclesCharged);
}

/** The trial's end, the next due date or the next automatic attempt, by status. Rule: D-34. */
export function nextPaymentAt(state: SubscriptionState): number | null {
  if (state.status === 'TRIALING' || state.status === 'ACTIVE') {
    return calendarDate(state, state.nextIndex);
  }
  return state.status === 'UNPAID' ? (state.owed?.nextRetryAt ?? null) : null;
}

/** What a cycle that falls due now costs. Rule: IF-2.3 (upfrontAmount). */
export function cycleAmountMinor(terms: Terms, cycleNumber: number): number {
  return cycleNumber === 1 && terms.upfrontAmountMinor !== null
    ? terms.upfrontAmountMinor
    : terms.amountMinor;
}

/** A cycle that has just become due. */
export function newOwedCycle(
  cycleNumber: number,
  intentId: string,
  amountMinor: number,
  dueAt: number,
): OwedCycle {
  return {
    cycleNumber,
    intentId,
    amountMinor,
    dueAt,
    attempts: 0,
    retryPlan: null,
    retriesUsed: 0,
    automaticAttemptsAt: [],
    nextRetryAt: null,
    lastDeclineCode: null,
    retriesStopped: false,
  };
}

export interface NewSubscription {
  subscriptionId: string;
  merchantId: string;
  customerId: string;
  terms: Terms;
  createdAt: number;
  checkoutExpiresAt: number;
  testClockId: string | null;
  /** The first cycle's intent; null with a trial, whose first intent is made when it ends. */
  firstIntentId: string | null;
  /** See `SubscriptionState.jitterMs`. */
  jitterMs?: number;
}

/** A subscription as `create` leaves it. Rule: D-§4, first row. */
export function newSubscription(input: NewSubscription): SubscriptionState {
  const { firstIntentId, terms, createdAt, jitterMs = 0, ...identity } = input;
  return {
    schemaVersion: 1,
    ...identity,
    ...(jitterMs > 0 ? { jitterMs } : {}),
    version: 1,
    status: 'CREATED',
    endReason: null,
    terms,
    createdAt,
    anchorAt: null,
    nextIndex: 0,
    cyclesCharged: 0,
    paymentMethodId: null,
    currentPeriodEndAt: null,
    owed:
      firstIntentId === null
        ? null
        : newOwedCycle(1, firstIntentId, cycleAmountMinor(terms, 1), createdAt),
    openAttempt: null,
    cooldownUntilAt: null,
    log: [{ at: createdAt, what: 'created', why: 'the merchant asked for it' }],
  };
}

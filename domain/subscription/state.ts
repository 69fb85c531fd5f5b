import { cycleAt } from '../calendar.ts';
import { jitterOf } from '../delays.ts';
import { intentIdOfCycle } from '../ids.ts';
import type { Terms } from './entry-schema.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state-schema.ts';
import type { SubscriptionStatus } from './status.ts';
import { cycleAmountMinor } from './terms.ts';

export type { OpenAttempt, OwedCycle, SubscriptionState } from './state-schema.ts';

export interface SubscriptionRef {
  merchantId: string;
  subscriptionId: string;
}

export interface ChargeableState extends SubscriptionState {
  owed: OwedCycle;
  openAttempt: OpenAttempt;
}

export function isChargeable(state: SubscriptionState): state is ChargeableState {
  return state.owed !== null && state.openAttempt !== null;
}

/** Returns date `index` of the current calendar. Throws without an anchor. */
export function calendarDate(state: SubscriptionState, index: number): number {
  if (state.anchorAt === null) throw new Error(`${state.subscriptionId} has no anchor`);
  return cycleAt(state.anchorAt, state.terms.interval, state.terms.intervalCount, index);
}

/**
 * Returns the instant of the latest change, in the subscription's own time. A test clock must not be earlier, or dates
 * that are already charged would fall due again.
 */
export function knownUntil(state: SubscriptionState): number {
  return Math.max(state.openAttempt?.startedAt ?? 0, state.latest.at);
}

export function remainingCycleCount(state: SubscriptionState): number {
  return Math.max(0, state.terms.cycleCount - state.cyclesCharged);
}

const isLiving = ({ status }: SubscriptionState): boolean =>
  status === 'TRIALING' || status === 'ACTIVE';

/** Returns the planned retry of the declined cycle. TRIALING and ACTIVE have one only with `retries_exhausted`. */
export function nextRetryAt(state: SubscriptionState): number | null {
  const { status, owed, openAttempt } = state;
  const mayRetry = status === 'UNPAID' || (isLiving(state) && openAttempt === null);
  return mayRetry ? (owed?.nextRetryAt ?? null) : null;
}

/** True if a declined cycle must be paid before the calendar's next date is charged. */
export function isDunned(state: SubscriptionState): boolean {
  return state.status === 'UNPAID' || nextRetryAt(state) !== null;
}

/** True if the subscription is charged in this status. Then its payer gets a link to replace the payment method. */
export function isBilled(status: SubscriptionStatus): boolean {
  return status === 'TRIALING' || status === 'ACTIVE' || status === 'UNPAID';
}

/** True if the payer may replace the payment method in this status, for example with a link from before a pause. */
export function takesNewMethod(status: SubscriptionStatus): boolean {
  return isBilled(status) || status === 'PAUSED';
}

/**
 * True if a new payment method is charged at once, or as soon as the open attempt is declined: in UNPAID, and while a
 * charge waits because of the limits of the present card.
 */
export function chargesNewMethod(state: SubscriptionState): boolean {
  const { status, owed } = state;
  const isLimited = owed?.dateSetBy?.actor === 'schedule';
  return status === 'UNPAID' || (isLimited && isLiving(state) && cancelAt(state) === null);
}

/** True if a payment method given at `now` is charged as soon as the open attempt of a renewal has failed. */
export function chargesNewMethodNext(state: SubscriptionState, now: number): boolean {
  const { status, owed, openAttempt } = state;
  const isDue = openAttempt !== null && (owed?.nextRetryAt ?? 0) <= now;
  const isPlanned = isBilled(status) && cancelAt(state) === null;
  return isDue && isPlanned;
}

/** True in TRIALING until the first cycle is due. After a decline, the status may stay TRIALING. */
export function isInTrial({ status, owed }: SubscriptionState): boolean {
  return status === 'TRIALING' && owed === null;
}

/** Returns when a cancellation for the end of the paid period or trial takes effect; null if none is planned. */
export function cancelAt(state: SubscriptionState): number | null {
  const mayEnd = isLiving(state) || state.status === 'PAUSED';
  return mayEnd && state.cancelAtPeriodEnd ? state.currentPeriodEndAt : null;
}

export function resumeAt(state: SubscriptionState): number | null {
  return state.status === 'PAUSED' ? state.resumeAt : null;
}

/** Returns the date of the next charge if no retry comes before it; null if none comes. */
export function nextDateAt(state: SubscriptionState): number | null {
  const hasDate = isLiving(state) && cancelAt(state) === null && nextRetryAt(state) === null;
  return hasDate ? calendarDate(state, state.nextIndex) : null;
}

/** Returns the planned retry, else in TRIALING and ACTIVE the next date; null if the subscription ends before. */
export function nextPaymentAt(state: SubscriptionState): number | null {
  if (cancelAt(state) !== null) return null;
  return nextRetryAt(state) ?? (isLiving(state) ? calendarDate(state, state.nextIndex) : null);
}

/** The amount of the next charge. A cycle that is owed keeps its amount after an edit. */
export function nextAmountMinor({ owed, terms, cyclesCharged }: SubscriptionState): number {
  return owed?.amountMinor ?? cycleAmountMinor(terms, cyclesCharged + 1);
}

/** The lowest index that the next date may have. In UNPAID, date 0 is the owed cycle's. */
export function lowestNextIndex({ status, nextIndex }: SubscriptionState): number {
  return status === 'UNPAID' ? Math.max(1, nextIndex) : nextIndex;
}

export function newOwedCycle(
  { subscriptionId, terms }: { subscriptionId: string; terms: Terms },
  cycleNumber: number,
  dueAt: number,
): OwedCycle {
  return {
    cycleNumber,
    intentId: intentIdOfCycle(subscriptionId, cycleNumber),
    amountMinor: cycleAmountMinor(terms, cycleNumber),
    dueAt,
    attempts: 0,
    retryPlan: null,
    retriesUsed: 0,
    automaticAttemptsAt: [],
    nextRetryAt: null,
    lastDeclineCode: null,
    retriesStopped: false,
    authentications: 0,
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
  /** Default: no delay. */
  jitter?: Jitter;
}

type Jitter = Pick<SubscriptionState, 'jitterMs' | 'jitterFor'>;

/**
 * Returns the jitter of a new subscription. `windowMs` null: each date gets its delay when it is the next one; on a test
 * clock none, because nothing has to be spread.
 */
export function initialJitter(
  { subscriptionId, testClockId }: Pick<NewSubscription, 'subscriptionId' | 'testClockId'>,
  windowMs: number | null,
): Jitter {
  return windowMs === null && testClockId === null
    ? { jitterMs: 0, jitterFor: 0 }
    : { jitterMs: jitterOf(subscriptionId, windowMs ?? 0) };
}

export function newSubscription(input: NewSubscription): SubscriptionState {
  const { terms, createdAt, jitter = { jitterMs: 0 }, ...identity } = input;
  return {
    schemaVersion: 1,
    ...identity,
    ...jitter,
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
    // With a trial, the first cycle is owed when the trial ends.
    owed: terms.trial === null ? newOwedCycle(input, 1, createdAt) : null,
    openAttempt: null,
    cooldownUntilAt: null,
    cancelAtPeriodEnd: false,
    resumeAt: null,
    latest: {
      version: 1,
      at: createdAt,
      actor: 'merchant',
      kind: 'created',
      terms,
      checkoutExpiresAt: input.checkoutExpiresAt,
    },
  };
}

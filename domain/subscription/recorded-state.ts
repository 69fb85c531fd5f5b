import { isIntervalUnit, INTERVAL_UNITS } from '../calendar.ts';
import { currencyOf } from '../currencies.ts';
import { DISPUTE_STATUSES } from '../dispute.ts';
import { isAmountMinor } from '../money.ts';
import { ATTEMPT_TRIGGERS } from '../payment-intent.ts';
import { UNPAID_FROM } from '../retry-plan.ts';
import { ACTORS } from './actor.ts';
import type { DateSetter } from './actor.ts';
import type { ChargeCause } from './charge-cause.ts';
import type { Entry } from './entries.ts';
import { memberOf } from './read-command.ts';
import { END_REASONS } from './end-reason.ts';
import { calendarDate, SUBSCRIPTION_STATUSES } from './state.ts';
import type { SubscriptionState } from './state.ts';

export class UnreadableStateError extends Error {
  override readonly name = 'UnreadableStateError';
}

/** @throws UnreadableStateError if a step of the subscription could fail on the recorded state. */
export function readState(value: unknown): SubscriptionState {
  const problem = stateProblem(value);
  if (problem === null) return value as SubscriptionState; // every field was checked
  const id = memberOf(value, 'subscriptionId');
  const subject = typeof id === 'string' ? id : 'a subscription';
  throw new UnreadableStateError(`the recorded state of ${subject} cannot be read: ${problem}`);
}

/** Returns why a recorded state cannot be read, from the path of the first wrong field. Ignores unknown fields. */
export function stateProblem(value: unknown): string | null {
  return STATE(value, '') ?? togetherProblem(value as SubscriptionState);
}

type Shape = (value: unknown, path: string) => string | null;

const is =
  (isRight: (value: unknown) => boolean, expected: string): Shape =>
  (value, path) =>
    isRight(value) ? null : `${path} ${expected}`;

const oneOf = (values: readonly unknown[]) =>
  is((value) => values.includes(value), `must be one of ${values.join(', ')}`);

const orNull =
  (shape: Shape): Shape =>
  (value, path) =>
    value === null ? null : shape(value, path);

const orAbsent =
  (shape: Shape): Shape =>
  (value, path) =>
    value === undefined ? null : shape(value, path);

const listOf =
  (shape: Shape): Shape =>
  (value, path) =>
    Array.isArray(value)
      ? firstOf(value, (member, index) => shape(member, `${path}[${index}]`))
      : `${path} must be an array`;

const object =
  (fields: Readonly<Record<string, Shape>>): Shape =>
  (value, path) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? firstOf(Object.entries(fields), ([field, shape]) =>
          shape(memberOf(value, field), path === '' ? field : `${path}.${field}`),
        )
      : `${path === '' ? 'it' : path} must be an object`;

/** An object whose field `name` says which other fields it has. */
function oneKindOf<Kind extends string>(
  name: string,
  kinds: Readonly<Record<Kind, Readonly<Record<string, Shape>>>>,
  common: Readonly<Record<string, Shape>> = {},
): Shape {
  const named = object({ [name]: oneOf(Object.keys(kinds)), ...common });
  return (value, path) => {
    const problem = named(value, path);
    return problem ?? object(kinds[memberOf(value, name) as Kind])(value, path);
  };
}

function firstOf<T>(values: readonly T[], problemOf: (value: T, index: number) => string | null) {
  for (const [index, value] of values.entries()) {
    const problem = problemOf(value, index);
    if (problem !== null) return problem;
  }
  return null;
}

/** The latest instant that JavaScript can write as a date. */
const INSTANT_MAX = 8_640_000_000_000_000;

const isWhole = (value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): boolean =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;

const text = is((value) => typeof value === 'string', 'must be text');
const count = is((value) => isWhole(value, 0), 'must be an integer of at least 0');
const positive = is((value) => isWhole(value, 1), 'must be an integer of at least 1');
const instant = is((value) => isWhole(value, 0, INSTANT_MAX), 'must be epoch milliseconds');
const amount = is(isAmountMinor, 'must be an integer of at least 0');
const flag = is((value) => typeof value === 'boolean', 'must be true or false');
const interval = is(isIntervalUnit, `must be one of ${INTERVAL_UNITS.join(', ')}`);
const currency = is(
  (value) => typeof value === 'string' && currencyOf(value) !== undefined,
  'must be a currency of the table',
);

const DATE_SETTERS: Record<DateSetter['actor'], Record<string, Shape>> = {
  merchant: { commandId: text },
  operator: { commandId: text },
  payer: {},
  retry_plan: {},
};
const DATE_SETTER = oneKindOf('actor', DATE_SETTERS);

const CAUSE = oneKindOf<ChargeCause['rule']>('rule', {
  due_date: {
    dueAt: instant,
    anchorAt: instant,
    index: count,
    interval,
    intervalCount: positive,
  },
  retry_plan: {
    plannedAt: instant,
    retry: positive,
    delaysMs: listOf(count),
    previousAt: instant,
  },
  set_date: { plannedAt: instant, setBy: DATE_SETTER },
  command: { commandId: text, actor: oneOf(ACTORS) },
  payer: {},
  adopted: {},
});

const ATTEMPT = {
  cycleNumber: positive,
  intentId: text,
  attemptNumber: positive,
  trigger: oneOf(ATTEMPT_TRIGGERS),
  orderedBy: orAbsent(oneOf(['operator'])),
  dateSetBy: orAbsent(oneOf(Object.keys(DATE_SETTERS))),
  byPerson: orAbsent(flag),
};
const ORDERED = { commandId: text };
const MONEY = { amountMinor: amount, currency };

const TERMS = object({
  amountMinor: amount,
  currency,
  interval,
  intervalCount: positive,
  cycleCount: positive,
  upfrontAmountMinor: orNull(amount),
  trial: orNull(object({ interval, count: positive })),
});

const RETRY_PLAN = object({
  delaysMs: listOf(count),
  afterExhausted: oneOf(['stay_unpaid', 'end']),
  unpaidFrom: orAbsent(oneOf(UNPAID_FROM)),
});

const ENTRY = oneKindOf<Entry['kind']>(
  'kind',
  {
    created: { terms: TERMS, checkoutExpiresAt: instant },
    imported: {
      terms: TERMS,
      status: oneOf(['ACTIVE', 'TRIALING']),
      anchorAt: instant,
      nextIndex: count,
      cyclesCharged: count,
      currentPeriodEndAt: instant,
    },
    edited: {
      ...ORDERED,
      amountMinor: orAbsent(amount),
      cycleCount: orAbsent(positive),
      every: orAbsent(object({ interval, intervalCount: positive })),
      nextPaymentAt: orAbsent(instant),
    },
    cancellation_planned: { ...ORDERED, endAt: instant },
    cancellation_withdrawn: ORDERED,
    manual_retry: ORDERED,
    ended: {
      reason: oneOf(END_REASONS),
      rule: oneOf(['command', 'period_end', 'checkout_expiry']),
      commandId: orAbsent(text),
    },
    paused: { ...ORDERED, resumeAt: orNull(instant) },
    unpaused: {
      nextPaymentAt: instant,
      needsMethod: flag,
      rule: oneOf(['command', 'pause_end']),
      commandId: orAbsent(text),
    },
    trial_begun: { until: instant, paymentMethodId: orAbsent(text) },
    authentication_begun: {},
    method_replaced: { waitsUntilAt: orNull(instant), paymentMethodId: orAbsent(text) },
    paid: { ...ATTEMPT, ...MONEY },
    declined: {
      ...ATTEMPT,
      code: text,
      gatewayCode: orAbsent(text),
      retry: orAbsent(oneOf(['never'])),
      isWithdrawn: orAbsent(flag),
      plan: RETRY_PLAN,
    },
    unanswered: ATTEMPT,
    payer_asked: ATTEMPT,
    review: { ...ATTEMPT, reason: text },
    unsent: { ...ATTEMPT, reason: text },
    disputed: { ...MONEY, status: oneOf(DISPUTE_STATUSES), reason: text },
    late_charge: { ...MONEY, gatewayKey: text },
    adopted: { ...MONEY, gatewayKey: text, cycleNumber: positive, dueAt: instant },
  },
  { version: positive, at: instant, actor: oneOf(ACTORS) },
);

const STATE = object({
  schemaVersion: oneOf([1]),
  subscriptionId: text,
  merchantId: text,
  customerId: text,
  version: positive,
  status: oneOf(SUBSCRIPTION_STATUSES),
  endReason: orNull(oneOf(END_REASONS)),
  terms: TERMS,
  createdAt: instant,
  checkoutExpiresAt: instant,
  anchorAt: orNull(instant),
  nextIndex: count,
  cyclesCharged: count,
  paymentMethodId: orNull(text),
  currentPeriodEndAt: orNull(instant),
  owed: orNull(
    object({
      cycleNumber: positive,
      intentId: text,
      amountMinor: amount,
      dueAt: instant,
      attempts: count,
      retryPlan: orNull(RETRY_PLAN),
      retriesUsed: count,
      automaticAttemptsAt: listOf(instant),
      nextRetryAt: orNull(instant),
      dateSetBy: orAbsent(DATE_SETTER),
      lastDeclineCode: orNull(text),
      retriesStopped: flag,
      authentications: count,
      payer: orAbsent(object({ sessionId: text, at: instant })),
    }),
  ),
  openAttempt: orNull(
    object({
      attemptNumber: positive,
      trigger: text,
      cause: CAUSE,
      paymentMethodId: text,
      commandId: orNull(text),
      startedAt: instant,
      lookups: count,
      lookupAt: instant,
      reviewReason: orAbsent(text),
      unsentReason: orAbsent(text),
      actor: orAbsent(text),
      voidedBy: orNull(text),
      sessionId: orAbsent(text),
      awaitsPayer: orAbsent(flag),
      paysUntilAt: orAbsent(instant),
    }),
  ),
  cooldownUntilAt: orNull(instant),
  cancelAtPeriodEnd: flag,
  resumeAt: orNull(instant),
  testClockId: orNull(text),
  jitterMs: count,
  jitterFor: orAbsent(instant),
  latest: ENTRY,
});

/** Checks the conditions between fields. Each field has already been checked alone. */
function togetherProblem(state: SubscriptionState): string | null {
  const { status, anchorAt, currentPeriodEndAt, owed, openAttempt, cyclesCharged } = state;
  if (openAttempt && !owed) return 'owed must be an object while an attempt is open';
  if (owed && owed.cycleNumber !== cyclesCharged + 1) {
    return 'owed.cycleNumber must be 1 more than cyclesCharged';
  }
  if (status !== 'TRIALING' && status !== 'ACTIVE') return null;
  if (anchorAt === null) return `anchorAt must be epoch milliseconds in ${status}`;
  if (currentPeriodEndAt === null) {
    return `currentPeriodEndAt must be epoch milliseconds in ${status}`;
  }
  return calendarDate(state, state.nextIndex) <= INSTANT_MAX
    ? null
    : 'nextIndex must be the index of a date';
}

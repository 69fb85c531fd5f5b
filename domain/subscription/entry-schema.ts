import { z } from 'zod';
import { INTERVAL_UNITS } from '../calendar.ts';
import { currencyOf } from '../currencies.ts';
import { STOPPING_ADVICE } from '../declines.ts';
import { DISPUTE_STATUSES } from '../dispute.ts';
import { NOTICE_TYPES } from '../events.ts';
import { ATTEMPT_TRIGGERS } from '../payment-intent.ts';
import { AFTER_EXHAUSTED, UNPAID_FROM } from '../retry-plan.ts';
import type { RetryPlan } from '../retry-plan.ts';
import { ACTORS, ORDERERS } from './actor.ts';
import { END_REASONS } from './end-reason.ts';

/** The latest instant that JavaScript can write as a date. */
export const INSTANT_MAX = 8_640_000_000_000_000;

export const object = <Fields extends z.core.$ZodLooseShape>(fields: Fields) =>
  z.object(fields, { error: 'must be an object' });

export const listOf = <Member extends z.ZodType>(member: Member) =>
  z.array(member, { error: 'must be an array' });

export const oneOf = <const Value extends string>(values: readonly Value[]) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });

const whole = (min: number, max: number, error: string) =>
  z.int({ error }).min(min, { error }).max(max, { error });

export const text = z.string({ error: 'must be text' });
export const flag = z.boolean({ error: 'must be true or false' });
export const isTrue = z.literal(true, { error: 'must be true' });
export const count = whole(0, Number.MAX_SAFE_INTEGER, 'must be an integer of at least 0');
export const positive = whole(1, Number.MAX_SAFE_INTEGER, 'must be an integer of at least 1');
export const amount = whole(0, Number.MAX_SAFE_INTEGER, 'must be an integer of at least 0');
export const instant = whole(0, INSTANT_MAX, 'must be epoch milliseconds');
const interval = oneOf(INTERVAL_UNITS);
const currency = text.refine((code) => currencyOf(code) !== undefined, {
  error: 'must be a currency of the table',
});

/** An object whose field `name` says which other fields it has. */
const oneKindOf = <
  const Name extends string,
  const Kinds extends readonly [z.ZodObject, ...z.ZodObject[]],
>(
  name: Name,
  kinds: Kinds,
) => {
  const names = kinds.flatMap(({ shape }) => [...(shape[name]?._zod.values ?? [])]);
  return z.discriminatedUnion(name, kinds, {
    error: ({ code }) =>
      code === 'invalid_union' ? `must be one of ${names.join(', ')}` : 'must be an object',
  });
};

/** The terms that the payer agreed to. An `edit` changes them. */
export const TERMS = object({
  amountMinor: amount,
  currency,
  interval,
  intervalCount: positive,
  cycleCount: positive,
  /** The amount of the first cycle; null if it is `amountMinor`. */
  upfrontAmountMinor: amount.nullable(),
  trial: object({ interval, count: positive }).nullable(),
});
export type Terms = z.infer<typeof TERMS>;

export const RETRY_PLAN: z.ZodType<RetryPlan> = object({
  delaysMs: listOf(count),
  afterExhausted: oneOf(AFTER_EXHAUSTED),
  unpaidFrom: oneOf(UNPAID_FROM).exactOptional(),
});

const ORDERED = { commandId: text };

const CARD_LIMIT = { attempts: positive, hours: positive };

/**
 * Who set the date of an attempt: a command, or the payer with another payment method. `retry_plan`: the plan that such
 * a payment method has ended. `gateway`: the bank had advised a later date, or reported new details of the card.
 * `schedule`: the card had so many unpaid attempts that the charge had to wait.
 */
export const DATE_SETTER = oneKindOf('actor', [
  object({ actor: oneOf(['merchant', 'operator']), ...ORDERED }),
  object({ actor: oneOf(['payer', 'retry_plan']) }),
  object({ actor: oneOf(['gateway']), said: oneOf(['not_before', 'new_details']) }),
  object({ actor: oneOf(['schedule']), ...CARD_LIMIT }),
]);
export type DateSetter = z.infer<typeof DATE_SETTER>;

/** Why an attempt on a cycle was opened: the rule, and the facts from which it followed. Stored with the attempt. */
export const CAUSE = oneKindOf('rule', [
  /** The date is `anchorAt` plus `index` times `intervalCount` intervals, unless no payment had set an anchor. */
  object({
    rule: oneOf(['due_date']),
    dueAt: instant,
    anchorAt: instant,
    index: count,
    interval,
    intervalCount: positive,
  }),
  /** Retry number `retry` of the plan `delaysMs`, counted from the automatic attempt at `previousAt`. */
  object({
    rule: oneOf(['retry_plan']),
    plannedAt: instant,
    retry: positive,
    delaysMs: listOf(count),
    previousAt: instant,
  }),
  /** A command, a new payment method or the bank's advice had set the date of the next attempt. */
  object({ rule: oneOf(['set_date']), plannedAt: instant, setBy: DATE_SETTER }),
  object({ rule: oneOf(['command']), ...ORDERED, actor: oneOf(ORDERERS) }),
  /** `adopted`: `verify --adopt` copied the attempt from the gateway's book. */
  object({ rule: oneOf(['payer', 'adopted']) }),
]);
export type ChargeCause = z.infer<typeof CAUSE>;

const OF_ATTEMPT = object({
  cycleNumber: positive,
  intentId: text,
  attemptNumber: positive,
  trigger: oneOf(ATTEMPT_TRIGGERS),
  /** Who ordered the attempt. Absent: `trigger` implies the actor. */
  orderedBy: oneOf(['operator', 'payer']).exactOptional(),
  /** Who set the date of the attempt, in place of the retry plan. */
  dateSetBy: oneOf([...ORDERERS, 'retry_plan', 'gateway', 'schedule']).exactOptional(),
  /** A person decided the outcome in manual review. */
  byPerson: isTrue.exactOptional(),
});
export type OfAttempt = z.infer<typeof OF_ATTEMPT>;

const MONEY = { amountMinor: amount, currency };

const ADVICE = oneKindOf('kind', [
  object({ kind: oneOf(STOPPING_ADVICE) }),
  object({ kind: oneOf(['not_before']), at: instant }),
]);

const CHARGE_AT_GATEWAY = object({ gatewayKey: text, ...MONEY });
export type ChargeAtGateway = z.infer<typeof CHARGE_AT_GATEWAY>;

export const CHARGE_AHEAD = { chargeAt: instant, amountMinor: amount };
export const PLANNED_NOTICE = { notice: oneOf(NOTICE_TYPES), dueAt: instant };

const entry = <const Kind extends string, Fields extends z.core.$ZodLooseShape>(
  kinds: readonly Kind[],
  fields: Fields,
) =>
  object({ version: positive, at: instant, actor: oneOf(ACTORS), kind: oneOf(kinds), ...fields });

/**
 * What made one version of a subscription, and the rule and facts from which it followed: a row of its ledger, without
 * personal data. `at` is in its own time.
 */
export const ENTRY = oneKindOf('kind', [
  entry(['created'], { terms: TERMS, checkoutExpiresAt: instant }),
  entry(['imported'], {
    terms: TERMS,
    status: oneOf(['ACTIVE', 'TRIALING']),
    anchorAt: instant,
    nextIndex: count,
    cyclesCharged: count,
    currentPeriodEndAt: instant,
  }),
  entry(['edited'], {
    ...ORDERED,
    amountMinor: amount.exactOptional(),
    cycleCount: positive.exactOptional(),
    every: object({ interval, intervalCount: positive }).exactOptional(),
    nextPaymentAt: instant.exactOptional(),
  }),
  entry(['cancellation_planned'], { ...ORDERED, endAt: instant }),
  entry(['cancellation_withdrawn', 'manual_retry'], ORDERED),
  entry(['ended'], {
    reason: oneOf(END_REASONS),
    rule: oneOf(['command', 'period_end', 'checkout_expiry']),
    commandId: text.exactOptional(),
  }),
  entry(['paused'], { ...ORDERED, resumeAt: instant.nullable() }),
  entry(['unpaused'], {
    nextPaymentAt: instant,
    /** True: only another payment method can be charged. */
    needsMethod: flag,
    rule: oneOf(['command', 'pause_end']),
    commandId: text.exactOptional(),
  }),
  entry(['trial_begun'], { until: instant, paymentMethodId: text.exactOptional() }),
  entry(['authentication_begun'], {}),
  entry(['method_replaced'], {
    paymentMethodId: text.exactOptional(),
  }),
  entry(['paid'], { ...OF_ATTEMPT.shape, ...MONEY }),
  entry(['declined'], {
    ...OF_ATTEMPT.shape,
    code: text,
    gatewayCode: text.exactOptional(),
    networkCode: text.exactOptional(),
    advice: ADVICE.exactOptional(),
    isWithdrawn: isTrue.exactOptional(),
    /** The merchant's plan at that time. */
    plan: RETRY_PLAN,
  }),
  /** No attempt was opened, because of the limits of card networks. */
  entry(['limited'], { cycleNumber: positive, untilAt: instant, ...CARD_LIMIT }),
  entry(['unanswered', 'payer_asked'], OF_ATTEMPT.shape),
  entry(['review', 'unsent'], { ...OF_ATTEMPT.shape, reason: text }),
  entry(['disputed'], { ...MONEY, status: oneOf(DISPUTE_STATUSES), reason: text }),
  entry(['late_charge'], CHARGE_AT_GATEWAY.shape),
  /** The card network has given the gateway new details of the card. */
  entry(['details_updated'], {}),
  /** `notice_missed`: the charge was due before the notice could be given. */
  entry(['notice_given', 'notice_missed'], {
    ...PLANNED_NOTICE,
    ...CHARGE_AHEAD,
    /** When earlier notices of this kind had been due, in whose place it is given. */
    missedAt: listOf(instant).exactOptional(),
    /** The charge is not made before. */
    chargeFromAt: instant.exactOptional(),
  }),
  entry(['adopted'], { ...CHARGE_AT_GATEWAY.shape, cycleNumber: positive, dueAt: instant }),
]);
export type Entry = z.infer<typeof ENTRY>;

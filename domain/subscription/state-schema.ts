import { z } from 'zod';
import { ATTEMPT_TRIGGERS } from '../payment-intent.ts';
import { END_REASONS } from './end-reason.ts';
import {
  CAUSE,
  CHARGE_AHEAD,
  DATE_SETTER,
  ENTRY,
  PLANNED_NOTICE,
  RETRY_PLAN,
  TERMS,
  amount,
  count,
  flag,
  instant,
  isTrue,
  listOf,
  object,
  oneOf,
  positive,
  text,
} from './entry-schema.ts';
import { SUBSCRIPTION_STATUSES } from './status.ts';

/** A billing cycle that is due and not yet paid. The amount of an owed cycle is fixed. */
const OWED_CYCLE = object({
  cycleNumber: positive,
  intentId: text,
  amountMinor: amount,
  dueAt: instant,
  /** The number of attempts started, and thus the number of the latest attempt. */
  attempts: count,
  /** The merchant's retry plan when the automatic retries of this cycle last began; null if they never began. */
  retryPlan: RETRY_PLAN.nullable(),
  retriesUsed: count,
  /** Starts of automatic attempts, oldest first. */
  automaticAttemptsAt: listOf(instant),
  nextRetryAt: instant.nullable(),
  /** Who set `nextRetryAt`. Absent: the retry plan. */
  dateSetBy: DATE_SETTER.optional(),
  lastDeclineCode: text.nullable(),
  /** True if a decline has stopped the automatic retries. New details of a payment method restart them. */
  retriesStopped: flag,
  /** The number of attempts that the payer confirmed with the bank, or was to confirm. */
  authentications: count,
  /** The page and real time of a method that was given while an attempt was open. The next attempt consumes it. */
  payer: object({ sessionId: text, at: instant }).exactOptional(),
});
export type OwedCycle = z.infer<typeof OWED_CYCLE>;

/** The attempt whose outcome is not known yet. A subscription has at most one. */
const OPEN_ATTEMPT = object({
  attemptNumber: positive,
  trigger: oneOf(ATTEMPT_TRIGGERS),
  cause: CAUSE,
  paymentMethodId: text,
  /** The command that waits for this attempt's outcome; null for a due step. */
  commandId: text.nullable(),
  startedAt: instant,
  /** The number of sends and look-ups that ended without an outcome. */
  lookups: count,
  /** The instant of the next send or look-up, in real time even on a test clock. */
  lookupAt: instant,
  /** Why the attempt needs manual review. An attempt with this field is looked up once a day. */
  reviewReason: text.exactOptional(),
  /** Why the latest send did not reach the gateway, which has no charge of the attempt. Absent: it may have one. */
  unsentReason: text.optional(),
  actor: oneOf(['operator', 'payer']).exactOptional(),
  /** The command that voided the attempt, which is not sent any more. A charge that the gateway has already counts. */
  voidedBy: oneOf(['cancel', 'pause', 'replacePaymentMethod']).nullable(),
  /** The session of the hosted page on which the payer caused the attempt. Absent: the payer is absent. */
  sessionId: text.exactOptional(),
  awaitsPayer: isTrue.exactOptional(),
  /** The end of the period that it pays for, if a command has moved the dates while it was open. */
  paysUntilAt: instant.optional(),
});
export type OpenAttempt = z.infer<typeof OPEN_ATTEMPT>;

/** The state in the row and in the argument of a run, as JSON. Instants are in its own time, except `lookupAt`. */
export const STATE = object({
  schemaVersion: z.literal(1, { error: 'must be one of 1' }),
  subscriptionId: text,
  merchantId: text,
  customerId: text,
  version: positive,
  status: oneOf(SUBSCRIPTION_STATUSES),
  endReason: oneOf(END_REASONS).nullable(),
  terms: TERMS,
  createdAt: instant,
  checkoutExpiresAt: instant,
  /** Date 0 of the current calendar; null until a trial begins or a first payment succeeds. */
  anchorAt: instant.nullable(),
  nextIndex: count,
  cyclesCharged: count,
  paymentMethodId: text.nullable(),
  /** The end of the trial, then of the period that the payer has paid for; null before both. */
  currentPeriodEndAt: instant.nullable(),
  owed: OWED_CYCLE.nullable(),
  openAttempt: OPEN_ATTEMPT.nullable(),
  /** A manual retry is refused before this instant; null without a cooldown. */
  cooldownUntilAt: instant.nullable(),
  /** True if the subscription ends with its period. Has an effect only in TRIALING and ACTIVE. */
  cancelAtPeriodEnd: flag,
  /** The instant at which a pause ends without a command. Null: only an unpause ends the pause. */
  resumeAt: instant.nullable(),
  testClockId: text.nullable(),
  /** The delay of the charge after its calendar date, in ms. */
  jitterMs: count,
  /** The date to which `jitterMs` belongs. Absent: it belongs to every date, because the merchant has set it. */
  jitterFor: instant.exactOptional(),
  /** The notices of the next charge that are not given yet, earliest first. Absent or null: none was planned. */
  notices: object({
    ...CHARGE_AHEAD,
    pending: listOf(object({ ...PLANNED_NOTICE, leadMs: positive.exactOptional() })),
  })
    .nullable()
    .optional(),
  /** The given notices of the next charge. Each counts from `countsFromAt`. No charge is made before `chargeFromAt`. */
  givenNotices: listOf(
    object({
      ...CHARGE_AHEAD,
      notice: PLANNED_NOTICE.notice,
      countsFromAt: instant,
      chargeFromAt: instant.exactOptional(),
    }),
  ).optional(),
  /** How many full years had passed at the latest charge of which a reminder was given. */
  remindedYears: positive.exactOptional(),
  /** The amount before an edit raised it, until the new one is paid. */
  raised: object({ fromMinor: amount }).optional(),
  /** The latest entry of the ledger. Its version is lower than `version` if an attempt was opened since. */
  latest: ENTRY,
});
export type SubscriptionState = z.infer<typeof STATE>;

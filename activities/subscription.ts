import type { Db } from '../db/client.ts';
import { loadRetryPlan } from '../db/repositories/merchants/settings.ts';
import { isOpenAttemptDecided } from '../db/repositories/payments/reviews.ts';
import type { Attempt } from '../db/repositories/subscriptions/attempts.ts';
import { openAttemptRow } from '../db/repositories/subscriptions/open-attempt.ts';
import type { Opening } from '../db/repositories/subscriptions/open-attempt.ts';
import {
  endHold,
  findCommand,
  findOtherVersion,
  loadSnapshot,
  recordClockReached,
  recordHold,
} from '../db/repositories/subscriptions/row.ts';
import type { VersionRef } from '../db/repositories/subscriptions/row.ts';
import {
  withoutCommand,
  writeChange,
  writeLookup,
} from '../db/repositories/subscriptions/write-change.ts';
import type { NotMoved, Transition } from '../db/repositories/subscriptions/write-change.ts';
import { datedAdvice } from '../domain/declines.ts';
import type { RefusalReason } from '../domain/errors.ts';
import { withCancelUrl, withUpdateLink } from '../domain/events.ts';
import type { StreamRef } from '../domain/events.ts';
import type { NoticeRules } from '../domain/notice-rules.ts';
import type { Settlement } from '../domain/settlement.ts';
import {
  applyOutcome,
  isEarlyLookup,
  postponed,
  resultOf,
} from '../domain/subscription/apply-attempt.ts';
import type { AttemptOutcome } from '../domain/subscription/apply-attempt.ts';
import { isSuperseded } from '../domain/subscription/authentication.ts';
import type { CommandResult } from '../domain/subscription/commands.ts';
import { planNotices } from '../domain/subscription/plan-notices.ts';
import { takePlace } from '../domain/subscription/renewal-places.ts';
import type { Snapshot } from '../domain/subscription/snapshot.ts';
import { latestChargeAt } from '../domain/subscription/charge-time.ts';
import { isBilled, isChargeable } from '../domain/subscription/state.ts';
import type { ChargeableState, SubscriptionState } from '../domain/subscription/state.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { declarationPath, updateMethodLink } from '../runtime/payer-links.ts';
import type { LinkSettings } from '../runtime/payer-links.ts';
import { collect, isPayerGone, presentPayerOf } from './charging/charge-exchange.ts';
import { sendDeadline } from './charging/gateway-exchange.ts';
import { cachedNoticeRules, planFacts } from './charging/notice-plan.ts';
import type { NoticeRulesOf } from './charging/notice-plan.ts';
import { redeemToken } from './charging/redeem-token.ts';
import type { RedeemTokenInput, RedeemTokenResult } from './charging/redeem-token.ts';
import type { ActivityDeps, ChargingDeps } from './deps.ts';
import { invalidInput } from './failures.ts';
import { watchUnproven } from './orders/late-charges.ts';

/** Creates the activities of a subscription, except the charge. A repeat of each activity is safe. */
export function createTransitionActivities(
  deps: Pick<
    ActivityDeps,
    'db' | 'gateways' | 'wakeStream' | 'places' | 'links' | 'endPayerPriority'
  >,
) {
  const rulesOf = cachedNoticeRules(deps.db);
  return {
    /** Records a transition once, with the delay and the notices of the next charge. `writeChange` describes the result. */
    async record({
      realNowAt,
      ...given
    }: Transition & { realNowAt: number }): Promise<
      NotMoved | { kind: 'recorded'; place: Planned | null }
    > {
      const rules = await rulesOf(given.change.state.merchantId);
      const { change, place } = await completeChange(deps, rules, given, realNowAt);
      const { merchantId, subscriptionId, latest } = change.state;
      const recorded = await writeChange(deps.db, { ...given, change });
      failpoint('after_transition');
      // A repeat, too: the process of the first call may have died before the delivery.
      if (recorded.kind !== 'stale' && change.events.length > 0) {
        await deps.wakeStream({ merchantId, streamId: subscriptionId });
      }
      if (recorded.kind !== 'recorded') return recorded;
      if (latest.kind === 'trial_begun') deps.endPayerPriority({ merchantId, subscriptionId });
      return { kind: 'recorded', place };
    },

    /** Requests the delivery of the stream's pending webhook events. Never throws. A repeat is safe. */
    async wakeStream(stream: StreamRef): Promise<void> {
      await deps.wakeStream(stream);
    },

    /**
     * Records that every step up to `reachedAt` on the test clock is executed. If the row has another version, returns
     * its state, else null.
     */
    async clockReached(
      input: VersionRef & { reachedAt: number },
    ): Promise<SubscriptionState | null> {
      const { reachedAt, ...at } = input;
      return recordClockReached(deps.db, at, reachedAt);
    },

    /**
     * Loads the subscription's row. `isReviewDecided`: an operator has decided the open attempt, and the state does
     * not have it yet. A `version` above the row's is recorded as a hold; else a hold ends.
     */
    async loadSubscription(input: {
      merchantId: string;
      subscriptionId: string;
      version: number;
    }): Promise<Pick<Snapshot, 'state' | 'entries' | 'clock'> & { isReviewDecided?: boolean }> {
      const { version, ...ref } = input;
      const row = await loadSnapshot(deps.db, ref);
      if (!row) throw invalidInput(`no subscription ${ref.subscriptionId}`);
      const snapshot = { state: row.state, entries: row.entries, clock: row.clock };
      await (row.state.version < version ? recordHold : endHold)(deps.db, ref);
      // Another process may have recorded a transition and died before it delivered the events.
      await deps.wakeStream({ merchantId: ref.merchantId, streamId: ref.subscriptionId });
      const isReviewDecided = await isOpenAttemptDecided(deps.db, snapshot.state);
      return isReviewDecided ? { ...snapshot, isReviewDecided } : snapshot;
    },

    /** See `redeemToken`. Sends nothing and returns `adopt` if the row has another version. */
    async redeemToken({
      at,
      ...input
    }: RedeemTokenInput & { at: VersionRef }): Promise<
      RedeemTokenResult | { kind: 'adopt'; state: SubscriptionState }
    > {
      const state = await findOtherVersion(deps.db, at);
      return state ? { kind: 'adopt', state } : redeemToken(deps, input);
    },
  };
}

export interface ChargeAttemptInput {
  state: SubscriptionState;
  /** The attempt's transition, recorded before the send. Null if it is recorded already. */
  opening: Opening | null;
  /** Now, by the subscription's test clock; real time if it has none. */
  nowAt: number;
  /** The workflow's real time. The delay before the next look-up starts at this instant. */
  realNowAt: number;
}

/**
 * `settled`: the outcome and its transition are recorded; `applyOutcome` and `place` give the recorded state. `pending`:
 * still UNKNOWN or in REVIEW, nothing recorded. `adopt`: the row holds a state that does not follow from the caller's;
 * `result` is the command's, if known. `refused`: the attempt that a command wants may not be opened.
 */
export type ChargeAttemptResult =
  | { kind: 'settled'; outcome: AttemptOutcome; place: Planned | null }
  | { kind: 'pending' }
  | { kind: 'adopt'; state: SubscriptionState; result: CommandResult | null }
  | { kind: 'refused'; refusal: RefusalReason };

/**
 * Creates `chargeAttempt`, which charges an attempt exactly once: its row and key are committed before the send, and
 * a repeat finds them. Throws if no attempt is open or the database fails.
 */
export function createChargingActivities(deps: ChargingDeps) {
  const rulesOf = cachedNoticeRules(deps.db);
  return {
    async chargeAttempt(input: ChargeAttemptInput): Promise<ChargeAttemptResult> {
      if (!isChargeable(input.state)) throw invalidInput('no attempt is open in this state');
      failpoint('before_opening');
      const opened = await openAttemptRow(deps.db, input.state, input.opening);
      failpoint('after_opening');
      if (opened.kind === 'refused') return opened;
      const { merchantId, subscriptionId } = input.state;
      const stream = { merchantId, streamId: subscriptionId };
      if (opened.kind === 'adopt') {
        // The process that recorded the transition may have died before it delivered the events.
        await deps.wakeStream(stream);
        return opened;
      }
      const { state, attempt } = opened;
      const { openAttempt } = state;
      // A look-up before its scheduled time counts as a repeat of the previous look-up, so that such look-ups do not
      // shorten the 24 h after which an unknown outcome goes to REVIEW.
      const isEarly = isEarlyLookup(openAttempt, input.realNowAt);
      const lookups = isEarly ? openAttempt.lookups - 1 : openAttempt.lookups;
      const { realNowAt } = input;
      const limits = {
        stopAt: sendDeadline(deps, lookups),
        lookups,
        realNowAt,
        isVoided:
          openAttempt.voidedBy !== null ||
          isPayerGone(attempt, state.checkoutExpiresAt, input.nowAt),
        isFresh: opened.isFresh,
        ...(await presentPayerOf(deps, attempt, {
          nowAt: realNowAt,
          savesMethod: true,
          isSuperseded: isSuperseded(state),
        })),
      };
      const cycle = { subscriptionId, cycleNumber: state.owed.cycleNumber };
      const settlement = await collect(deps, attempt, cycle, limits);
      if (isUnchanged(attempt, settlement)) {
        const waiting = { ...state, openAttempt: postponed(state, openAttempt, realNowAt) };
        const newer = await writeLookup(deps.db, waiting, attempt, settlement);
        if (newer) return adoption(deps.db, state, newer);
        return state === input.state
          ? { kind: 'pending' }
          : { kind: 'adopt', state: waiting, result: null };
      }
      const settled = await settle({ ...deps, rulesOf }, input, state, attempt, settlement);
      failpoint('after_settling');
      await watchUnproven(deps.orders, attempt, settlement);
      await deps.wakeStream(stream);
      if (settlement.kind === 'succeeded' && state.status === 'CREATED') {
        deps.endPayerPriority({ merchantId, subscriptionId });
      }
      return settled;
    },
  };
}

/** True if a look-up changed nothing. The bank's first question to the payer is a change. */
function isUnchanged({ state, payerAskedAt }: Attempt, settlement: Settlement): boolean {
  if (settlement.kind === 'review') return state === 'REVIEW';
  if (settlement.kind === 'unsent') return state === 'UNSENT';
  if (settlement.kind !== 'unknown' || state !== 'UNKNOWN') return false;
  return settlement.payerUrl === undefined || payerAskedAt !== null;
}

/**
 * Records the outcome in one transaction. If the row no longer has this open attempt, records nothing and returns
 * `adopt`.
 */
async function settle(
  deps: ChargingDeps & { rulesOf: NoticeRulesOf },
  input: ChargeAttemptInput,
  state: ChargeableState,
  attempt: Attempt,
  settlement: Settlement,
): Promise<ChargeAttemptResult> {
  const rules = await deps.rulesOf(state.merchantId);
  return deps.db.transaction(async (tx): Promise<ChargeAttemptResult> => {
    const { nowAt, realNowAt } = input;
    const outcome = await outcomeOf(tx, state, settlement, nowAt);
    const applied = applyOutcome(state, outcome, nowAt, realNowAt);
    const given = { change: applied, nowAt };
    const { change, place } = await completeChange({ ...deps, db: tx }, rules, given, realNowAt);
    const result = resultOf(state.openAttempt, outcome, change.state);
    const settled = { settles: attempt, settlement, before: state, result };
    const recorded = await writeChange(tx, withoutCommand(change, nowAt), settled);
    // An outcome that a stalled worker found is discarded. The subscription's current run looks the outcome up.
    if (recorded.kind !== 'recorded') return adoption(tx, state, recorded.state);
    failpoint('before_settling_commits');
    return state === input.state
      ? { kind: 'settled', outcome, place }
      : { kind: 'adopt', state: change.state, result };
  });
}

/** Returns `adopt` with the row's state `row`, and with the result of the command that opened the attempt. */
async function adoption(
  db: Db,
  { openAttempt: { commandId }, ...ref }: ChargeableState,
  row: SubscriptionState,
): Promise<ChargeAttemptResult> {
  const known = commandId === null ? null : await findCommand(db, ref, commandId);
  return { kind: 'adopt', state: row, result: known?.result ?? null };
}

/** Returns what the rules need of a settlement. The rest, such as the payer's page, stays out of the history. */
async function outcomeOf(
  tx: Db,
  { merchantId }: ChargeableState,
  settlement: Settlement,
  nowAt: number,
): Promise<AttemptOutcome> {
  const { kind } = settlement;
  switch (kind) {
    case 'succeeded':
      return settlement.byPerson ? { kind, byPerson: true } : { kind };
    case 'declined': {
      const { code, gatewayCode, networkCode, advice, byPerson, isWithdrawn } = settlement;
      return {
        kind,
        code,
        ...(isWithdrawn && { isWithdrawn }),
        ...(byPerson && { byPerson }),
        ...(typeof gatewayCode === 'string' && { gatewayCode }),
        ...(typeof networkCode === 'string' && { networkCode }),
        ...(advice && { advice: datedAdvice(advice, nowAt) }),
        retryPlan: await loadRetryPlan(tx, merchantId),
      };
    }
    case 'review':
    case 'unsent':
      return { kind, reason: settlement.reason };
    case 'unknown':
      return settlement.payerUrl === undefined ? { kind } : { kind, awaitsPayer: true };
  }
}

/** The delay and the notices of the next charge. The history of the run keeps both. */
type Planned = Partial<Pick<SubscriptionState, 'jitterMs' | 'jitterFor' | 'notices' | 'raised'>>;

/**
 * Adds what the rules do not know: the plan of the next charge, which is `place`, the page to cancel in notices, and the
 * link for another payment method in events of a declined cycle, if the status allows.
 */
async function completeChange(
  { db, links, places }: Pick<ActivityDeps, 'db' | 'links' | 'places'>,
  rules: NoticeRules,
  { change, nowAt }: Pick<Transition, 'change' | 'nowAt'>,
  realNowAt: number,
) {
  const { state: unplaced, events, effects } = change;
  const delay = takePlace(places, unplaced, realNowAt);
  const facts = await planFacts(db, unplaced, rules);
  const notices = planNotices(unplaced, rules, nowAt, facts);
  const place: Planned | null = delay || notices ? { ...delay, ...notices } : null;
  const state = { ...unplaced, ...place };
  const isDunning = events.some(({ dunning }) => dunning !== undefined);
  // A link expires in real time, also on a test clock.
  const linked =
    isDunning && isBilled(state.status)
      ? withUpdateLink(events, updateMethodLink(links, state, Date.now()))
      : withCancelUrl(events, cancelUrl(links, state));
  return { place, change: { state, events: linked, effects } };
}

function cancelUrl({ publicUrl }: LinkSettings, { merchantId, subscriptionId }: SubscriptionState) {
  return publicUrl + declarationPath('cancellation', merchantId, subscriptionId);
}

export interface ChargeObserver {
  /** Time in s from the instant of a renewal, after its delay, to the start of its charge. */
  renewed(lateSeconds: number): void;
  settled(outcome: { trigger: string; outcome: string; code: string }): void;
  /** A declined cycle is paid. `code`: of its latest decline. */
  recovered(cycle: { retry: string; code: string }): void;
}

type Charge = (input: ChargeAttemptInput) => Promise<ChargeAttemptResult>;

/** Reports the recorded outcomes of `charge`, and how late a renewal began. A repeat after a crash is reported again. */
export function measuredCharges(charge: Charge, observer: ChargeObserver): Charge {
  return async (input) => {
    const startedAt = Date.now();
    const result = await charge(input);
    if (result.kind === 'adopt' || result.kind === 'refused') return result;
    const { openAttempt, owed } = input.state;
    const dueAt = renewalDueAt(input);
    if (dueAt !== null) observer.renewed(Math.max(0, startedAt - dueAt) / 1_000);
    if (result.kind === 'settled') {
      const { outcome } = result;
      const code = outcome.kind === 'declined' ? outcome.code : '';
      observer.settled({ trigger: openAttempt?.trigger ?? '', outcome: outcome.kind, code });
      const declinedWith = owed?.lastDeclineCode ?? null;
      if (openAttempt && outcome.kind === 'succeeded' && declinedWith !== null) {
        const retry = String(openAttempt.attemptNumber - 1);
        observer.recovered({ retry, code: declinedWith });
      }
    }
    return result;
  };
}

/** Null if the call does not open the attempt of a due date, or if a test clock sets the date. */
function renewalDueAt({ state, opening }: ChargeAttemptInput): number | null {
  const cause = state.openAttempt?.cause;
  if (opening === null || cause?.rule !== 'due_date' || state.testClockId !== null) return null;
  return latestChargeAt(state, cause.dueAt);
}

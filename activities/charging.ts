import { loadRetryPlan } from '../db/repositories/merchant-settings.ts';
import { openFreshAttempt, settleFreshAttempt } from '../db/repositories/charge-statements.ts';
import type { FreshAttempt } from '../db/repositories/charge-statements.ts';
import {
  isChargeable,
  isSameAttempt,
  isUnproven,
  lockedState,
  openAttemptRow,
  settleAttempt,
} from '../db/repositories/attempts.ts';
import type { Attempt, ChargeableState, Opening, Settlement } from '../db/repositories/attempts.ts';
import {
  findCommand,
  recordLookup,
  recordTransition,
  settleCommand,
} from '../db/repositories/subscriptions.ts';
import type { Db } from '../db/client.ts';
import { invariant } from '../domain/errors.ts';
import {
  applyOutcome,
  postponed,
  resultOf,
  withIntent,
} from '../domain/subscription/apply-attempt.ts';
import type { AttemptOutcome } from '../domain/subscription/apply-attempt.ts';
import type { CommandResult } from '../domain/subscription/commands.ts';
import type { SubscriptionState } from '../domain/subscription/state.ts';
import type { RetryPlan } from '../domain/retry-plan.ts';
import type { PaymentGateway } from '../gateways/port.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { invalidInput } from './failures.ts';
import { collect, sendsUntil } from './gateway-exchange.ts';
import type { SendBudgetDeps } from './gateway-exchange.ts';
import { watchUnproven } from './late-charges.ts';
import type { PaymentResumption } from './maintenance.ts';

export interface ChargingDeps extends SendBudgetDeps {
  db: Db;
  gateway: PaymentGateway;
  payments: Pick<PaymentResumption, 'watchLateCharge'>;
  /** Asks for a stream's events to be delivered soon. Never throws. */
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
}

export interface ChargeAttemptInput {
  /** With the attempt open: as `openAttempt` or an accepted command left it. */
  state: SubscriptionState;
  /** The transition that opened it, recorded here before anything is sent; null if it was before. */
  opening: Opening | null;
  /** The subscription's own time. */
  nowAt: number;
  /** Real time of the caller, for when to ask the gateway again. */
  realNowAt: number;
}

/**
 * `settled`: recorded, together with the transition `applyOutcome` makes of it for the same
 * arguments. `pending`: still unknown, nothing new was recorded. `adopt`: the row had moved on; its
 * state is the one to go on from, `result` what the command that asked is answered, if it is known.
 */
export type ChargeAttemptResult =
  | { kind: 'settled'; outcome: AttemptOutcome; intentId: string }
  | { kind: 'pending' }
  | { kind: 'adopt'; state: SubscriptionState; result: CommandResult | null };

/**
 * Charging exactly once. The attempt's row and key are committed before anything is sent; run again
 * at any point it finds the row and goes on: a final row gives its outcome, one that may have been
 * sent asks the gateway by key before it sends again, always with the stored amount. A decline is a
 * value, and so is not knowing. Throws only when the database does not answer; then nothing is lost
 * and the same call finds what happened. Rules: D-32, D-40, design §4.
 */
export function createChargingActivities(deps: ChargingDeps) {
  return {
    async chargeAttempt(input: ChargeAttemptInput): Promise<ChargeAttemptResult> {
      if (!isChargeable(input.state)) throw invalidInput('no attempt is open in this state');
      failpoint('before_opening');
      const fresh = await openFreshAttempt(deps.db, input.state, input.opening);
      const opened = fresh
        ? { kind: 'opened' as const, attempt: fresh.attempt }
        : await openAttemptRow(deps.db, input.state, input.opening);
      failpoint('after_opening');
      const { merchantId, subscriptionId, status } = input.state;
      const stream = { merchantId, streamId: subscriptionId };
      if (opened.kind !== 'opened') {
        // The process that recorded it may have died before it delivered.
        await deps.wakeStream(stream);
        if (opened.kind === 'recorded') return { kind: 'pending' };
        const result = opened.kind === 'repeated' ? opened.result : null;
        return { kind: 'adopt', state: opened.state, result };
      }
      const { lookups } = input.state.openAttempt;
      const isVoided = status === 'ENDED' || status === 'PAUSED';
      const stopAt = sendsUntil(deps);
      const limits = { stopAt, lookups, isVoided, isFresh: fresh !== null };
      const settlement = await collect(deps, opened.attempt, subscriptionId, limits);
      if (isNothingNew(opened.attempt, settlement)) {
        const openAttempt = postponed(input.state.openAttempt, input.realNowAt);
        await recordLookup(deps.db, { ...input.state, openAttempt });
        return { kind: 'pending' };
      }
      const settled =
        (fresh && (await settleFresh(deps.db, input, input.state, fresh, settlement))) ??
        (await settle(deps, input, input.state, opened.attempt, settlement));
      failpoint('after_settling');
      await watchUnproven(deps.payments, opened.attempt, settlement);
      await deps.wakeStream(stream);
      return settled;
    },
  };
}

/** Known to be unknown, or in review: asked once more in vain. */
function isNothingNew({ state }: Attempt, { kind }: Settlement): boolean {
  return (kind === 'unknown' && state === 'UNKNOWN') || (kind === 'review' && state === 'REVIEW');
}

/** The usual end of a charge that this call began, in one statement; null when it is not as usual. */
async function settleFresh(
  db: Db,
  { nowAt, realNowAt }: ChargeAttemptInput,
  state: ChargeableState,
  fresh: FreshAttempt,
  settlement: Settlement,
): Promise<ChargeAttemptResult | null> {
  if (settlement.kind !== 'succeeded' && settlement.kind !== 'declined') return null;
  if (isUnproven(settlement)) return null;
  const { intentId } = fresh.attempt;
  const outcome = decidedOutcome(settlement, fresh.facts.retryPlan);
  const change = applyOutcome(withIntent(state, intentId), outcome, nowAt, realNowAt);
  const result = resultOf(state.openAttempt, outcome, change.state);
  failpoint('before_settling_commits');
  const isSettled = await settleFreshAttempt(db, fresh, {
    state,
    settlement,
    change,
    result,
    nowAt,
  });
  return isSettled ? { kind: 'settled', outcome, intentId } : null;
}

/** One transaction: the attempt, its intent, the subscription, its events, the waiting command. */
async function settle(
  { db }: ChargingDeps,
  input: ChargeAttemptInput,
  state: ChargeableState,
  attempt: Attempt,
  settlement: Settlement,
): Promise<ChargeAttemptResult> {
  const { merchantId, subscriptionId } = state;
  return db.transaction(async (tx): Promise<ChargeAttemptResult> => {
    // A run that stood still may come late: what it heard is for the run that went on to hear, too.
    const current = await lockedState(tx, state);
    const { commandId } = state.openAttempt;
    if (!isSameAttempt(current, state)) {
      const known = commandId === null ? null : await findCommand(tx, state, commandId);
      return { kind: 'adopt', state: current, result: known?.result ?? null };
    }
    const outcome = await outcomeOf(tx, merchantId, settlement);
    await settleAttempt(tx, attempt, settlement, input.nowAt);
    const change = applyOutcome(
      withIntent(state, attempt.intentId),
      outcome,
      input.nowAt,
      input.realNowAt,
    );
    const recorded = await recordTransition(tx, {
      change,
      transitionId: `${subscriptionId}:${change.state.version}`,
      command: null,
      nowAt: input.nowAt,
    });
    invariant(recorded.kind === 'recorded', 'nobody else moves a row that is locked here');
    const result = resultOf(state.openAttempt, outcome, change.state);
    if (result && commandId !== null) {
      await settleCommand(tx, { merchantId, subscriptionId }, commandId, result);
    }
    failpoint('before_settling_commits');
    return { kind: 'settled', outcome, intentId: attempt.intentId };
  });
}

async function outcomeOf(
  tx: Db,
  merchantId: string,
  settlement: Settlement,
): Promise<AttemptOutcome> {
  switch (settlement.kind) {
    case 'succeeded':
      return decidedOutcome(settlement, null);
    case 'declined':
      return decidedOutcome(settlement, await loadRetryPlan(tx, merchantId));
    case 'review':
      return { kind: 'review', reason: settlement.reason };
    case 'unknown':
      return { kind: 'unknown' };
  }
}

function decidedOutcome(
  settlement: Extract<Settlement, { kind: 'succeeded' | 'declined' }>,
  retryPlan: RetryPlan | null,
): AttemptOutcome {
  if (settlement.kind === 'succeeded') {
    return settlement.byPerson ? { kind: 'succeeded', byPerson: true } : { kind: 'succeeded' };
  }
  const { gatewayChargeId: _, ...declined } = settlement;
  invariant(retryPlan !== null, "a decline follows the merchant's retry plan");
  return { ...declined, retryPlan };
}

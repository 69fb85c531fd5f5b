import { loadRetryPlan } from '../db/repositories/merchant-settings.ts';
import {
  isChargeable,
  lockedState,
  markSending,
  openAttemptRow,
  settleAttempt,
} from '../db/repositories/attempts.ts';
import type { Attempt, ChargeableState, Opening, Settlement } from '../db/repositories/attempts.ts';
import { recordLookup, recordTransition, settleCommand } from '../db/repositories/subscriptions.ts';
import type { Db } from '../db/client.ts';
import {
  applyOutcome,
  postponed,
  resultOf,
  withIntent,
} from '../domain/subscription/apply-attempt.ts';
import type { AttemptOutcome } from '../domain/subscription/apply-attempt.ts';
import type { CommandResult } from '../domain/subscription/commands.ts';
import type { SubscriptionState } from '../domain/subscription/state.ts';
import { GatewayRejectedRequest } from '../gateways/port.ts';
import type { ChargeOutcome, LookupOutcome, PaymentGateway } from '../gateways/port.ts';
import { invalidInput } from './failures.ts';

export interface ChargingDeps {
  db: Db;
  gateway: PaymentGateway;
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

/** No new send or question starts after this; with the gateway's own limit it stays under 15 s. */
const NEW_SENDS_FOR_MS = 6_000;
const PAUSE_BETWEEN_QUESTIONS_MS = 1_000;
/** Resends stop at this share of the time for which the gateway honours a key. Design §4. */
const KEY_LIFETIME_SHARE = 0.8;

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
      const opened = await openAttemptRow(deps.db, input.state, input.opening);
      if (opened.kind === 'repeated') {
        return { kind: 'adopt', state: opened.state, result: opened.result };
      }
      if (opened.kind !== 'opened') {
        return opened.kind === 'stale'
          ? { kind: 'adopt', state: opened.state, result: null }
          : { kind: 'pending' };
      }
      const settlement = await collect(deps, opened.attempt, input.state);
      const wasUnknown = opened.attempt.state === 'UNKNOWN' || opened.attempt.state === 'REVIEW';
      if (settlement.kind === 'unknown' && wasUnknown) {
        const openAttempt = postponed(input.state.openAttempt, input.realNowAt);
        await recordLookup(deps.db, { ...input.state, openAttempt });
        return { kind: 'pending' };
      }
      return settle(deps, input, input.state, opened.attempt, settlement);
    },
  };
}

/** The attempt's outcome: from its row, or else from the gateway. */
async function collect(
  { db, gateway }: ChargingDeps,
  attempt: Attempt,
  state: ChargeableState,
): Promise<Settlement> {
  if (attempt.state === 'SUCCEEDED') {
    return { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' };
  }
  if (attempt.state === 'DECLINED') {
    const { errorCode, gatewayChargeId } = attempt;
    return { kind: 'declined', code: errorCode ?? 'card_declined', gatewayChargeId };
  }
  if (attempt.state === 'REVIEW') return { kind: 'unknown', reason: 'waits for a person' };

  const stopAt = performance.now() + NEW_SENDS_FOR_MS;
  let mayBeThere = attempt.state !== 'CREATED';
  for (;;) {
    const outcome = await sendOrAsk({ db, gateway }, attempt, state, mayBeThere);
    switch (outcome.kind) {
      case 'succeeded':
      case 'declined':
        return outcome;
      case 'absent':
        if (isKeyTooOld(attempt, gateway)) {
          return {
            kind: 'unknown',
            reason: 'not at the gateway, and its key is too old to resend',
          };
        }
        mayBeThere = false;
        continue;
      case 'not_sent':
      case 'in_progress':
      case 'unknown': {
        mayBeThere = mayBeThere || outcome.kind !== 'not_sent';
        const reason = outcome.kind === 'in_progress' ? 'still in progress' : outcome.reason;
        if (performance.now() + PAUSE_BETWEEN_QUESTIONS_MS > stopAt) {
          return { kind: 'unknown', reason };
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_BETWEEN_QUESTIONS_MS));
      }
    }
  }
}

/**
 * One exchange with the gateway. What may be there is asked for before it is sent again; a gateway
 * that cannot be asked gets the same key again. A request that it refuses as such is our own fault or
 * a wrong setting: nothing is known of the charge, and a person reads the reason.
 */
async function sendOrAsk(
  deps: ChargingDeps,
  attempt: Attempt,
  state: ChargeableState,
  mayBeThere: boolean,
): Promise<ChargeOutcome | LookupOutcome> {
  try {
    if (!mayBeThere) return await send(deps, attempt, state);
    if (!deps.gateway.capabilities.lookup) return { kind: 'absent' };
    return await deps.gateway.lookup({ key: attempt.gatewayKey });
  } catch (error) {
    if (error instanceof GatewayRejectedRequest) return { kind: 'unknown', reason: error.message };
    throw error;
  }
}

async function send({ db, gateway }: ChargingDeps, attempt: Attempt, state: ChargeableState) {
  await markSending(db, attempt);
  return gateway.charge({
    key: attempt.gatewayKey,
    gatewayMethodId: attempt.gatewayMethodId,
    amountMinor: attempt.amountMinor,
    currency: attempt.currency,
    reference: {
      merchantId: attempt.merchantId,
      intentId: attempt.intentId,
      subscriptionId: state.subscriptionId,
      paymentMethodId: attempt.paymentMethodId,
    },
  });
}

/** Real time: the gateway counts the age of a key from its first send. */
function isKeyTooOld(attempt: Attempt, gateway: PaymentGateway): boolean {
  return (
    attempt.firstSentAt !== null &&
    Date.now() - attempt.firstSentAt > gateway.capabilities.keyLifetimeMs * KEY_LIFETIME_SHARE
  );
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
    await lockedState(tx, state);
    const outcome: AttemptOutcome =
      settlement.kind === 'declined'
        ? {
            kind: 'declined',
            code: settlement.code,
            retryPlan: await loadRetryPlan(tx, merchantId),
          }
        : { kind: settlement.kind };
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
    const result = resultOf(state.openAttempt, outcome, change.state);
    const { commandId } = state.openAttempt;
    if (result && commandId !== null) {
      await settleCommand(tx, { merchantId, subscriptionId }, commandId, result);
    }
    if (recorded.kind !== 'recorded') return { kind: 'adopt', state: recorded.state, result };
    return { kind: 'settled', outcome, intentId: attempt.intentId };
  });
}

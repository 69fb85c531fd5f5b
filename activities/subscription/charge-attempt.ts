import { loadRetryPlan } from '../../db/repositories/merchants/settings.ts';
import type { Attempt } from '../../db/repositories/subscriptions/attempts.ts';
import { openAttemptRow } from '../../db/repositories/subscriptions/open-attempt.ts';
import type { Opening } from '../../db/repositories/subscriptions/open-attempt.ts';
import type { Settlement } from '../../domain/settlement.ts';
import { findCommand } from '../../db/repositories/subscriptions/row.ts';
import {
  withoutCommand,
  writeChange,
  writeLookup,
} from '../../db/repositories/subscriptions/write-change.ts';
import type { Db } from '../../db/client.ts';
import {
  applyOutcome,
  isEarlyLookup,
  postponed,
  resultOf,
} from '../../domain/subscription/apply-attempt.ts';
import type { AttemptOutcome } from '../../domain/subscription/apply-attempt.ts';
import { isSuperseded } from '../../domain/subscription/authentication.ts';
import type { CommandResult } from '../../domain/subscription/commands.ts';
import type { Place } from '../../domain/subscription/renewal-places.ts';
import { isChargeable } from '../../domain/subscription/state.ts';
import type { ChargeableState, SubscriptionState } from '../../domain/subscription/state.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { invalidInput } from '../failures.ts';
import { collect, isPayerGone } from '../charging/charge-exchange.ts';
import { sendDeadline } from '../charging/gateway-exchange.ts';
import { completeChange } from './complete-change.ts';
import { watchUnproven } from '../orders/late-charges.ts';
import { presentPayerOf } from '../charging/present-payer.ts';
import type { ChargingDeps } from '../deps.ts';

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
 * `result` is the command's, if known.
 */
export type ChargeAttemptResult =
  | { kind: 'settled'; outcome: AttemptOutcome; place: Place | null }
  | { kind: 'pending' }
  | { kind: 'adopt'; state: SubscriptionState; result: CommandResult | null };

/**
 * Creates `chargeAttempt`, which charges an attempt exactly once: its row and key are committed before the send, and
 * a repeat finds them. Throws if no attempt is open or the database fails.
 */
export function createChargingActivities(deps: ChargingDeps) {
  return {
    async chargeAttempt(input: ChargeAttemptInput): Promise<ChargeAttemptResult> {
      if (!isChargeable(input.state)) throw invalidInput('no attempt is open in this state');
      failpoint('before_opening');
      const opened = await openAttemptRow(deps.db, input.state, input.opening);
      failpoint('after_opening');
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
      const settled = await settle(deps, input, state, attempt, settlement);
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
  deps: ChargingDeps,
  input: ChargeAttemptInput,
  state: ChargeableState,
  attempt: Attempt,
  settlement: Settlement,
): Promise<ChargeAttemptResult> {
  return deps.db.transaction(async (tx): Promise<ChargeAttemptResult> => {
    const { nowAt, realNowAt } = input;
    const outcome = await outcomeOf(tx, state, settlement);
    const applied = applyOutcome(state, outcome, nowAt, realNowAt);
    const { change, place } = completeChange(deps, applied, realNowAt);
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
): Promise<AttemptOutcome> {
  const { kind } = settlement;
  switch (kind) {
    case 'succeeded':
      return settlement.byPerson ? { kind, byPerson: true } : { kind };
    case 'declined': {
      const { code, gatewayCode, retry, byPerson, isWithdrawn } = settlement;
      return {
        kind,
        code,
        ...(isWithdrawn && { isWithdrawn }),
        ...(byPerson && { byPerson }),
        ...(typeof gatewayCode === 'string' && { gatewayCode }),
        ...(retry === 'never' && { retry }),
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

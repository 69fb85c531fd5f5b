import { limitRefusal } from '../../../domain/card-limits.ts';
import type { ReachedLimit } from '../../../domain/card-limits.ts';
import type { RefusalReason } from '../../../domain/errors.ts';
import { intentIdOfCycle } from '../../../domain/ids.ts';
import { applyAdoption } from '../../../domain/subscription/apply-attempt.ts';
import { applyCardLimit } from '../../../domain/subscription/notes.ts';
import type { Effects } from '../../../domain/subscription/change.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { decide, isChargeStep } from '../../../domain/subscription/decide.ts';
import { stateDifferences } from '../../../domain/subscription/ledger.ts';
import { isChargeable } from '../../../domain/subscription/state.ts';
import type {
  ChargeableState,
  SubscriptionRef,
  SubscriptionState,
} from '../../../domain/subscription/state.ts';
import { inTransaction } from '../../client.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { hasValues, isRecord } from '../records.ts';
import { CardLimitReached, isOpenOn } from './attempts.ts';
import type { Attempt } from './attempts.ts';
import { lockRow } from './row.ts';
import { writeChange } from './write-change.ts';
import type { Transition } from './write-change.ts';

/**
 * `opened`: the open attempt of `state`, which equals the row's state; `isFresh`: this call opened it, so no process has
 * sent its charge yet. `adopt`: the caller must not send, and continues from the row's `state`; `result` is that of the
 * command, if known. `refused`: the limits of its card do not allow the attempt that a command wants.
 */
export type Opened =
  | { kind: 'opened'; state: ChargeableState; attempt: Attempt; isFresh: boolean }
  | { kind: 'adopt'; state: SubscriptionState; result: CommandResult | null }
  | { kind: 'refused'; refusal: RefusalReason };

/** The transition that opens an attempt, without its new state. The transition has no events. */
export type Opening = Omit<Transition, 'change'> & { effects: Effects };

/**
 * Writes the open attempt as SENDING, in one transaction with the transition `opening` and a missing intent. A repeat
 * finds both as the first call wrote them. If the gateway's book has a charge of the cycle, opens its adopted attempt
 * instead. If the limits of its card do not allow a scheduled one yet, records that it waits.
 */
export async function openAttemptRow(
  db: Db,
  state: ChargeableState,
  opening: Opening | null,
): Promise<Opened> {
  try {
    return await openOrFind(db, state, opening);
  } catch (error) {
    if (!(error instanceof CardLimitReached) || !opening) throw error;
    return opening.command
      ? { kind: 'refused', refusal: limitRefusal(error.limit) }
      : recordLimit(db, state, opening, error.limit);
  }
}

/** Only the row says which step is due, because a replayed run may have its version with other instants. */
async function recordLimit(
  db: Db,
  ref: SubscriptionRef & { version: number },
  { transitionId, nowAt }: Opening,
  limit: ReachedLimit,
): Promise<Opened> {
  return inTransaction(db, async (tx) => {
    const { state: row } = await lockRow(tx, ref);
    const step = decide(row, nowAt, nowAt);
    if (row.version !== ref.version - 1 || !isChargeStep(step)) {
      return { kind: 'adopt', state: row, result: null };
    }
    const change = applyCardLimit(row, step, limit, nowAt);
    await writeChange(tx, { change, transitionId, command: null, nowAt });
    return { kind: 'adopt', state: change.state, result: null };
  });
}

function openOrFind(db: Db, state: ChargeableState, opening: Opening | null): Promise<Opened> {
  return db.transaction(async (tx): Promise<Opened> => {
    const change = { state, effects: opening?.effects ?? {}, events: [] };
    const written = opening && (await writeChange(tx, { ...opening, change }, { opens: true }));
    if (written?.kind === 'recorded' && written.opened) {
      return { kind: 'opened', state, attempt: written.opened, isFresh: true };
    }
    const { state: row, lastTransitionId } = await lockRow(tx, state);
    // An adopted attempt, or other instants than those of the run, keep a row of the version before from the transition.
    if (opening && written?.kind === 'stale' && row.version === state.version - 1) {
      const adopted = await openAdopted(tx, row, opening.nowAt);
      return { kind: 'adopt', state: adopted ?? row, result: null };
    }
    // Two transitions of one version lead to the same version and to the same number of an attempt.
    const isRecorded = opening
      ? lastTransitionId === opening.transitionId
      : row.version === state.version;
    if (!isRecorded || !isChargeable(row)) {
      const result = written?.kind === 'repeated' ? written.result : null;
      return { kind: 'adopt', state: row, result };
    }
    // The first call may have opened the attempt at an earlier time.
    const isSame = stateDifferences(state, row).length === 0;
    const attempt = await readAttempt(tx, row);
    return { kind: 'opened', state: isSame ? state : row, attempt, isFresh: false };
  });
}

/**
 * Opens the attempt of the next cycle that was copied from the gateway's book. Null if there is none, or an attempt is
 * open. The subscription's run must not be newer than the row. `nowAt`: the subscription's own time.
 */
export async function openAdopted(
  db: Db,
  ref: SubscriptionRef,
  nowAt: number,
): Promise<SubscriptionState | null> {
  return inTransaction(db, async (tx) => {
    const { state } = await lockRow(tx, ref);
    const { merchantId, subscriptionId, cyclesCharged, openAttempt } = state;
    const intentId = intentIdOfCycle(subscriptionId, cyclesCharged + 1);
    const [adopted] = await tx
      .select({ attempt: paymentAttempts, dueAt: paymentIntents.dueAt })
      .from(paymentAttempts)
      .innerJoin(paymentIntents, isRecord(paymentIntents, merchantId, intentId))
      .where(isOpenOn(merchantId, intentId));
    if (!adopted || openAttempt !== null) return null;
    const { attempt, dueAt } = adopted;
    const charge = { ...attempt, dueAt: dueAt ?? nowAt };
    const change = applyAdoption(state, charge, nowAt, Date.now());
    const transitionId = `adopted:${attempt.id}`;
    await writeChange(tx, { change, transitionId, command: null, nowAt });
    return change.state;
  });
}

async function readAttempt(
  tx: Db,
  { merchantId, owed: { intentId }, openAttempt: { attemptNumber } }: ChargeableState,
): Promise<Attempt> {
  const [attempt] = await tx
    .select()
    .from(paymentAttempts)
    .where(hasValues(paymentAttempts, { merchantId, intentId, attemptNumber }));
  if (!attempt) throw new Error(`no attempt ${attemptNumber} on ${intentId}`);
  return attempt;
}

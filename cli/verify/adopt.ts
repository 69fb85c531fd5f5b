import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcDeadlineError, WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import type { Db } from '../../db/client.ts';
import { countHeld } from '../../db/repositories/sweeps/queries.ts';
import {
  adoptCycleCharge,
  adoptEnd,
  adoptOrder,
  adoptRefund,
  findState,
  listUnopened,
  NotAdopted,
  recordChargeId,
} from './adopted-rows.ts';
import type { LostCharge } from './adopted-rows.ts';
import { openAdopted } from '../../db/repositories/subscriptions/open-attempt.ts';
import { listEntries } from '../../db/repositories/subscriptions/row.ts';
import { CYCLE_COUNT_MAX } from '../../domain/calendar.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { ENTRIES_SHOWN } from '../../domain/subscription/describe.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import { messageOf, minuteText } from '../command-line/terminal.ts';
import { ACCEPT_WITHIN_MS, describeWorkflow } from '../../temporal/client.ts';
import type { SubscriptionRuns } from '../../temporal/subscriptions/runs.ts';
import { stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import type { KnownState } from '../../workflows/subscription/messages.ts';
import type { LostRecords } from './lost-records.ts';
import { endLostRow } from './lost-rows.ts';

interface AdoptDeps {
  readonly db: Db;
  readonly client: Client;
  readonly workflows: Pick<SubscriptionRuns, 'ensureRunning' | 'recheck'>;
}

/** Time in ms within which a worker answers what a run knows. */
const ANSWERED_WITHIN_MS = 10_000;
/** Time in ms between two counts of the held runs. */
const COUNTED_AFTER_MS = 3_000;

/**
 * Sends nothing to a gateway. One line for each record: `+` done, `!` for the operator. `unreleased`: the runs that must be
 * released by a repeat, which is safe.
 */
export async function adopt(
  lost: LostRecords & { readonly lostRows: readonly SubscriptionRef[] },
  deps: AdoptDeps,
): Promise<{ lines: string[]; unreleased: string[] }> {
  const lines: string[] = [];
  const unreleased: string[] = [];
  /** Returns false if the record is not booked. */
  const attempt = async (subject: string, work: () => Promise<string | null>): Promise<boolean> => {
    try {
      const done = await work();
      if (done !== null) lines.push(`+ ${subject}: ${done}`);
      return true;
    } catch (error) {
      if (!(error instanceof NotAdopted)) throw error;
      lines.push(`! ${subject}: not booked: ${error.message}`);
      return false;
    }
  };
  const adopted = new Set<string>();
  const isUnbooked = new Set<string>();
  for (const charge of lost.unnamed) {
    await attempt(charge.key, async () =>
      (await recordChargeId(deps.db, charge)) ? 'it is looked up at the gateway' : null,
    );
  }
  for (const charge of lost.charges) {
    const cycle = cycleOf(charge);
    const isBooked = await attempt(charge.key, async () => {
      if (charge.outcome === 'declined' && !adopted.has(charge.intentId)) {
        throw new NotAdopted('the gateway declined it, so it moved no money');
      }
      const done = cycle
        ? await bookCycle(deps.db, charge, cycle)
        : await bookOrder(deps.db, charge);
      adopted.add(charge.intentId);
      return done;
    });
    if (!isBooked && cycle && charge.outcome !== 'declined') {
      isUnbooked.add(cycle.ref.subscriptionId);
    }
  }
  for (const { intentId, ...refund } of lost.refunds) {
    await attempt(`refund:${refund.refundId}`, async () => {
      if (intentId === null)
        throw new NotAdopted('its charge is not booked yet; repeat the command');
      await adoptRefund(deps.db, { ...refund, intentId });
      return `${refund.amountMinor} are booked as a refund of ${intentId}`;
    });
  }
  // A held subscription may also have an unopened attempt.
  const unopened = await listUnopened(deps.db);
  const bySubscription = [...lost.held, ...unopened].map(
    (ref) => [ref.subscriptionId, ref] as const,
  );
  const left = [...new Map(bySubscription).values(), ...lost.lostRows];
  for (let ref = left.shift(); ref !== undefined; ref = left.shift()) {
    // If Temporal or its workers are away, the lines about the booked records are still printed.
    try {
      lines.push(...(await release(deps, ref, isUnbooked.has(ref.subscriptionId))));
    } catch (error) {
      unreleased.push(`! ${ref.subscriptionId}: not released: ${messageOf(error)}`);
      if (!isGrpcDeadlineError(error)) continue;
      if (left.length > 0) unreleased.push(`! nor ${left.length} more: no worker answers`);
      break;
    }
  }
  return { lines, unreleased };
}

/**
 * Makes each sleeping run compare itself with its row, so that the newer ones are held; completed ones are compared here.
 * Returns lines for the operator: none, or that it was not done.
 */
export async function findNewerRuns(
  db: Db,
  workflows: Pick<SubscriptionRuns, 'recheckAll' | 'holdCompleted'>,
): Promise<string[]> {
  try {
    await workflows.holdCompleted();
    await workflows.recheckAll('verify --adopt');
  } catch (error) {
    return [`! runs were not compared with their rows: ${messageOf(error)}`];
  }
  let before = -1;
  let held = await countHeld(db);
  // A run that was rechecked reads its row within moments. If none more is held, all have read.
  while (held !== before) {
    await pause(COUNTED_AFTER_MS);
    before = held;
    held = await countHeld(db);
  }
  return [];
}

interface Cycle {
  readonly ref: SubscriptionRef;
  readonly cycleNumber: number;
}

/** The cycle whose intent the charge has; null for a charge outside the billing cycles. */
function cycleOf({ merchantId, subscriptionId, intentId }: LostCharge): Cycle | null {
  if (subscriptionId === null) return null;
  for (let cycleNumber = 1; cycleNumber <= CYCLE_COUNT_MAX; cycleNumber += 1) {
    if (intentIdOfCycle(subscriptionId, cycleNumber) !== intentId) continue;
    return { ref: { merchantId, subscriptionId }, cycleNumber };
  }
  return null;
}

async function bookCycle(db: Db, charge: LostCharge, { ref, cycleNumber }: Cycle): Promise<string> {
  const { subscriptionId } = ref;
  if ((await findState(db, ref)) === null)
    throw new NotAdopted(`there is no row of ${subscriptionId}`);
  await adoptCycleCharge(db, ref, cycleNumber, charge);
  if (charge.outcome === 'declined') return 'its decline is booked';
  return `${amountOf(charge)} are booked as cycle ${cycleNumber} of ${subscriptionId}`;
}

async function bookOrder(db: Db, charge: LostCharge): Promise<string> {
  await adoptOrder(db, charge);
  const { subscriptionId, outcome } = charge;
  if (outcome === 'declined') return 'its decline is booked';
  return `${amountOf(charge)} are booked as a ${subscriptionId === null ? 'tokenised charge' : `one-time charge of ${subscriptionId}`}`;
}

const amountOf = ({ amountMinor, currency }: LostCharge): string => `${amountMinor} ${currency}`;

/**
 * Ends a run that is newer than its row, or whose row is lost. A run from the row then settles an adopted attempt first.
 * With `isUnbooked` the newer run stays held: a new one might charge again.
 */
async function release(
  deps: AdoptDeps,
  ref: SubscriptionRef,
  isUnbooked: boolean,
): Promise<string[]> {
  const { subscriptionId } = ref;
  const { known, row } = await statesOf(deps, ref);
  if (row === null) return known === null ? [] : [await endLostRow(deps.client, known)];
  if (known === null || known.version <= row.version) {
    const opened = await openUnlessOnClock(deps.db, row);
    if (opened === null) return [];
    await deps.workflows.recheck(ref);
    return [`+ ${subscriptionId}: its run looks up the charge of cycle ${row.cyclesCharged + 1}`];
  }
  const description = await describeWorkflow(deps.client, subscriptionWorkflowId(subscriptionId));
  if (description?.status.name === 'COMPLETED') {
    const ended = `${subscriptionId}: its workflow ended as ${known.status} (${known.endReason})`;
    const obstacle = await endRow(deps.db, known);
    if (obstacle === null) return [`+ ${ended}, and so does its row`];
    const kept = `! ${ended}, its row stays ${row.status} and held: ${obstacle}`;
    return [...(await lostEntries(deps.db, known)), kept];
  }
  const lines = await lostEntries(deps.db, known);
  if (isUnbooked) {
    const why = 'its newer run stays held, because a charge of it is not booked';
    return [...lines, `! ${subscriptionId}: ${why}`];
  }
  if (description?.status.name === 'RUNNING') {
    const why = `verify --adopt: version ${known.version}, and the row has ${row.version}`;
    await deps.client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      deps.client.workflow.getHandle(description.workflowId, description.runId).terminate(why),
    );
  }
  await openUnlessOnClock(deps.db, row);
  await deps.workflows.ensureRunning(ref);
  const done = 'its newer run is terminated, and a run starts from its row';
  return [...lines, `+ ${subscriptionId}: ${done}`];
}

/** Ends the row as its workflow has ended. Returns why this is not possible, else null. */
async function endRow(db: Db, known: KnownState): Promise<string | null> {
  try {
    await adoptEnd(db, known);
    return null;
  } catch (error) {
    if (error instanceof NotAdopted) return error.message;
    throw error;
  }
}

/**
 * One line for each change that the run knows and the ledger does not have. Payments of cycles are named or booked from
 * the gateway's book, so they are not named.
 */
async function lostEntries(db: Db, known: KnownState): Promise<string[]> {
  const nameOf = (entry: Entry): string => `${entry.at} ${textOf(entry, known.terms).what}`;
  const afterVersion = (known.entries[0]?.version ?? 1) - 1;
  const ledger = await listEntries(db, known, { afterVersion, limit: ENTRIES_SHOWN });
  const has = new Set(ledger.map(nameOf));
  return known.entries
    .filter((entry) => !has.has(nameOf(entry)) && entry.kind !== 'paid')
    .map((entry) => {
      const { what, why } = textOf(entry, known.terms);
      const change = `"${what}" of ${minuteText(entry.at)} (${why})`;
      return `! ${known.subscriptionId}: its row does not have ${change}`;
    });
}

/** The state of the run, and of the row, which is read later. */
async function statesOf({ db, client }: AdoptDeps, ref: SubscriptionRef) {
  const known = await knownState(client, subscriptionWorkflowId(ref.subscriptionId));
  return { known, row: await findState(db, ref) };
}

/** A subscription on a test clock opens an adopted attempt when its clock reaches the date. */
async function openUnlessOnClock(db: Db, row: SubscriptionState) {
  return row.testClockId === null ? openAdopted(db, row, Date.now()) : null;
}

/** The state that the run knows, also after the run has closed. Null if Temporal knows no run. */
async function knownState(client: Client, workflowId: string): Promise<KnownState | null> {
  try {
    return await client.withDeadline(Date.now() + ANSWERED_WITHIN_MS, () =>
      client.workflow.getHandle(workflowId).query(stateQuery),
    );
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

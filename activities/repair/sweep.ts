import type { Db } from '../../db/client.ts';
import { stalledEndpoints } from '../../db/repositories/webhooks/deliveries.ts';
import { assignPositions, merchantsBehind } from '../../db/repositories/webhooks/feed.ts';
import {
  countLive,
  forgetExpiredKeys,
  isOverdue,
  takeBehindTheirClock,
  takeHeld,
  takeLive,
  takeNeverStarted,
  takeOpenPayments,
  takeOpenRefunds,
  takeOverdue,
  takeUnkeyedPayments,
  takeUnkeyedRefunds,
} from '../../db/repositories/sweeps/queries.ts';
import { declarationRows, takeDeclarations } from '../../db/repositories/customers/declarations.ts';
import { takeUnhandled } from '../../db/repositories/gateway-events/events.ts';
import {
  findChangedAccounts,
  recordAccountChange,
} from '../../db/repositories/merchants/account-blocks.ts';
import { withdrawPayment } from '../../db/repositories/payments/orders.ts';
import { withdrawRefund } from '../../db/repositories/payments/refunds.ts';
import { takeDecidedReviews } from '../../db/repositories/payments/reviews.ts';
import {
  countRepairs,
  deleteClosedSessions,
  deleteOldAttempts,
  deleteOldEvents,
  deleteOldGatewayEvents,
  deleteOldLinkUses,
  deleteOldPortalSessions,
} from '../../db/repositories/sweeps/retention.ts';
import { REPAIR_KINDS } from '../../db/schema/sweeps.ts';
import type { RepairKind } from '../../db/schema/sweeps.ts';
import type { Order } from '../../domain/order.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { handleDeclaration } from '../../temporal/declarations.ts';
import type { Orders } from '../../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import { withoutQuery } from '../failures.ts';
import { followUp } from './decided-reviews.ts';
import type { ActivityDeps } from '../deps.ts';

/** Repaired cases by kind; all are 0 in a healthy system. */
export const NOTHING_FOUND = Object.fromEntries(REPAIR_KINDS.map((kind) => [kind, 0])) as Record<
  RepairKind,
  number
>;
export type SweepReport = typeof NOTHING_FOUND;

/** Maximum number of cases that each query of a sweep takes, except that of `lost`. Later sweeps repair the others. */
const LIMIT = 200;
/** Maximum number of records of one kind that one sweep deletes: those of 160 renewals a second. */
const DELETED_LIMIT = 5_000;
const DEFAULT_RETENTION_MS = 30 * 24 * 3_600_000;
/** Each deletes one kind of record whose retention is over. */
const DELETIONS = [
  deleteOldEvents,
  deleteOldAttempts,
  deleteClosedSessions,
  deleteOldLinkUses,
  deleteOldPortalSessions,
  deleteOldGatewayEvents,
] as const;
/** Maximum number of repairs at the same time; each calls Temporal. */
const AT_ONCE = 10;
/** A sweep logs at most this many cases of a kind that it could not repair. */
const LOGGED_MAX = 5;
/** Time in ms between two counts of live subscriptions and running workflows, if none is missing. */
const COMPARE_EVERY_MS = 300_000;

/**
 * Creates `sweep`, which repairs late or lost work and deletes expired records. It settles no attempt and calls no
 * gateway. Two at once are safe. A failing query does not block the other kinds.
 */
export function createMaintenanceActivities(deps: ActivityDeps) {
  const { db, subscriptionWorkflows: workflows, orders, gatewaySubjects } = deps;
  const { retentionMs = DEFAULT_RETENTION_MS } = deps;
  const takeRestored = restoredTaker(db, workflows);
  return {
    async sweep(input: { nowAt: number; lookBackMs: number }): Promise<SweepReport> {
      const { report, errors, sweepKind, attempt } = createSweep(deps);
      await sweepKind('neverStarted', takeNeverStarted, (ref) => workflows.recheck(ref));
      await sweepKind('overdue', takeOverdue, (ref) =>
        workflows.recheckUnlessBusy(ref, () => isOverdue(db, ref)),
      );
      await sweepKind('behindTheirClock', takeBehindTheirClock, (one) =>
        sendTarget(workflows, one),
      );
      await sweepKind(
        'lost',
        () => takeRestored(input.nowAt),
        (ref) => workflows.ensureRunning(ref),
      );
      await sweepKind('withdrawn', takeUnkeyedPayments, (ref) =>
        voidUnlessRunning(orders, 'payment', { ...ref, token: null }, () =>
          withdrawPayment(db, ref),
        ),
      );
      await sweepKind('withdrawn', takeUnkeyedRefunds, (ref) =>
        voidUnlessRunning(orders, 'refund', ref, () => withdrawRefund(db, ref)),
      );
      await sweepKind('openPayments', takeOpenPayments, (ref) =>
        orders.ensureRunning('payment', { ...ref, token: null }),
      );
      await sweepKind('openRefunds', takeOpenRefunds, (ref) => orders.ensureRunning('refund', ref));
      await sweepKind('decidedReviews', takeDecidedReviews, (review) =>
        followUp(review, workflows, orders),
      );
      await sweepKind(
        'stalledStreams',
        () => stalledEndpoints(db, input.nowAt, LIMIT),
        (endpoint) => deps.wakeEndpoint(endpoint),
      );
      await sweepKind('gatewayEvents', takeUnhandled, (subject) =>
        gatewaySubjects.ensureRunning(subject),
      );
      await sweepKind('declarations', takeDeclarations, (ref) =>
        handleDeclaration(
          { rows: declarationRows(db), workflows, wakeStream: (stream) => deps.wakeStream(stream) },
          ref,
        ),
      );
      await attempt(() => tellAccountChanges(deps, input.nowAt));
      await attempt(() => forgetExpiredKeys(db, input.nowAt, DELETED_LIMIT));
      await attempt(async () => {
        for (const merchantId of await merchantsBehind(db, LIMIT)) {
          await assignPositions(db, merchantId);
        }
      });
      const deletion = { before: input.nowAt - retentionMs, limit: DELETED_LIMIT };
      for (const deleteOld of DELETIONS) {
        await attempt(async () => void (await deleteOld(db, deletion)));
      }
      // `lost` comes last: after thousands of terminations it takes all the remaining time.
      const sinceAt = input.nowAt - input.lookBackMs;
      await sweepKind(
        'lost',
        () => workflows.closedSince(sinceAt),
        (ref) => workflows.ensureRunning(ref),
      );
      if (report.failed > 0) await countRepairs(db, 'failed', report.failed);
      // The workflow logs only the first error. The next sweep queries every kind again.
      if (errors.length > 0) throw errors[0];
      return report;
    },
  };
}

/** Tells merchants whose account at a gateway is refused, or is taken again. */
async function tellAccountChanges(deps: ActivityDeps, nowAt: number): Promise<void> {
  for (const account of await findChangedAccounts(deps.db, LIMIT)) {
    const stream = await recordAccountChange(deps.db, account, nowAt);
    if (stream) await deps.wakeStream(stream);
  }
}

/** Takes held subscriptions, and live ones while fewer workflows run than must. */
function restoredTaker(db: Db, workflows: SubscriptionWorkflows) {
  let compareAt = 0;
  return async (nowAt: number): Promise<SubscriptionRef[]> => {
    // No message reaches a held run, so only this finds that an operator has terminated it.
    const held = await takeHeld(db, LIMIT);
    if (nowAt < compareAt) return held;
    const live = await countLive(db);
    const isComplete = live === 0 || (await workflows.countRunning()) >= live;
    if (isComplete) compareAt = nowAt + COMPARE_EVERY_MS;
    return isComplete ? held : [...held, ...(await takeLive(db, LIMIT))];
  };
}

/** Replaces a stuck run; else sends the test clock's target and makes the run read its row. A repeat is safe. */
async function sendTarget(
  workflows: SubscriptionWorkflows,
  one: SubscriptionRef & { targetAt: number },
): Promise<void> {
  if (await workflows.replaceIfStuck(one)) return;
  await workflows.advanceClock(one, one.targetAt);
  // A run that had reached the target before the database was restored does nothing until it reads its row.
  await workflows.recheck(one);
}

/** True if voided. If a workflow has the order, replaces its run if it is stuck; false. */
async function voidUnlessRunning<Kind extends 'payment' | 'refund'>(
  orders: Orders,
  kind: Kind,
  order: Order<Kind>,
  withdraw: () => Promise<boolean>,
): Promise<boolean> {
  if (!(await orders.isRunning(kind, order))) return withdraw();
  await orders.ensureRunning(kind, order);
  return false;
}

function createSweep({ db, logger }: Pick<ActivityDeps, 'db' | 'logger'>) {
  const report = { ...NOTHING_FOUND };
  const errors: unknown[] = [];
  /** Runs `work` and keeps its error, so that a failing statement does not block the other kinds. */
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      errors.push(error);
    }
  };
  const sweepKind = async <T>(
    kind: keyof SweepReport,
    find: (db: Db, limit: number) => Promise<readonly T[]>,
    /** Resolves to false if the case needed no repair. */
    act: (one: T) => Promise<void | boolean>,
  ): Promise<void> => {
    let repaired = 0;
    let failed = 0;
    // A case that cannot be repaired does not block the others. A later sweep finds it again.
    const repair = async (one: T) => {
      try {
        if ((await act(one)) !== false) repaired += 1;
      } catch (error) {
        failed += 1;
        if (failed > LOGGED_MAX) return;
        const safe = withoutQuery(error);
        const reason = safe instanceof Error ? safe.message : String(safe);
        logger.warn({ kind, case: one, reason }, 'a case could not be repaired');
      }
    };
    await attempt(async () => {
      const found = await find(db, LIMIT);
      for (let at = 0; at < found.length; at += AT_ONCE) {
        await Promise.all(found.slice(at, at + AT_ONCE).map(repair));
      }
      report[kind] += repaired;
      report.failed += failed;
      if (repaired > 0) await countRepairs(db, kind, repaired);
    });
  };
  return { report, errors, sweepKind, attempt };
}

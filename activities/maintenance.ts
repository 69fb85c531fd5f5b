import type { Db } from '../db/client.ts';
import { stalledStreams } from '../db/repositories/deliveries.ts';
import {
  behindTheirClock,
  forgetExpiredKeys,
  neverStarted,
  overdue,
  takeOpenPayments,
  takeOpenRefunds,
  withdrawUnheard,
} from '../db/repositories/sweeps.ts';
import { takeDecidedReviews } from '../db/repositories/reviews.ts';
import { countRepairs } from '../db/repositories/sweep-counts.ts';
import type { IntentRef } from '../domain/payment-intent.ts';
import type { RefundRef } from '../domain/refund.ts';
import type { AttemptRef } from '../domain/review.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import { followUp } from '../runtime/decided-reviews.ts';

/** What the sweeps need of subscription workflows. */
export interface Reviver {
  revive(ref: SubscriptionRef): Promise<void>;
  restore(ref: SubscriptionRef): Promise<void>;
  advanceClock(ref: SubscriptionRef, targetAt: number): Promise<void>;
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
  /** Subscriptions whose workflow failed, was terminated or timed out since `sinceAt` (real time). */
  lostSince(sinceAt: number): Promise<SubscriptionRef[]>;
}

/** What the sweeps need of payment workflows: false when one runs already. */
export interface PaymentResumption {
  resumePayment(ref: IntentRef): Promise<boolean>;
  resumeRefund(ref: RefundRef): Promise<boolean>;
  wakePayment(ref: IntentRef): Promise<void>;
  wakeRefund(ref: RefundRef): Promise<void>;
  watchLateCharge(ref: AttemptRef): Promise<boolean>;
}

export interface MaintenanceDeps {
  db: Db;
  reviver: Reviver;
  payments: PaymentResumption;
}

/**
 * How many were found and acted on, by what was wrong with them; `failed` could not be helped this
 * time. In a healthy system: zeros. The table `sweep_count` adds them up.
 */
export type SweepReport = Record<
  | 'neverStarted'
  | 'lost'
  | 'overdue'
  | 'behindTheirClock'
  | 'withdrawn'
  | 'openPayments'
  | 'openRefunds'
  | 'decidedReviews'
  | 'stalledStreams'
  | 'failed',
  number
>;

/** One sweep takes at most this many of each kind; the next takes the rest. */
const LIMIT = 200;
const KEYS_LIMIT = 5_000;
/** Calls to Temporal at the same time. */
const AT_ONCE = 10;

/**
 * Finds what should not be there and sets it going again. It only starts, signals and wakes: it
 * writes no attempt and calls no gateway. Running it twice at once does no harm. Design §5.
 */
export function createMaintenanceActivities({ db, reviver, payments }: MaintenanceDeps) {
  return {
    async sweep(input: { nowAt: number; lookBackMs: number }): Promise<SweepReport> {
      const report: SweepReport = {
        neverStarted: 0,
        lost: 0,
        overdue: 0,
        behindTheirClock: 0,
        withdrawn: 0,
        openPayments: 0,
        openRefunds: 0,
        decidedReviews: 0,
        stalledStreams: 0,
        failed: 0,
      };
      const each = async <T>(
        kind: keyof SweepReport,
        found: readonly T[],
        /** Resolves to false when nothing was wrong after all. */
        act: (one: T) => Promise<void | boolean>,
      ): Promise<void> => {
        // One that cannot be helped now holds up no other; a later sweep finds it again.
        const help = async (one: T) => {
          try {
            if ((await act(one)) !== false) report[kind] += 1;
          } catch {
            report.failed += 1;
          }
        };
        for (let at = 0; at < found.length; at += AT_ONCE) {
          await Promise.all(found.slice(at, at + AT_ONCE).map(help));
        }
        if (report[kind] > 0) await countRepairs(db, kind, report[kind]);
      };
      const revive = (ref: SubscriptionRef) => reviver.revive(ref);
      await each('neverStarted', await neverStarted(db, LIMIT), revive);
      await each('lost', await reviver.lostSince(input.nowAt - input.lookBackMs), (ref) =>
        reviver.restore(ref),
      );
      await each('overdue', await overdue(db, LIMIT), revive);
      await each('behindTheirClock', await behindTheirClock(db, LIMIT), (one) =>
        reviver.advanceClock(one, one.targetAt),
      );
      report.withdrawn = await withdrawUnheard(db);
      if (report.withdrawn > 0) await countRepairs(db, 'withdrawn', report.withdrawn);
      await each('openPayments', await takeOpenPayments(db, LIMIT), (ref) =>
        payments.resumePayment(ref),
      );
      await each('openRefunds', await takeOpenRefunds(db, LIMIT), (ref) =>
        payments.resumeRefund(ref),
      );
      await each('decidedReviews', await takeDecidedReviews(db, LIMIT), (review) =>
        followUp(review, reviver, payments),
      );
      await each('stalledStreams', await stalledStreams(db, input.nowAt, LIMIT), (stream) =>
        reviver.wakeStream(stream),
      );
      if (report.failed > 0) await countRepairs(db, 'failed', report.failed);
      await forgetExpiredKeys(db, input.nowAt, KEYS_LIMIT);
      return report;
    },
  };
}

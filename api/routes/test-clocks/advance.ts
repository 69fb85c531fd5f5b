import { setTimeout as sleep } from 'node:timers/promises';
import {
  countBehind,
  findTestClock,
  sendTestClock,
  subscriptionsBehind,
} from '../../../db/repositories/test-clocks.ts';
import type { TestClock } from '../../../db/repositories/test-clocks.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { DomainError } from '../../../domain/errors.ts';
import { notFound } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import { causesOf } from '../../middleware/errors.ts';

/** Rule: D-60. */
const DEFAULT_WAIT_MS = 25_000;
const FIRST_POLL_MS = 20;
const SLOWEST_POLL_MS = 1_000;
/** Subscriptions told at the same time. */
const PARALLEL_SIGNALS = 16;

/**
 * Sends a clock to `to`: the target commits first, so that a sweep finishes what this process does
 * not. `isRepeat`: this is a call whose twin may have committed the same target already.
 *
 * @throws DomainError for an unknown clock, for going back, and while the clock still advances.
 * Rule: D-60.
 */
export async function sendClock(
  { db }: ApiDeps,
  merchantId: string,
  order: { testClockId: string; to: number; isRepeat: boolean },
): Promise<TestClock> {
  const { testClockId, to, isRepeat } = order;
  return db.transaction(async (tx) => {
    const clock = await findTestClock(tx, merchantId, testClockId, 'update');
    if (!clock) throw notFound('test clock');
    if (isRepeat && clock.targetAt === to) return clock;
    if ((await countBehind(tx, clock)) > 0) {
      throw new DomainError('operation_not_allowed', 'The test clock is still advancing.');
    }
    if (to < clock.targetAt) {
      const present = formatInstant(clock.targetAt);
      // Refused for how things stand, so it is kept under its key.
      throw new DomainError('bad_request', `to: must not lie before ${present}`);
    }
    await sendTestClock(tx, clock, to);
    return { ...clock, targetAt: to };
  });
}

/**
 * Tells every subscription that is not there where its clock was sent and waits until all are, at
 * most `clockWaitMs`. True when they are. A subscription that could not be told is told by the sweep.
 */
export async function waitUntilReached(deps: ApiDeps, clock: TestClock): Promise<boolean> {
  const deadline = performance.now() + (deps.clockWaitMs ?? DEFAULT_WAIT_MS);
  // Nothing waits for this: the rows say who is there, and the sweep tells whom this did not.
  tellSubscriptions(deps, clock, deadline).catch((error: unknown) => {
    deps.logger.warn({ testClockId: clock.id, causes: causesOf(error) }, 'telling a clock stopped');
  });
  let pollMs = FIRST_POLL_MS;
  for (;;) {
    if ((await countBehind(deps.db, clock)) === 0) return true;
    if (performance.now() + pollMs > deadline) return false;
    await sleep(pollMs);
    pollMs = Math.min(pollMs * 1.5, SLOWEST_POLL_MS);
  }
}

async function tellSubscriptions(
  { db, workflows, logger }: ApiDeps,
  clock: TestClock,
  deadline: number,
): Promise<void> {
  const waiting = await subscriptionsBehind(db, clock);
  const tellNext = async (): Promise<void> => {
    for (;;) {
      const subscriptionId = waiting.shift();
      if (subscriptionId === undefined || performance.now() > deadline) return;
      const ref = { merchantId: clock.merchantId, subscriptionId };
      await workflows.advanceClock(ref, clock.targetAt).catch(() => {
        logger.warn(ref, 'could not be told of its test clock; the sweep does it');
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_SIGNALS }, tellNext));
}

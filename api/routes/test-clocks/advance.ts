import { setTimeout as sleep } from 'node:timers/promises';
import {
  countBehind,
  findTestClock,
  sendTestClock,
  subscriptionsBehind,
} from '../../../db/repositories/merchants/test-clocks.ts';
import type { TestClock } from '../../../db/repositories/merchants/test-clocks.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { DomainError } from '../../../domain/errors.ts';
import { found } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import { causesOf } from '../../middleware/errors.ts';

/** Default of `clockWaitMs`, the longest wait for the subscriptions of the clock. */
const DEFAULT_WAIT_MS = 25_000;
const FIRST_POLL_MS = 20;
const SLOWEST_POLL_MS = 1_000;
/** Maximum number of signals that are sent at the same time. */
const PARALLEL_SIGNALS = 16;

/**
 * Sets the clock's target. The caller must signal the subscriptions after the commit; else the sweep does.
 * `isRepeat`: an earlier call may have committed it.
 * @throws DomainError for an earlier target, and while it advances.
 */
export async function setClockTarget(
  { db }: ApiDeps,
  merchantId: string,
  order: { testClockId: string; to: number; isRepeat: boolean },
): Promise<TestClock> {
  const { testClockId, to, isRepeat } = order;
  return db.transaction(async (tx) => {
    const clock = found(await findTestClock(tx, merchantId, testClockId, 'update'), 'test clock');
    if (isRepeat && clock.targetAt === to) return clock;
    if ((await countBehind(tx, clock)) > 0) {
      throw new DomainError('operation_not_allowed', 'The test clock is still advancing.');
    }
    if (to < clock.targetAt) {
      const present = formatInstant(clock.targetAt);
      // Not a FieldsError, because this refusal depends on the clock and must be stored under the Idempotency-Key.
      throw new DomainError('bad_request', `to: must not lie before ${present}`);
    }
    await sendTestClock(tx, clock, to);
    return { ...clock, targetAt: to };
  });
}

/**
 * Signals every subscription that has not reached the clock's target, and waits at most `clockWaitMs`. Returns
 * true if all have reached the target. The sweep repeats a signal that failed.
 */
export async function waitUntilReached(deps: ApiDeps, clock: TestClock): Promise<boolean> {
  const deadline = performance.now() + (deps.clockWaitMs ?? DEFAULT_WAIT_MS);
  // Not awaited, because the rows show which subscriptions have reached the target.
  signalSubscriptions(deps, clock, deadline).catch((error: unknown) => {
    deps.logger.warn(
      { testClockId: clock.id, causes: causesOf(error) },
      'cannot signal the subscriptions of a test clock; the sweep repeats it',
    );
  });
  let pollMs = FIRST_POLL_MS;
  for (;;) {
    if ((await countBehind(deps.db, clock)) === 0) return true;
    if (performance.now() + pollMs > deadline) return false;
    await sleep(pollMs);
    pollMs = Math.min(pollMs * 1.5, SLOWEST_POLL_MS);
  }
}

async function signalSubscriptions(
  { db, workflows, logger }: ApiDeps,
  clock: TestClock,
  deadline: number,
): Promise<void> {
  const behind = await subscriptionsBehind(db, clock);
  const signalNext = async (): Promise<void> => {
    for (;;) {
      const subscriptionId = behind.shift();
      if (subscriptionId === undefined || performance.now() > deadline) return;
      const ref = { merchantId: clock.merchantId, subscriptionId };
      await workflows.advanceClock(ref, clock.targetAt).catch(() => {
        logger.warn(ref, 'cannot signal the subscription of a test clock; the sweep repeats it');
      });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_SIGNALS }, signalNext));
}

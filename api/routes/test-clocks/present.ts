import type { TestClock } from '../../../db/repositories/test-clocks.ts';

/** Rule: D-60. */
export function presentTestClock(clock: TestClock, isReady: boolean) {
  return {
    testClockId: clock.id,
    now: clock.targetAt,
    status: isReady ? 'READY' : 'ADVANCING',
  };
}

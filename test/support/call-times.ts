import { expect } from 'vitest';

/**
 * Adds the workflow time of an activity's call to `calledAt`, unless the call repeats the latest one: a repeat, such as
 * that of a local activity which took longer than 3 s, has the same time.
 */
export function noteCall(calledAt: number[], at: number): void {
  if (calledAt.at(-1) !== at) calledAt.push(at);
}

/**
 * Returns the seconds from the first to each of `instants`, in epoch ms. Each delay between two of them is rounded down
 * to tens of seconds: the clock of the time-skipping server runs in real time while work is in progress, so a busy
 * machine adds seconds to each delay.
 */
export function secondsFromFirst(instants: readonly number[]): number[] {
  let seconds = 0;
  return instants.map((at, index) => {
    seconds += Math.floor((at - (instants[index - 1] ?? at)) / 10_000) * 10;
    return seconds;
  });
}

/** Number of calls of the first day of an unknown outcome: the send, and 313 look-ups. */
export const FIRST_DAY_CALLS = 314;

/** The longest delay between two calls of the first day, in s, with a margin for a busy machine. */
const DELAY_MAX_S = 300;

/**
 * Expects that `instants`, in epoch ms, are those of a send and of its look-ups on the first day, after 10 s, 30 s and
 * 1 min, and then at most 5 min apart. All look-ups of the day together take 24 to 25 h.
 */
export function expectFirstDay(instants: readonly number[]): void {
  const delays = instants.slice(1).map((at, n) => (at - (instants[n] ?? at)) / 1_000);
  expect(secondsFromFirst(instants.slice(0, 4))).toEqual([0, 10, 40, 100]);
  expect(Math.max(...delays)).toBeLessThanOrEqual(DELAY_MAX_S);
  expect(Math.min(...delays.slice(4))).toBeGreaterThanOrEqual(280);
  expect(instants).toHaveLength(FIRST_DAY_CALLS);
  expect(delays.reduce((sum, delay) => sum + delay, 0)).toBeGreaterThanOrEqual(24 * 3_600);
}

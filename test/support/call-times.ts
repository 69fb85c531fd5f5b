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

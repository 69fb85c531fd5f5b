import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 25;

/** Throws after `withinMs`, with `what` and the result of `soFar` in the message. */
export async function waitFor<Found>(
  what: string,
  withinMs: number,
  find: () => Promise<Found | undefined> | Found | undefined,
  soFar: () => string = () => '',
): Promise<Found> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    if (performance.now() > giveUpAt) {
      throw new Error(`waited ${withinMs / 1_000} s for ${what}. ${soFar()}`.trimEnd());
    }
    await sleep(POLL_MS);
  }
}

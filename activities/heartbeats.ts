import { Context } from '@temporalio/activity';

/** Well below the heartbeat time-out of every activity that has one. */
const EVERY_MS = 1_000;

/**
 * The same activities, which say every second that their process is alive: one whose process died is
 * tried again after seconds, not after its whole time limit. One that was given up for dead and goes on
 * all the same does no harm: every activity may run twice at once. For workers only.
 */
export function withHeartbeats<T extends object>(activities: T): T {
  const beating = Object.entries(activities).map(([name, activity]) => [
    name,
    async (...args: unknown[]) => {
      const context = Context.current();
      const timer = setInterval(() => context.heartbeat(), EVERY_MS);
      try {
        return await (activity as (...args: unknown[]) => Promise<unknown>)(...args);
      } finally {
        clearInterval(timer);
      }
    },
  ]);
  return Object.fromEntries(beating) as T;
}

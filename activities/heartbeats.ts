import { Context } from '@temporalio/activity';

/** Well below the heartbeat time-out, which is 5 s for every activity. */
const EVERY_MS = 1_000;

/**
 * Wraps activities so that each sends a heartbeat every second. Temporal then retries an activity of a
 * dead process after seconds, not after its whole time limit. An activity whose process only stalled may
 * run beside its retry, which is safe: every activity may run twice at once. For workers only.
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

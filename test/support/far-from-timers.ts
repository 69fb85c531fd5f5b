import type { TimeSkippingEnvironment } from './test-environment.ts';

/** A message takes effect within this time, also on a busy machine. */
const NEAR_MS = 10_000;
const SLEEPS_MAX = 20;

/**
 * Lets the server's time pass until no timer of the workflow ends within 10 s. A test may then send a message; see
 * `startTimeSkippingServer`.
 */
export async function farFromTimers(
  env: TimeSkippingEnvironment,
  workflowId: string,
): Promise<void> {
  for (let sleeps = 0; sleeps < SLEEPS_MAX; sleeps += 1) {
    const waitMs = await msToNextTimer(env, workflowId);
    if (waitMs > NEAR_MS) return;
    await env.server.sleep(Math.max(0, waitMs) + 1_000);
  }
  throw new Error(`a timer of ${workflowId} ended soon after each of ${SLEEPS_MAX} sleeps`);
}

/** Returns the time until the next timer of the latest run ends; `Infinity` without a timer. */
async function msToNextTimer(
  { client, server }: TimeSkippingEnvironment,
  workflowId: string,
): Promise<number> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const endsAt = new Map<string, number>();
  for (const event of events ?? []) {
    const started = event.timerStartedEventAttributes;
    const over = event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes;
    if (started) {
      const timeout = millis(started.startToFireTimeout);
      endsAt.set(String(started.timerId), millis(event.eventTime) + timeout);
    }
    if (over) endsAt.delete(String(over.timerId));
  }
  return Math.min(...endsAt.values()) - (await server.currentTimeMs());
}

function millis(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1_000_000;
}

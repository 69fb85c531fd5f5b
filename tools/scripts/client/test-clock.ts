import type { Client } from '../../../client/index.ts';
import { minuteText } from '../../../cli/command-line/terminal.ts';
import { waitFor } from './wait-for.ts';

export async function createTestClock(client: Client, nowAt: number): Promise<string> {
  return (await client.createTestClock({ body: { now: nowAt } })).testClockId;
}

/** Waits until every step due by then has been executed. Throws after `withinMs`. */
export async function advanceTestClock(
  client: Client,
  testClockId: string,
  to: number,
  withinMs: number,
): Promise<void> {
  const sent = await client.advanceTestClock({ body: { testClockId, to } });
  if (sent.status === 'READY') return;
  await waitFor(`the test clock to reach ${minuteText(to)}`, withinMs, async () => {
    const clock = await client.getTestClock({ path: { testClockId } });
    return clock.status === 'READY' ? clock : undefined;
  });
}

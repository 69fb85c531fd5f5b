import type { MerchantClient } from './merchant-client.ts';
import { minuteText } from '../../../cli/command-line/terminal.ts';
import { waitFor } from './wait-for.ts';

interface ClockAnswer {
  readonly testClockId: string;
  readonly now: number;
  readonly status: 'READY' | 'ADVANCING';
}

export async function createTestClock(merchant: MerchantClient, nowAt: number): Promise<string> {
  const clock = await merchant.post<ClockAnswer>('/test-clock/create', { now: nowAt });
  return clock.testClockId;
}

/** Waits until every step due by then has been executed. Throws after `withinMs`. */
export async function advanceTestClock(
  merchant: MerchantClient,
  testClockId: string,
  to: number,
  withinMs: number,
): Promise<void> {
  const sent = await merchant.post<ClockAnswer>('/test-clock/advance', { testClockId, to });
  if (sent.status === 'READY') return;
  await waitFor(`the test clock to reach ${minuteText(to)}`, withinMs, async () => {
    const clock = await merchant.get<ClockAnswer>(`/test-clock/${testClockId}`);
    return clock.status === 'READY' ? clock : undefined;
  });
}

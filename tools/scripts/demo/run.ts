// Shared by all parts of the demo: the connections, and the wait for the events of one subscription.

import type { MerchantClient } from '../client/merchant-client.ts';
import type { ReceivedWebhook, WebhookReceiver } from '../client/webhook-receiver.ts';
import type { RunningStart } from '../client/running-start.ts';
import { waitFor } from '../client/wait-for.ts';
import type { Differences } from './check.ts';

/** Time limit in ms of one advance of the test clock, enough for all events of a month on a busy machine. */
export const ADVANCE_WITHIN_MS = 60_000;
export const EVENTS_WITHIN_MS = 30_000;

export const at = (minute: string): number => Date.parse(`${minute.replace(' ', 'T')}:00.000Z`);

export interface DemoRun {
  readonly start: RunningStart;
  readonly merchant: MerchantClient;
  readonly receiver: WebhookReceiver;
  readonly differences: Differences;
}

/** The result of the part of the demo that takes a subscription through a year. `events`: how many were checked. */
export interface DemoYear {
  readonly subscriptionId: string;
  readonly events: number;
}

/** An expected event is missing, so the steps after it would be meaningless. */
class YearStopped extends Error {}

/** Waits for `year`. Resolves also if the year was stopped: the reason is then in the differences. */
export async function unlessStopped(year: Promise<void>): Promise<void> {
  try {
    await year;
  } catch (error) {
    if (!(error instanceof YearStopped)) throw error;
  }
}

/** The events of one subscription in the order of their arrival. */
export interface EventsOfOne {
  seen(): number;
  unseen(): number;
  /** Waits 30 s for as many new events as `types`, and gives all to `check`. Throws {@link YearStopped} if too few. */
  expect(
    types: readonly string[],
    check: (received: readonly ReceivedWebhook[]) => void,
  ): Promise<void>;
}

/** `isOurs` selects the events. The endpoint may also get events of other subscriptions. */
export function eventsOf(
  receiver: WebhookReceiver,
  differences: Differences,
  isOurs: (event: ReceivedWebhook['event']) => boolean,
): EventsOfOne {
  let seen = 0;
  const ours = () => receiver.received.filter(({ event }) => isOurs(event));
  return {
    seen: () => seen,
    unseen: () => ours().length - seen,
    expect: async (types, check) => {
      const received = await waitFor('webhooks', EVENTS_WITHIN_MS, () => {
        const all = ours();
        return all.length >= seen + types.length ? all : undefined;
      }).catch(ours);
      const fresh = received.slice(seen);
      check(fresh);
      seen = received.length;
      const missing = types.slice(fresh.length);
      if (missing.length === 0) return;
      differences.list.push(
        `${missing.join(', ')} did not arrive within ${EVENTS_WITHIN_MS / 1_000} s, so the demo ` +
          'cannot continue',
      );
      throw new YearStopped();
    },
  };
}

import { randomBytes } from 'node:crypto';
import type { Closers } from './child-process.ts';
import type { MerchantClient } from '../../scripts/client/merchant-client.ts';
import { freePort } from '../../embedded/ports.ts';
import { startChild } from './child-process.ts';

export interface Arrival {
  readonly path: string;
  /** Arrival of the request's headers, in epoch ms with fractions. */
  readonly at: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly subscriptionId: string | null;
}

interface Selection {
  readonly path: string;
  readonly since: number;
  readonly eventType?: string;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export async function startReceiver(closers: Closers) {
  const received: Arrival[] = [];
  const [answering, silent] = [await freePort(), await freePort()];
  const args = [String(answering), String(silent)];
  const child = await startChild('tools/bench/stack/receiver-main.ts', args, closers, (arrival) =>
    received.push(arrival as Arrival),
  );
  return {
    pid: child.pid,
    arrivals: (wanted: Selection): Arrival[] =>
      received.filter(
        ({ path, at, eventType }) =>
          path === wanted.path &&
          at >= wanted.since &&
          (wanted.eventType === undefined || eventType === wanted.eventType),
      ),
    silentUrl: `http://127.0.0.1:${silent}/webhooks`,
    /** Creates a webhook configuration and returns its id. Default endpoint: this receiver under `path`. */
    subscribe: async (
      merchant: MerchantClient,
      path: string,
      eventTypes: readonly string[],
      endpoint = `http://127.0.0.1:${answering}${path}`,
    ): Promise<string> => {
      const made = await merchant.post<{ webhookConfigId: string }>('/webhook', {
        endpoint,
        eventSigner: `whsec_${randomBytes(24).toString('base64')}`,
        subscribedEventTypes: eventTypes,
      });
      return made.webhookConfigId;
    },
  };
}

import { randomBytes } from 'node:crypto';
import type { Closer } from '../../../runtime/shutdown.ts';
import type { MerchantClient } from '../../../test/support/merchant-client.ts';
import { startChild } from './child-process.ts';

/** One webhook request at the receiver. */
export interface Arrival {
  /** The URL path, which identifies the configuration. */
  readonly path: string;
  /** Arrival of the request's headers, in epoch ms with fractions. */
  readonly at: number;
  readonly eventId: string;
  /** True if this event had arrived before. */
  readonly isRepeat: boolean;
  readonly eventType: string;
  readonly eventTime: number;
  readonly subscriptionId: string | null;
}

interface Selection {
  readonly path: string;
  /** Epoch ms. */
  readonly since: number;
  readonly eventType?: string;
}

export type ReceiverRequest =
  | { readonly kind: 'ports' }
  | { readonly kind: 'silentConnections' }
  | ({ readonly kind: 'arrivals' | 'subscriptions' } & Selection);

export interface Receiver {
  readonly pid: number;
  arrivals(selection: Selection): Promise<Arrival[]>;
  /** Number of different subscriptions among the arrivals that match `selection`. */
  subscriptions(selection: Selection): Promise<number>;
  /** Number of connections that the silent port has accepted so far. */
  silentConnections(): Promise<number>;
  /** URL of a port that accepts connections and never answers. */
  readonly silentUrl: string;
  /** Creates a webhook configuration and returns its id. Default endpoint: this receiver under `path`. */
  subscribe(
    merchant: MerchantClient,
    path: string,
    eventTypes: readonly string[],
    endpoint?: string,
  ): Promise<string>;
}

/** Starts the webhook receiver in a separate process. */
export async function startReceiver(closers: Closer[]): Promise<Receiver> {
  const child = await startChild('tools/bench/stack/receiver-main.ts', [], closers);
  const ports = await child.ask<{ answering: number; silent: number }>({ kind: 'ports' });
  return {
    pid: child.pid,
    arrivals: (selection) => child.ask({ kind: 'arrivals', ...selection }),
    subscriptions: (selection) => child.ask({ kind: 'subscriptions', ...selection }),
    silentConnections: () => child.ask({ kind: 'silentConnections' }),
    silentUrl: `http://127.0.0.1:${ports.silent}/webhooks`,
    subscribe: async (merchant, path, eventTypes, endpoint) => {
      const made = await merchant.post<{ webhookConfigId: string }>('/webhook', {
        endpoint: endpoint ?? `http://127.0.0.1:${ports.answering}${path}`,
        eventSigner: `whsec_${randomBytes(24).toString('base64')}`,
        subscribedEventTypes: eventTypes,
      });
      return made.webhookConfigId;
    },
  };
}

import { randomBytes } from 'node:crypto';
import type { Closer } from '../../runtime/shutdown.ts';
import type { MerchantClient } from '../../test/support/merchant-client.ts';
import { startChild } from './child-process.ts';

/** One webhook request, as the receiver noted it. */
export interface Arrival {
  /** Which configuration it was sent for. */
  readonly path: string;
  /** Epoch ms, with fractions: when the request's headers were there. */
  readonly at: number;
  readonly eventId: string;
  /** True when this event had arrived before. */
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
  /** How many different subscriptions have an arrival like that. */
  subscriptions(selection: Selection): Promise<number>;
  /** Connections that the silent port has accepted so far. */
  silentConnections(): Promise<number>;
  /** Address of a port that accepts connections and never answers. */
  readonly silentUrl: string;
  /** Makes a webhook configuration, by default for this receiver under `path`; gives its id. */
  subscribe(
    merchant: MerchantClient,
    path: string,
    eventTypes: readonly string[],
    endpoint?: string,
  ): Promise<string>;
}

/** Starts the webhook receiver in a process of its own. */
export async function startReceiver(closers: Closer[]): Promise<Receiver> {
  const child = await startChild('bench/stack/receiver-main.ts', [], closers);
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

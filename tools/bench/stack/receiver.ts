import { randomBytes } from 'node:crypto';
import type { Closer } from '../../../runtime/shutdown.ts';
import type { MerchantClient } from '../../scripts/client/merchant-client.ts';
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

export type ReceiverRequest =
  | { readonly kind: 'ports' }
  | ({ readonly kind: 'arrivals' | 'subscriptions' } & Selection);

export interface Receiver {
  readonly pid: number;
  arrivals(selection: Selection): Promise<Arrival[]>;
  subscriptions(selection: Selection): Promise<number>;
  readonly silentUrl: string;
  /** Creates a webhook configuration and returns its id. Default endpoint: this receiver under `path`. */
  subscribe(
    merchant: MerchantClient,
    path: string,
    eventTypes: readonly string[],
    endpoint?: string,
  ): Promise<string>;
}

export async function startReceiver(closers: Closer[]): Promise<Receiver> {
  const child = await startChild('tools/bench/stack/receiver-main.ts', [], closers);
  const ports = await child.ask<{ answering: number; silent: number }>({ kind: 'ports' });
  return {
    pid: child.pid,
    arrivals: (selection) => child.ask({ kind: 'arrivals', ...selection }),
    subscriptions: (selection) => child.ask({ kind: 'subscriptions', ...selection }),
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

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { components } from './api.d.ts';
import { expectSame } from './checks.ts';

type Schemas = components['schemas'];
export type Event = Schemas['IntentEvent' | 'SubscriptionEvent' | 'SetupMethodEvent'];
export type EventType = Event['eventType'];

const WAIT_MS = 60_000;

/** An HTTP server that checks both signatures of each webhook, and keeps each event once. */
export class Inbox {
  readonly signer = `whsec_${randomBytes(32).toString('base64')}`;
  private readonly events = new Map<string, Event>();
  private forged = 0;
  private readonly server = createServer((request, response) => {
    void buffer(request).then((body) => {
      response.writeHead(this.receive(body, request.headers) ? 204 : 400).end();
    });
  });

  /** Starts the server, and returns its URL. */
  async open(): Promise<string> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/webhooks`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** The number of events. Throws if an event had a wrong signature. */
  count(): number {
    expectSame('events with a wrong signature', this.forged, 0);
    return this.events.size;
  }

  /** The events whose `field` is `value`, in the order of their sequence. */
  about(field: string, value: string): Event[] {
    return [...this.events.values()]
      .filter((event) => Object.entries(event).some(([key, is]) => key === field && is === value))
      .toSorted((a, b) => a.sequence - b.sequence);
  }

  /**
   * Waits at most 60 s for as many events as `types` has, and returns the events. Throws if their types are
   * not `types`.
   */
  async expect(field: string, value: string, types: readonly EventType[]): Promise<Event[]> {
    const giveUpAt = Date.now() + WAIT_MS;
    while (this.about(field, value).length < types.length && Date.now() < giveUpAt) await sleep(20);
    const events = this.about(field, value);
    expectSame(
      `events of ${value}`,
      events.map(({ eventType }) => eventType),
      types,
    );
    return events;
  }

  private receive(body: Buffer, headers: IncomingHttpHeaders): boolean {
    if (!isGenuine(body, headers, this.signer) || !hasXpaySignature(body, headers, this.signer)) {
      this.forged += 1;
      return false;
    }
    const event = JSON.parse(body.toString()) as Event;
    this.events.set(event.eventId, event);
    return true;
  }
}

/** Checks `webhook-signature`, a signature of Standard Webhooks, over the received bytes. */
function isGenuine(body: Buffer, headers: IncomingHttpHeaders, secret: string): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const timestamp = textOf(headers['webhook-timestamp']);
  const signed = `${textOf(headers['webhook-id'])}.${timestamp}.`;
  const right = createHmac('sha256', key).update(signed).update(body).digest('base64');
  const isRecent = Math.abs(Date.now() / 1_000 - Number(timestamp)) < 300;
  const given = textOf(headers['webhook-signature']).split(' ');
  return isRecent && given.some((signature) => isSame(signature, `v1,${right}`));
}

/** Checks the older signature. One of the two checks is enough. */
function hasXpaySignature(body: Buffer, headers: IncomingHttpHeaders, secret: string): boolean {
  const right = createHmac('sha512', secret).update(body).digest('base64');
  return isSame(textOf(headers['xpay-signature']), right);
}

const textOf = (header: string | string[] | undefined): string => header?.toString() ?? '';

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyWebhook, WebhookVerificationError } from '../../client/index.ts';
import type { Event } from '../../client/index.ts';
import { expectSame } from './checks.ts';

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
    try {
      const event = verifyWebhook({ body, headers, secret: this.signer });
      if (!hasXpaySignature(body, headers, this.signer)) throw new WebhookVerificationError();
      this.events.set(event.eventId, event);
      return true;
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      this.forged += 1;
      return false;
    }
  }
}

/** Checks the older signature. One of the two checks is enough. */
function hasXpaySignature(body: Buffer, headers: IncomingHttpHeaders, secret: string): boolean {
  const right = Buffer.from(createHmac('sha512', secret).update(body).digest('base64'));
  const given = Buffer.from(headers['xpay-signature']?.toString() ?? '');
  return given.length === right.length && timingSafeEqual(given, right);
}

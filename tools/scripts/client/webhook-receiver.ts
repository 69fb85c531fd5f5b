import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { KEEP_ALIVE_MS, listen } from './listen.ts';

/** The receiver's reaction to a request: an answer, no answer, or a closed connection. */
export type ReceiverAnswer =
  | { status: number; headers?: Record<string, string>; body?: string | Buffer }
  | 'hang'
  | 'close';

export interface ReceivedWebhook {
  headers: IncomingHttpHeaders;
  rawBody: Buffer;
  /** The parsed body. */
  event: { eventId: string; eventType: string; eventTime: number; sequence: number } & Record<
    string,
    unknown
  >;
  /** The status of the answer, or null without an answer. */
  answered: number | null;
  /** Whether `webhook-signature` and its timestamp are valid for one of the receiver's secrets. */
  isStandardSignatureValid: boolean;
  /** Whether `xpay-signature` is valid for one of the receiver's secrets. */
  isXpaySignatureValid: boolean;
}

export interface WebhookReceiver {
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly received: readonly ReceivedWebhook[];
  /** Sets the answer to each request for which {@link answerNext} has set no answer. Default: status 200. */
  answerWith(answer: ReceiverAnswer): void;
  /** Sets one answer for each of the next requests. */
  answerNext(...answers: ReceiverAnswer[]): void;
  /** Sets a callback that runs after a request is recorded and before its answer. */
  onReceive(callback: (webhook: ReceivedWebhook) => Promise<void> | void): void;
  /** Waits for at least `count` requests and returns all received ones. */
  waitFor(count: number): Promise<readonly ReceivedWebhook[]>;
  /** Stops the server. A further call has no effect. */
  close(): Promise<void>;
}

const TOLERANCE_SECONDS = 300;

/**
 * Starts a merchant's webhook endpoint: a real HTTP server on `port` or a free loopback port. The endpoint
 * records every request and checks both signatures from the published rules alone, as a merchant would.
 */
export async function startWebhookReceiver(options: {
  secrets: readonly string[];
  port?: number;
}): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const queue: ReceiverAnswer[] = [];
  const waiting = new Set<() => void>();
  let standing: ReceiverAnswer = { status: 200 };
  let beforeAnswer: (webhook: ReceivedWebhook) => Promise<void> | void = () => undefined;

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void (async () => {
      const rawBody = await readBody(request);
      const answer = queue.shift() ?? standing;
      const webhook = examine(request.headers, rawBody, options.secrets);
      webhook.answered = typeof answer === 'string' ? null : answer.status;
      received.push(webhook);
      await beforeAnswer(webhook);
      give(answer, response);
      for (const notify of waiting) notify();
    })();
  });
  const { url, close } = await listen(server, options.port);
  let closed: Promise<void> | undefined;

  return {
    url: `${url}/webhooks`,
    received,
    answerWith: (answer) => {
      standing = answer;
    },
    answerNext: (...answers) => {
      queue.push(...answers);
    },
    onReceive: (callback) => {
      beforeAnswer = callback;
    },
    waitFor: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (received.length < count) return;
          waiting.delete(check);
          resolve(received);
        };
        waiting.add(check);
        check();
      }),
    close: () => (closed ??= close()),
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function give(answer: ReceiverAnswer, response: ServerResponse): void {
  if (answer === 'hang') return;
  if (answer === 'close') response.socket?.destroy();
  else response.writeHead(answer.status, answer.headers).end(answer.body);
}

function examine(
  headers: IncomingHttpHeaders,
  rawBody: Buffer,
  secrets: readonly string[],
): ReceivedWebhook {
  const id = String(headers['webhook-id']);
  const timestamp = String(headers['webhook-timestamp']);
  const listed = String(headers['webhook-signature']).split(' ');
  const isFresh = Math.abs(Date.now() / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS;
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), rawBody]);
  return {
    headers,
    rawBody,
    event: JSON.parse(rawBody.toString('utf8')),
    answered: null,
    isStandardSignatureValid:
      isFresh &&
      secrets.some((secret) => {
        const expected = `v1,${standardMac(secret, signed)}`;
        return listed.some((signature) => isSame(signature, expected));
      }),
    isXpaySignatureValid: secrets.some((secret) =>
      isSame(
        String(headers['xpay-signature']),
        createHmac('sha512', secret).update(rawBody).digest('base64'),
      ),
    ),
  };
}

function standardMac(secret: string, bytes: Buffer): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  return createHmac('sha256', key).update(bytes).digest('base64');
}

function isSame(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}

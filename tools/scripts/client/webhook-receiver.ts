import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { KEEP_ALIVE_MS, listen } from './listen.ts';
import { waitFor } from './wait-for.ts';

/** The receiver's reaction to a request: an answer (`raw`: its bytes), no answer, or a closed connection. */
export type ReceiverAnswer =
  | { status: number; headers?: OutgoingHttpHeaders; body?: string | Buffer }
  | { status: number; raw: string }
  | 'hang'
  | 'close';

export interface WebhookEvent extends Record<string, unknown> {
  eventId: string;
  eventType: string;
  eventTime: number;
  sequence: number;
}

export type ReceivedWebhook = ReturnType<typeof examine>;
export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

/** Longer than any test. */
const RECEIVED_WITHIN_MS = 600_000;

/**
 * Starts a merchant's webhook endpoint: a real HTTP server on `port` or a free loopback port. The endpoint
 * records every request and checks both signatures from the published rules alone, as a merchant would.
 */
export async function startWebhookReceiver(options: { secrets: readonly string[]; port?: number }) {
  const received: ReceivedWebhook[] = [];
  const queue: ReceiverAnswer[] = [];
  let standing: ReceiverAnswer = { status: 200 };
  let beforeAnswer: (webhook: ReceivedWebhook) => Promise<void> | void = () => undefined;

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void (async () => {
      const rawBody = await buffer(request);
      const answer = queue.shift() ?? standing;
      const webhook = examine(request.headers, rawBody, options.secrets);
      webhook.answered = typeof answer === 'string' ? null : answer.status;
      received.push(webhook);
      await beforeAnswer(webhook);
      give(answer, response);
    })();
  });
  const { url, close } = await listen(server, options.port);
  let closed: Promise<void> | undefined;

  return {
    url: `${url}/webhooks`,
    /** Every request, in the order of arrival. */
    received: received as readonly ReceivedWebhook[],
    /** Sets the answer to each request for which `answerNext` has set no answer. Default: status 200. */
    answerWith: (answer: ReceiverAnswer): void => void (standing = answer),
    /** Sets one answer for each of the next requests. */
    answerNext: (...answers: ReceiverAnswer[]): void => void queue.push(...answers),
    /** Sets a callback that runs after a request is recorded and before its answer. */
    onReceive: (callback: typeof beforeAnswer): void => void (beforeAnswer = callback),
    /** Waits for at least `count` requests and returns all received ones. */
    waitFor: (count: number): Promise<readonly ReceivedWebhook[]> =>
      waitFor(`${count} webhooks`, RECEIVED_WITHIN_MS, () =>
        received.length < count ? undefined : received,
      ),
    /** Stops the server. A further call has no effect. */
    close: (): Promise<void> => (closed ??= close()),
  };
}

function give(answer: ReceiverAnswer, response: ServerResponse): void {
  if (answer === 'hang') return;
  if (answer === 'close') response.socket?.destroy();
  else if ('raw' in answer) response.socket?.end(answer.raw);
  else response.writeHead(answer.status, answer.headers).end(answer.body);
}

function examine(headers: IncomingHttpHeaders, rawBody: Buffer, secrets: readonly string[]) {
  return {
    headers,
    rawBody,
    event: JSON.parse(rawBody.toString('utf8')) as WebhookEvent,
    /** The status of the answer, or null without an answer. */
    answered: null as number | null,
    /** Whether `webhook-signature` and its timestamp are valid for one of the receiver's secrets. */
    isStandardSignatureValid: secrets.some((secret) => isSigned(headers, rawBody, secret)),
    /** Whether `xpay-signature` is valid for one of the receiver's secrets. */
    isXpaySignatureValid: secrets.some(
      (secret) =>
        headers['xpay-signature'] === createHmac('sha512', secret).update(rawBody).digest('base64'),
    ),
  };
}

function isSigned(headers: IncomingHttpHeaders, rawBody: Buffer, secret: string): boolean {
  const webhook = new Webhook(secret, secret.startsWith('whsec_') ? {} : { format: 'raw' });
  try {
    webhook.verify(rawBody, headers as Record<string, string>);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

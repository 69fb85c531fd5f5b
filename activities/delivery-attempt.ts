import type { RecordedAttempt } from '../db/repositories/webhooks/deliveries.ts';
import type { ClaimedDelivery, Endpoint } from '../db/repositories/webhooks/claims.ts';
import {
  delayAfterFailure,
  holdsBackLaterEvents,
  isDue,
  parseRetryAfter,
} from '../domain/delivery-schedule.ts';
import { failpoint } from '../runtime/failpoints.ts';
import type { Sealing } from '../runtime/sealing.ts';
import type { SendResult, WebhookRequest } from './webhook-sender.ts';
import { signatureHeaders } from './webhook-signature.ts';

export interface AttemptDeps {
  sealing: Pick<Sealing, 'open'>;
  send: (webhook: WebhookRequest) => Promise<SendResult>;
}

/** Longest time from a claim to the start of a request, in ms. A request takes at most 15 s. */
export const SEND_WITHIN_MS = 20_000;
/**
 * Length of a claim, in ms: 20 s + 15 s, and 10 s for database statements. Only the claim of a dead process expires.
 */
export const CLAIM_MS = 45_000;

/**
 * `now` decides which deliveries are due. `maySend` says whether another request may begin. `isFresh`: the claim read
 * the configuration just now. `isUnchanged` reads whether the merchant has changed or deleted the configuration since.
 */
export interface SendingTime {
  now: () => number;
  maySend: () => boolean;
  isFresh: boolean;
  isUnchanged: () => Promise<boolean>;
}

/**
 * Sends deliveries of one stream one after the other, and reports each attempt when it ends. Stops at a
 * delivery that is not due, at a failure for which later events must wait, when `maySend` is false, and when the
 * configuration has changed or cannot be read.
 * Returns the deliveries that were not sent. Throws only if the signing secret cannot be decrypted; then nothing
 * was sent.
 */
export async function sendBatch(
  deps: AttemptDeps,
  endpoint: Endpoint,
  deliveries: readonly ClaimedDelivery[],
  time: SendingTime,
  report: (attempt: RecordedAttempt) => void,
): Promise<readonly ClaimedDelivery[]> {
  const secrets = openSecrets(deps, endpoint);
  for (const [index, delivery] of deliveries.entries()) {
    if (!isDue(delivery, time.now()) || !time.maySend()) return deliveries.slice(index);
    const isKnown = index === 0 && time.isFresh;
    const isCurrent = isKnown || (await time.isUnchanged().catch(() => false));
    if (!isCurrent || !time.maySend()) return deliveries.slice(index);
    const attempt = await makeAttempt(deps, endpoint, secrets, delivery, time);
    failpoint('after_delivery');
    report(attempt);
    if (attempt.state === 'PENDING' && holdsBackLaterEvents(attempt)) {
      return deliveries.slice(index + 1);
    }
  }
  return [];
}

interface Secrets {
  signer: string;
  previousSigner: string | null;
  previousUntil: number;
}

function openSecrets({ sealing }: AttemptDeps, endpoint: Endpoint): Secrets {
  const { configId, sealedSigner, sealedPreviousSigner, previousSignerUntil } = endpoint;
  const isPreviousListed = previousSignerUntil !== null && previousSignerUntil > Date.now();
  return {
    signer: sealing.open(sealedSigner, configId),
    previousSigner:
      isPreviousListed && sealedPreviousSigner
        ? sealing.open(sealedPreviousSigner, configId)
        : null,
    previousUntil: previousSignerUntil ?? 0,
  };
}

/** Sends one delivery as a signed POST. Rules: D-53, D-54. */
async function makeAttempt(
  { send }: AttemptDeps,
  { configId, url }: Endpoint,
  { signer, previousSigner, previousUntil }: Secrets,
  delivery: ClaimedDelivery,
  time: SendingTime,
): Promise<RecordedAttempt> {
  // Receivers compare the timestamp with their own clock, so the timestamp must be real time.
  const sentAt = Date.now();
  const body = Buffer.from(delivery.body, 'utf8');
  const headers = signatureHeaders({
    eventId: delivery.eventId,
    sentAt,
    body,
    signer,
    previousSigner: previousUntil > sentAt ? previousSigner : null,
  });
  const result = await send({ url, headers, body });
  return attemptAfter(configId, delivery, result, time.now());
}

function attemptAfter(
  configId: string,
  delivery: ClaimedDelivery,
  result: SendResult,
  nowAt: number,
): RecordedAttempt {
  const { eventId } = delivery;
  const attempts = delivery.attempts + 1;
  const httpStatus = result.kind === 'answered' ? result.status : null;
  const recorded = { configId, eventId, attempts, httpStatus, nextAttemptAt: nowAt };
  if (httpStatus !== null && httpStatus >= 200 && httpStatus < 300) {
    return { ...recorded, state: 'DELIVERED', error: null, settledAt: nowAt };
  }
  const error = result.kind === 'answered' ? `status ${result.status}` : result.error;
  const retryAfterMs =
    result.kind === 'answered' ? parseRetryAfter(result.retryAfter, Date.now()) : null;
  const delayMs = delayAfterFailure({ attempts, jitter: Math.random(), retryAfterMs });
  return delayMs === null
    ? { ...recorded, state: 'FAILED', error, settledAt: nowAt }
    : { ...recorded, state: 'PENDING', error, nextAttemptAt: nowAt + delayMs, settledAt: null };
}

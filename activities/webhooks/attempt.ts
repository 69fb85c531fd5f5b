import type { ClaimedDelivery, Endpoint } from '../../db/repositories/webhooks/claims.ts';
import type { VersionedOutcome } from '../../db/repositories/webhooks/configs.ts';
import type { RecordedAttempt } from '../../db/repositories/webhooks/deliveries.ts';
import {
  delayAfterFailure,
  holdsBackLaterEvents,
  parseRetryAfter,
} from '../../domain/delivery-schedule.ts';
import type { Breaker, EndpointRef } from '../../domain/endpoint-breaker.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Sealing } from '../../runtime/sealing.ts';
import { traced } from '../../runtime/tracing.ts';
import type { Described, Subject } from '../../runtime/tracing.ts';
import { signatureHeaders, toldOf } from './sender.ts';
import type { SendResult, WebhookRequest } from './sender.ts';

export interface AttemptDeps {
  sealing: Pick<Sealing, 'open' | 'openIfPossible'>;
  send: (webhook: WebhookRequest) => Promise<SendResult>;
}

export interface BatchHooks {
  /** The time from which the next attempt of a failed delivery is counted. */
  now: () => number;
  /** Asked before each request; `isFirst` for the first one of the batch. */
  mayBegin: (isFirst: boolean) => Promise<boolean>;
  report: (attempt: RecordedAttempt) => void;
}

/**
 * Sends deliveries of one stream one after the other, until a failure for which later events must wait. Returns those
 * not sent. Throws, before it sends, if the signing secret cannot be decrypted.
 */
export async function sendBatch(
  deps: AttemptDeps,
  endpoint: Endpoint,
  deliveries: readonly ClaimedDelivery[],
  { now, mayBegin, report }: BatchHooks,
): Promise<readonly ClaimedDelivery[]> {
  const signers = openSigners(deps, endpoint);
  for (const [index, delivery] of deliveries.entries()) {
    if (!(await mayBegin(index === 0))) return deliveries.slice(index);
    const body = Buffer.from(delivery.body, 'utf8');
    // Receivers compare the timestamp with their own clock, so the timestamp must be real time.
    const signed = { eventId: delivery.eventId, sentAt: Date.now(), body, signers };
    const result = await traced(
      'webhook',
      (sent) => describeDelivery(delivery, sent),
      () =>
        deps.send({
          merchantId: endpoint.merchantId,
          url: endpoint.url,
          headers: signatureHeaders(signed),
          body,
        }),
    );
    const attempt = attemptAfter(endpoint, delivery, result, now());
    failpoint('after_delivery');
    report(attempt);
    const scheduled = attempt.attempts - delivery.resentAfter;
    if (attempt.state === 'PENDING' && holdsBackLaterEvents({ attempts: scheduled })) {
      return deliveries.slice(index + 1);
    }
  }
  return [];
}

/** Describes the request for its trace. The body has no `subscriptionId` if the event is none of a subscription's. */
function describeDelivery(
  { body, eventId, attempts }: ClaimedDelivery,
  sent?: SendResult,
): Described {
  const event = JSON.parse(body) as Subject & { eventType: string };
  return {
    subscriptionId: event.subscriptionId ?? undefined,
    intentId: event.intentId ?? undefined,
    name: `webhook ${event.eventType}`,
    attributes: {
      'perennial.event_id': eventId,
      'perennial.attempt': attempts + 1,
      'http.response.status_code': sent?.kind === 'answered' ? sent.status : 0,
    },
  };
}

/** Returns the present secret, then the previous one for 24 h after a change, if it can be decrypted. */
export function openSigners(
  { sealing }: AttemptDeps,
  endpoint: Pick<
    Endpoint,
    'configId' | 'sealedSigner' | 'sealedPreviousSigner' | 'previousSignerUntil'
  >,
): [string, ...string[]] {
  const { configId, sealedSigner, sealedPreviousSigner, previousSignerUntil } = endpoint;
  const signer = sealing.open(sealedSigner, configId);
  const isPreviousListed = previousSignerUntil !== null && previousSignerUntil > Date.now();
  const previous =
    isPreviousListed && sealedPreviousSigner
      ? sealing.openIfPossible(sealedPreviousSigner, configId)
      : null;
  return previous === null ? [signer] : [signer, previous];
}

function attemptAfter(
  { updatedAt }: Endpoint,
  { eventId, claimedUntil, attempts: before, isResent, resentAfter }: ClaimedDelivery,
  result: SendResult,
  nowAt: number,
): RecordedAttempt {
  const attempts = before + 1;
  const recorded = { eventId, claimedUntil, updatedAt, attempts, isManual: isResent, at: nowAt };
  const told = { ...recorded, ...toldOf(result) };
  const { httpStatus } = told;
  if (httpStatus !== null && httpStatus >= 200 && httpStatus < 300) {
    return { ...told, state: 'DELIVERED', nextAttemptAt: null };
  }
  if (result.kind === 'answered' && result.isFinal) {
    return { ...told, state: 'FAILED', nextAttemptAt: null };
  }
  const retryAfterMs =
    result.kind === 'answered' ? parseRetryAfter(result.retryAfter, Date.now()) : null;
  const scheduled = attempts - resentAfter;
  const delayMs = delayAfterFailure({ attempts: scheduled, jitter: Math.random(), retryAfterMs });
  return delayMs === null
    ? { ...told, state: 'FAILED', nextAttemptAt: null }
    : { ...told, state: 'PENDING', nextAttemptAt: nowAt + delayMs };
}

/** Logs the first failure after a success, and the first success after failures. */
export function logStartOrEndOfFailure(
  logger: Pick<Logger, 'info' | 'warn'> | undefined,
  ref: EndpointRef,
  { before, breaker }: { before: Breaker; breaker: Breaker },
  attempts: readonly RecordedAttempt[],
): void {
  const hasFailed = before.failingSince !== null;
  if (hasFailed === (breaker.failingSince !== null)) return;
  if (hasFailed) {
    logger?.info({ ...ref }, 'webhook endpoint has recovered');
    return;
  }
  const { error = null, httpStatus = null } =
    attempts.find(({ state }) => state !== 'DELIVERED') ?? {};
  logger?.warn({ ...ref, error, httpStatus }, 'webhook endpoint begins to fail');
}

/** What a drain must still record. `unsent`: claimed deliveries that it will not send. */
interface Unrecorded {
  readonly attempts: RecordedAttempt[];
  readonly outcomes: VersionedOutcome[];
  readonly unsent: ClaimedDelivery[];
}

export const nothingUnrecorded = (): Unrecorded => ({ attempts: [], outcomes: [], unsent: [] });

export const joinUnrecorded = (first: Unrecorded, then: Unrecorded): Unrecorded => ({
  attempts: [...first.attempts, ...then.attempts],
  outcomes: [...first.outcomes, ...then.outcomes],
  unsent: [...first.unsent, ...then.unsent],
});

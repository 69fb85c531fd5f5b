import type { Db } from '../db/client.ts';
import { readLane, recordAttempts, releaseLane } from '../db/repositories/deliveries.ts';
import type {
  LaneBatch,
  LaneRef,
  PendingDelivery,
  RecordedAttempt,
} from '../db/repositories/deliveries.ts';
import {
  changeFailingSince,
  deactivateWebhookConfig,
  dropPendingDeliveries,
} from '../db/repositories/webhook-configs.ts';
import {
  deactivationAfterFailure,
  delayAfterFailure,
  holdsBackLaterEvents,
  isDue,
  parseRetryAfter,
} from '../domain/delivery-schedule.ts';
import type { DeactivationReason } from '../domain/delivery-schedule.ts';
import { failpoint } from '../runtime/failpoints.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Sealing } from '../runtime/sealing.ts';
import type { Places } from './endpoint-places.ts';
import type { SendResult, WebhookRequest } from './webhook-sender.ts';
import { signatureHeaders } from './webhook-signature.ts';

export interface LaneDeps {
  db: Db;
  sealing: Pick<Sealing, 'open'>;
  send: (webhook: WebhookRequest) => Promise<SendResult>;
  places: Places;
  logger?: Pick<Logger, 'warn'> | undefined;
}

/** One activity's turn: who it is, what time it is, and until when it may begin something. */
export interface Turn {
  owner: string;
  /** The caller workflow's real time, running on. */
  now: () => number;
  isOver: () => boolean;
}

const BATCH_SIZE = 50;
/** What was sent and not yet recorded is sent again if this process dies: keep it little. */
const RECORD_AFTER_MS = 200;
/** Longest wait for one of the endpoint's places; later tries are cheaper than a blocked worker. */
const PLACE_PATIENCE_MS = 5_000;

/**
 * Sends what is due in a lane that the caller holds, in sequence order, records it and gives the
 * lane free. Answers how many deliveries moved; 0 means that trying again at once is pointless. When
 * it throws, the lease ends by itself.
 */
export async function deliverLane(deps: LaneDeps, lane: LaneRef, turn: Turn): Promise<number> {
  const batch = await readLane(deps.db, lane, { nowAt: turn.now(), limit: BATCH_SIZE });
  if (!batch) {
    await releaseLane(deps.db, lane, turn.owner, []);
    return 0;
  }
  if (!batch.config.isActive) {
    await dropPendingDeliveries(deps.db, { ...lane, at: turn.now() });
    await releaseLane(deps.db, lane, turn.owner, []);
    return batch.deliveries.length;
  }
  const sent = await sendBatch(deps, lane, batch, turn);
  // Nearly always a success after a success: nothing to write.
  const change = { from: batch.config.failingSince, to: sent.failingSince };
  if (change.from !== change.to) await changeFailingSince(deps.db, lane, change);
  if (sent.deactivation !== null) {
    await recordAttempts(deps.db, lane, sent.unrecorded.splice(0));
    deps.logger?.warn(
      { merchantId: lane.merchantId, configId: lane.configId, reason: sent.deactivation },
      'webhook configuration deactivated',
    );
    await deactivateWebhookConfig(deps.db, {
      ...lane,
      url: batch.config.url,
      reason: sent.deactivation,
      at: turn.now(),
    });
  }
  await releaseLane(deps.db, lane, turn.owner, sent.unrecorded);
  return sent.attempts;
}

interface SentBatch {
  attempts: number;
  unrecorded: RecordedAttempt[];
  /** First failure of the run of failures the lane ends in; null after a success. */
  failingSince: number | null;
  deactivation: DeactivationReason | null;
}

async function sendBatch(
  deps: LaneDeps,
  lane: LaneRef,
  { config, deliveries }: LaneBatch,
  turn: Turn,
): Promise<SentBatch> {
  const sent: SentBatch = {
    attempts: 0,
    unrecorded: [],
    failingSince: config.failingSince,
    deactivation: null,
  };
  let recordedAt = performance.now();
  for (const delivery of deliveries) {
    if (!isDue(delivery, turn.now())) {
      if (holdsBackLaterEvents(delivery)) break;
      continue;
    }
    if (turn.isOver()) break;
    const leave = await deps.places.take(`${lane.merchantId}/${lane.configId}`, PLACE_PATIENCE_MS);
    if (!leave) break;
    // Waiting for the place may have used up the turn.
    const attempt = await (
      turn.isOver() ? Promise.resolve(null) : makeAttempt(deps, lane, config, delivery, turn)
    ).finally(leave);
    if (!attempt) break;
    failpoint('after_delivery');
    sent.attempts += 1;
    sent.unrecorded.push(attempt);
    if (attempt.state === 'DELIVERED') sent.failingSince = null;
    else {
      const { httpStatus } = attempt;
      const { failingSince: failingSinceAt } = sent;
      sent.deactivation = deactivationAfterFailure({
        httpStatus,
        failingSinceAt,
        nowAt: turn.now(),
      });
      sent.failingSince ??= turn.now();
      if (sent.deactivation !== null) break;
      if (attempt.state === 'PENDING' && holdsBackLaterEvents(attempt)) break;
    }
    if (performance.now() - recordedAt > RECORD_AFTER_MS) {
      await recordAttempts(deps.db, lane, sent.unrecorded.splice(0));
      recordedAt = performance.now();
    }
  }
  return sent;
}

/** One signed POST. Rules: D-53, D-54. */
async function makeAttempt(
  deps: LaneDeps,
  lane: LaneRef,
  config: LaneBatch['config'],
  delivery: PendingDelivery,
  turn: Turn,
): Promise<RecordedAttempt> {
  // Receivers compare the timestamp with their own clock, so this is real time, never a workflow's.
  const sentAt = Date.now();
  const { sealedPreviousSigner, previousSignerUntil } = config;
  const isPreviousListed = previousSignerUntil !== null && previousSignerUntil > sentAt;
  const body = Buffer.from(delivery.body, 'utf8');
  const headers = signatureHeaders({
    eventId: delivery.eventId,
    sentAt,
    body,
    signer: deps.sealing.open(config.sealedSigner, lane.configId),
    previousSigner:
      isPreviousListed && sealedPreviousSigner
        ? deps.sealing.open(sealedPreviousSigner, lane.configId)
        : null,
  });
  const result = await deps.send({ url: config.url, headers, body });
  return judge(delivery, result, turn.now());
}

function judge(delivery: PendingDelivery, result: SendResult, nowAt: number): RecordedAttempt {
  const attempts = delivery.attempts + 1;
  const httpStatus = result.kind === 'answered' ? result.status : null;
  const recorded = { eventId: delivery.eventId, attempts, httpStatus, nextAttemptAt: nowAt };
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

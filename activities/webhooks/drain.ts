import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../../db/client.ts';
import { claimForEndpoint, readUpdatedAt } from '../../db/repositories/webhooks/claims.ts';
import type { ClaimedDelivery, Endpoint } from '../../db/repositories/webhooks/claims.ts';
import {
  applyOutcomes,
  deactivateWebhookConfig,
  dropPendingDeliveries,
} from '../../db/repositories/webhooks/configs.ts';
import type { VersionedOutcome } from '../../db/repositories/webhooks/configs.ts';
import { endpointBacklog, recordDeliveries } from '../../db/repositories/webhooks/deliveries.ts';
import type {
  EndpointBacklog,
  RecordedAttempt,
} from '../../db/repositories/webhooks/deliveries.ts';
import { deactivationAfterFailure } from '../../domain/delivery-schedule.ts';
import type { DeactivationReason } from '../../domain/delivery-schedule.ts';
import {
  afterAttempt,
  CLOSED_BREAKER,
  firstWindow,
  isOpen,
  isPaused,
  LARGEST_WINDOW,
  widerWindow,
} from '../../domain/endpoint-breaker.ts';
import type { Breaker, EndpointRef } from '../../domain/endpoint-breaker.ts';
import type { StreamRef } from '../../domain/events.ts';
import type { Logger } from '../../runtime/logger.ts';
import { joinUnrecorded, logStartOrEndOfFailure, nothingUnrecorded, sendBatch } from './attempt.ts';
import type { AttemptDeps } from './attempt.ts';

export interface DrainDeps extends AttemptDeps {
  db: Db;
  logger?: Pick<Logger, 'info' | 'warn'> | undefined;
}

export interface DrainEndpointInput extends EndpointRef {
  /** Epoch ms at the start of the drain. Decides which retries are due. */
  nowAt: number;
}

export interface DrainEndpointResult {
  /** Pending deliveries of the endpoint, including those that another process is sending. */
  remaining: number;
  /** Milliseconds until the next drain: the rest of the breaker's pause, if any. Null if no further drain is needed. */
  nextDelayMs: number | null;
  /** Milliseconds until the open breaker allows its next probe. 0 if the breaker allows requests now. */
  pausedMs: number;
}

export interface DrainLimits {
  /** False for a drain that leaves the probes of an open breaker to others. */
  mayProbe: () => boolean;
  /** Maximum number of requests in flight; the limit shrinks while other endpoints of the merchant are drained. */
  share: () => number;
  /** True once the process is shutting down. */
  isStopping: () => boolean;
  /** Called after an event was stored in the stream. */
  onEvent: (stream: StreamRef) => void;
  /** Called when the drain ends, in the same turn of the event loop in which it last read its wake-ups. */
  onEnd: () => void;
}

const NOTHING_LEFT: DrainEndpointResult = { remaining: 0, nextDelayMs: null, pausedMs: 0 };

/** No request begins later than this after the start of a drain, in ms. A request takes at most 15 s. */
const SEND_WITHIN_MS = 20_000;
/** Length of a claim, in ms: 20 s + 15 s, and 10 s for statements. Only the claim of a dead process expires. */
const CLAIM_MS = 45_000;
/** Shortest interval between two claims, in ms, so that one statement claims the events of many commits. */
const CLAIM_EVERY_MS = 25;
/** Interval in ms between claims while requests are in flight, or while others hold claims. */
const LOOK_AGAIN_MS = 1_000;
/** Longest time in ms to an attempt's record, without which the attempt is sent again. */
const RECORD_AFTER_MS = 200;
/** Time after a claim, in ms, in which a batch begins without another read of the configuration. */
const FRESH_MS = 100;
/** Number of batches that one statement claims for each further request that may be in flight. */
const BATCHES_PER_REQUEST = 2;

/**
 * Claims, sends and records the due deliveries of one endpoint for at most 20 s: one request at a time for each
 * stream, streams in parallel. Unrecorded attempts are sent again if the process dies.
 */
export class Drain {
  readonly ref: EndpointRef;
  /** True after the end if the endpoint's workflow must send something, now or later. */
  isLeftToQueue = false;
  private readonly deps: DrainDeps;
  private readonly limits: DrainLimits;
  private readonly nowAt: number;
  private readonly startedAt = performance.now();
  /** The requests in flight. */
  readonly running = new Set<Promise<void>>();
  /** Number of those that send an event again. */
  private resending = 0;
  private readonly errors: unknown[] = [];
  private endpoint: Endpoint | null = null;
  private ready: ClaimedDelivery[][] = [];
  /** True if there may be deliveries that the last claim did not see. */
  private isWanted = true;
  private change: () => void = () => undefined;
  private claimedAt = -Infinity;
  private recordedAt = performance.now();
  private unrecorded = nothingUnrecorded();
  private sent = 0;
  private hasFailed = false;
  /** The breaker after all attempts, recorded or not. */
  private breaker: Breaker = CLOSED_BREAKER;
  /** True if the stored breaker differs from {@link breaker}, or other processes may have changed it. */
  private isBreakerChanged = false;
  /** Null before the first claim. Shrinks by each failure, and grows with successes. */
  private window: number | null = null;
  private successes = 0;
  private isProbing = false;
  /** True once a claim found the configuration inactive. */
  private isGone = false;
  /** Why the configuration that was read at `readUpdatedAt` must be deactivated. */
  private deactivation: { reason: DeactivationReason; readUpdatedAt: number } | null = null;
  private reading: Promise<number | null> | null = null;

  constructor(deps: DrainDeps, { nowAt, ...ref }: DrainEndpointInput, limits: DrainLimits) {
    this.deps = deps;
    this.ref = ref;
    this.nowAt = nowAt;
    this.limits = limits;
  }

  /** Tells the drain that further deliveries were committed. */
  notify(): void {
    this.isWanted = true;
    this.change();
  }

  /** Throws if the database fails or the secret cannot be decrypted, after the requests in flight have ended. */
  async run(): Promise<DrainEndpointResult> {
    try {
      for (;;) {
        const before = this.sent;
        await this.send();
        if (this.isGone) return NOTHING_LEFT;
        // The next claim reads whether the configuration is inactive now, or was changed meanwhile.
        const isReadAgain = this.deactivation !== null;
        this.deactivation = null;
        const backlog = await endpointBacklog(this.deps.db, this.ref, this.now());
        const isDue = backlog.dueInMs === 0 && this.sent > before;
        this.isWanted ||= isReadAgain || isDue;
        if (!this.isWanted || !this.maySend()) return this.resultOf(backlog);
      }
    } finally {
      this.limits.onEnd();
    }
  }

  private now(): number {
    return this.nowAt + Math.floor(performance.now() - this.startedAt);
  }

  /** True if this drain begins no further request, also for events that are committed from now on. */
  get isClosed(): boolean {
    return this.isOver || this.isGone || this.errors.length > 0;
  }

  /** True 20 s after the start, or while the process stops. */
  private get isOver(): boolean {
    return performance.now() - this.startedAt > SEND_WITHIN_MS || this.limits.isStopping();
  }

  private maySend(): boolean {
    return (
      (this.isProbing || !isOpen(this.breaker)) && this.deactivation === null && !this.isClosed
    );
  }

  private async send(): Promise<void> {
    try {
      for (;;) {
        if (this.maySend()) {
          for (const batch of this.ready.splice(0, Math.max(0, this.room))) this.start(batch);
        } else this.leaveRest();
        if (this.hasRoom && this.isClaimDue()) {
          await this.claim();
        } else if (this.running.size > 0 || (this.maySend() && this.isWanted)) {
          await this.nextChange();
        } else break;
      }
      await this.record();
    } catch (error) {
      this.errors.push(error);
    }
    await Promise.all(this.running);
    if (this.errors.length === 0) return;
    this.leaveRest();
    // Deliveries that are not recorded are sent again.
    await this.record().catch(() => undefined);
    throw this.errors[0];
  }

  /** Releases, with the next record, the claims of deliveries that this drain may not send. */
  private leaveRest(): void {
    this.unrecorded.unsent.push(...this.ready.splice(0).flat());
  }

  private get room(): number {
    return Math.min(this.window ?? Infinity, this.limits.share()) - this.running.size;
  }

  /** Leaves at least half of the requests in flight to first deliveries. */
  private get resentRoom(): number {
    const most = Math.max(1, Math.floor((this.window ?? LARGEST_WINDOW) / 2));
    return Math.max(0, most - this.resending);
  }

  private get hasRoom(): boolean {
    return this.ready.length === 0 && this.room > 0 && this.maySend();
  }

  private isClaimDue(): boolean {
    const sinceMs = performance.now() - this.claimedAt;
    return this.isWanted
      ? sinceMs >= CLAIM_EVERY_MS
      : this.running.size > 0 && sinceMs >= LOOK_AGAIN_MS;
  }

  /** Records the attempts so far, then reads the configuration and claims deliveries. */
  private async claim(): Promise<void> {
    await this.record();
    // Meanwhile other drains of the merchant may have begun, which leaves less room for this one.
    if (!this.hasRoom) return;
    this.isWanted = false;
    this.claimedAt = performance.now();
    const batches = this.room * BATCHES_PER_REQUEST;
    const claim = await claimForEndpoint(this.deps.db, this.ref, {
      nowAt: this.now(),
      claimMs: CLAIM_MS,
      batches,
      resentBatches: this.resentRoom,
      mayProbe: this.limits.mayProbe() && this.running.size === 0,
    });
    if (!claim?.endpoint.isActive) {
      this.isGone = true;
      await dropPendingDeliveries(this.deps.db, { ...this.ref, at: this.now() });
      return;
    }
    this.endpoint = claim.endpoint;
    this.adopt(claim.endpoint.breaker);
    this.isProbing = isOpen(this.breaker) && claim.batches.length > 0;
    if (this.window === null || this.isProbing) this.window = firstWindow(this.breaker);
    this.ready = claim.batches;
    // A claim with as many batches as requested may have left others.
    if (claim.batches.length >= batches) this.isWanted = true;
  }

  private start(batch: readonly ClaimedDelivery[]): void {
    const { endpoint } = this;
    if (!endpoint) return;
    const resent = batch.some(({ isResent }) => isResent) ? 1 : 0;
    this.resending += resent;
    const isFresh = performance.now() - this.claimedAt < FRESH_MS;
    const run = sendBatch(this.deps, endpoint, batch, {
      now: () => this.now(),
      mayBegin: async (isFirst) =>
        this.maySend() &&
        ((isFirst && isFresh) || ((await this.isUnchanged(endpoint)) && this.maySend())),
      report: (attempt) => this.note(attempt),
    })
      .catch((error: unknown) => {
        this.errors.push(error);
        return batch;
      })
      .then((unsent) => {
        this.unrecorded.unsent.push(...unsent);
        this.running.delete(run);
        this.resending -= resent;
        if (resent > 0) this.isWanted = true;
        this.change();
      });
    this.running.add(run);
  }

  /** Reads whether the merchant has changed the configuration. Batches that ask at the same time share one read. */
  private async isUnchanged(endpoint: Endpoint): Promise<boolean> {
    this.reading ??= readUpdatedAt(this.deps.db, endpoint).finally(() => {
      this.reading = null;
    });
    const updatedAt = await this.reading.catch(() => null);
    // The next claim reads the new URL and secret.
    if (updatedAt !== endpoint.updatedAt) this.isWanted = true;
    return updatedAt === endpoint.updatedAt;
  }

  private note(attempt: RecordedAttempt): void {
    const { updatedAt } = attempt;
    const at = this.now();
    // A mail server that refuses one address is no failing endpoint.
    const isSuccess = attempt.state === 'DELIVERED' || attempt.error === 'refused_recipient';
    const outcome: VersionedOutcome = isSuccess
      ? { kind: 'success', updatedAt }
      : { kind: 'failure', at, jitter: Math.random(), updatedAt };
    this.sent += 1;
    this.hasFailed ||= attempt.state === 'PENDING';
    this.unrecorded.attempts.push(attempt);
    this.unrecorded.outcomes.push(outcome);
    // The outcomes at a URL that the merchant has changed say nothing about the new one.
    if (updatedAt !== this.endpoint?.updatedAt) return;
    this.isProbing = false;
    this.isBreakerChanged ||= !isSuccess || this.breaker.failingSince !== null;
    this.breaker = afterAttempt(this.breaker, outcome);
    const { httpStatus } = attempt;
    const { failingSince: failingSinceAt } = this.breaker;
    const reason = isSuccess
      ? null
      : deactivationAfterFailure({ httpStatus, failingSinceAt, nowAt: at });
    if (reason !== null) this.deactivation ??= { reason, readUpdatedAt: updatedAt };
    this.successes = isSuccess ? this.successes + 1 : 0;
    if (this.window === null) return;
    // A failed request makes no room for another: those in flight may fail, too, and open the breaker.
    if (!isSuccess) this.window = Math.max(1, this.window - 1);
    if (this.successes < this.window) return;
    this.window = widerWindow(this.window);
    this.successes = 0;
  }

  /** Waits for a change, at most 1 s, or 200 ms with attempts to record, which it then records. */
  private async nextChange(): Promise<void> {
    const timeout = new AbortController();
    const changed = new Promise<void>((resolve) => {
      this.change = resolve;
    });
    const recordMs = this.unrecorded.attempts.length > 0 ? RECORD_AFTER_MS : LOOK_AGAIN_MS;
    const waitMs = this.isWanted && this.hasRoom ? CLAIM_EVERY_MS : recordMs;
    const tick = sleep(waitMs, undefined, { signal: timeout.signal }).catch(() => undefined);
    await Promise.race([changed, tick]);
    timeout.abort();
    if (performance.now() - this.recordedAt > RECORD_AFTER_MS) await this.record();
  }

  private async record(): Promise<void> {
    const { db } = this.deps;
    const { ref, endpoint, deactivation } = this;
    this.recordedAt = performance.now();
    const taken = this.unrecorded;
    this.unrecorded = nothingUnrecorded();
    const { attempts, outcomes, unsent } = taken;
    if (attempts.length + unsent.length > 0) {
      await recordDeliveries(db, ref, attempts, unsent).catch((error: unknown) => {
        // The statement may be repeated. All of it is recorded after the requests in flight.
        this.unrecorded = joinUnrecorded(taken, this.unrecorded);
        throw error;
      });
    }
    if (this.isBreakerChanged) {
      this.isBreakerChanged = false;
      const stored = await applyOutcomes(db, ref, outcomes, this.now());
      if (stored?.updatedAt !== endpoint?.updatedAt) this.isWanted = true;
      if (stored) logStartOrEndOfFailure(this.deps.logger, ref, stored, attempts);
      if (stored?.isWarned) this.tellMerchant('webhook endpoint fails, and will be deactivated');
      this.adopt(stored?.breaker ?? CLOSED_BREAKER);
    }
    if (deactivation === null || outcomes.length === 0) return;
    if (await deactivateWebhookConfig(db, { ...ref, ...deactivation, at: this.now() })) {
      this.tellMerchant('webhook configuration deactivated', deactivation);
    }
  }

  /** Sends the event that was stored about this endpoint to the merchant's other ones. */
  private tellMerchant(message: string, { reason }: { reason?: DeactivationReason } = {}): void {
    const { merchantId, configId } = this.ref;
    this.deps.logger?.warn({ ...this.ref, reason }, message);
    this.limits.onEvent({ merchantId, streamId: configId });
  }

  /** Takes over the stored breaker, and adds the outcomes that are not recorded yet. */
  private adopt(stored: Breaker): void {
    this.breaker = this.unrecorded.outcomes
      .filter(({ updatedAt }) => updatedAt === this.endpoint?.updatedAt)
      .reduce<Breaker>(afterAttempt, stored);
  }

  private resultOf({ remaining, dueInMs, isClaimed }: EndpointBacklog): DrainEndpointResult {
    const now = this.now();
    const { pausedUntil } = this.breaker;
    const pausedMs = isPaused(this.breaker, now) ? Math.ceil((pausedUntil ?? now) - now) : 0;
    // Deliveries may have been committed since the backlog was read.
    const isAsked = this.isWanted && pausedMs === 0;
    this.isLeftToQueue = this.hasFailed || isAsked || (dueInMs === 0 && pausedMs === 0);
    // Nothing wakes the workflow during a pause, so it drains at the end of the pause even if nothing is pending now.
    if (pausedMs > 0) return { remaining, nextDelayMs: pausedMs, pausedMs };
    if (isAsked) return { remaining: Math.max(1, remaining), nextDelayMs: 0, pausedMs: 0 };
    if (remaining === 0) return NOTHING_LEFT;
    const waits: number[] = isClaimed ? [LOOK_AGAIN_MS] : [];
    // This drain had time for the due deliveries, but another process has claimed them, or the breaker forbids them.
    const isMissed = dueInMs === 0 && !this.isOver;
    if (dueInMs !== null) waits.push(isMissed ? LOOK_AGAIN_MS : dueInMs);
    return { remaining, nextDelayMs: Math.ceil(Math.min(...waits)), pausedMs: 0 };
  }
}

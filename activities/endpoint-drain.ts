import { setTimeout as sleep } from 'node:timers/promises';
import { endpointBacklog } from '../db/repositories/webhooks/deliveries.ts';
import type { EndpointBacklog, EndpointRef } from '../db/repositories/webhooks/deliveries.ts';
import { claimForEndpoint, findEndpoint } from '../db/repositories/webhooks/claims.ts';
import type { ClaimedBatch } from '../db/repositories/webhooks/claims.ts';
import { dropPendingDeliveries } from '../db/repositories/webhooks/configs.ts';
import { firstWindow, isOpen, isPaused, widerWindow } from '../domain/endpoint-breaker.ts';
import { CLAIM_MS, SEND_WITHIN_MS, sendBatch } from './delivery-attempt.ts';
import type { AttemptDeps } from './delivery-attempt.ts';
import type { DeliveryWindows, DrainSlots } from './delivery-windows.ts';
import { EndpointProgress, recordProgress } from './endpoint-progress.ts';
import type { RecordDeps } from './endpoint-progress.ts';

export interface DrainDeps extends AttemptDeps, RecordDeps {
  windows: DeliveryWindows;
}

export interface DrainEndpointInput extends EndpointRef {
  /** Epoch ms, read by the workflow when it requests the drain. Decides which retries are due. */
  nowAt: number;
}

export interface DrainEndpointResult {
  /** Pending deliveries of the endpoint, including those that another process is sending. */
  remaining: number;
  /** Milliseconds until the next drain: the rest of the breaker's pause, if any. Null if no further drain is needed. */
  nextDelayMs: number | null;
  /**
   * Milliseconds until the endpoint's open circuit breaker allows its next probe request. 0 if the breaker allows
   * requests now.
   */
  pausedMs: number;
}

const NOTHING_LEFT: DrainEndpointResult = { remaining: 0, nextDelayMs: null, pausedMs: 0 };

/** Interval, in ms, between records of attempts. If the process dies, unrecorded attempts are sent again. */
const RECORD_AFTER_MS = 200;
/**
 * Interval, in ms, between claims of new deliveries while requests are in flight. Also the delay to the next
 * drain if another process has claimed deliveries, if no slot was free, or if the configuration was changed.
 */
const LOOK_AGAIN_MS = 1_000;
/** Longest wait, in ms, for a free slot while this drain has no batch in flight. */
const SLOT_WAIT_MS = 2_000;
const SLOT_POLL_MS = 20;
/** Time after the begin of a claim, in ms, in which a batch begins without another read of the configuration. */
const FRESH_MS = 100;
/**
 * Number of batches that one statement claims for each request that `window` still allows. The second batch begins at
 * once when the first one ends.
 */
const BATCHES_PER_SLOT = 2;

/**
 * The activity `drainEndpoint`: sends the due deliveries of one endpoint. No request begins after 20 s, and
 * the drain ends within 40 s.
 *
 * A claim returns batches. A batch contains deliveries of one stream, which are sent in order, one request at
 * a time. Batches are sent in parallel. `window` limits their number and grows with successes. Each batch in
 * flight also needs a slot of {@link DeliveryWindows}, whose limits apply to this whole process.
 */
export async function drainEndpoint(
  deps: DrainDeps,
  { nowAt, ...ref }: DrainEndpointInput,
): Promise<DrainEndpointResult> {
  const endpoint = await findEndpoint(deps.db, ref);
  if (!endpoint) return NOTHING_LEFT;
  const drain = new Drain(deps, new EndpointProgress(endpoint), nowAt);
  if (!endpoint.isActive) {
    await dropPendingDeliveries(deps.db, { ...ref, at: drain.now() });
    return NOTHING_LEFT;
  }
  for (;;) {
    const sent = isPaused(drain.breaker, drain.now()) ? 0 : await drain.sendDue();
    if (drain.isDeactivated) return NOTHING_LEFT;
    const backlog = await endpointBacklog(deps.db, ref, drain.now());
    // Deliveries have become due since the last claim. This loop also sends these deliveries, which saves
    // another activity.
    if (backlog.dueInMs === 0 && sent > 0 && drain.maySend()) continue;
    return drain.resultOf(backlog);
  }
}

class Drain {
  private readonly deps: DrainDeps;
  private readonly progress: EndpointProgress;
  private readonly nowAt: number;
  private readonly startedAt = performance.now();
  private readonly running = new Set<Promise<void>>();
  private readonly errors: unknown[] = [];
  private ready: ClaimedBatch[] = [];
  private recordedAt = performance.now();
  private claimedAt = 0;
  private sent = 0;
  private window: number;
  /**
   * True if the circuit breaker was open at the start of this drain and no attempt has ended yet. Then only one
   * request, the probe, may be sent.
   */
  private isProbing: boolean;
  /** Successes in a row since the window was last widened. */
  private successes = 0;

  constructor(deps: DrainDeps, progress: EndpointProgress, nowAt: number) {
    this.deps = deps;
    this.progress = progress;
    this.nowAt = nowAt;
    this.window = firstWindow(progress.breaker);
    this.isProbing = isOpen(progress.breaker);
  }

  get breaker() {
    return this.progress.breaker;
  }

  get isDeactivated(): boolean {
    return this.progress.deactivation !== null;
  }

  now(): number {
    return this.nowAt + Math.floor(this.elapsedMs());
  }

  maySend(): boolean {
    return (
      (this.isProbing || !isOpen(this.breaker)) &&
      !this.isDeactivated &&
      !this.progress.isOutdated &&
      this.errors.length === 0 &&
      !this.isOver()
    );
  }

  /**
   * Sends until nothing is due, the breaker opens, 20 s are over, no slot was free for 2 s, an error occurs, or
   * the configuration is changed or deactivated. Returns the number of attempts. Throws the first error.
   */
  async sendDue(): Promise<number> {
    const sentBefore = this.sent;
    const slots = this.deps.windows.beginDrain(this.progress.endpoint);
    try {
      await this.send(slots);
      await Promise.all(this.running);
      await this.record();
    } finally {
      // If a statement failed, the requests in flight must still end before this call ends.
      await Promise.all(this.running);
      slots.end();
    }
    if (this.errors.length > 0) throw this.errors[0];
    return this.sent - sentBefore;
  }

  resultOf({ remaining, dueInMs, isClaimed }: EndpointBacklog): DrainEndpointResult {
    if (this.progress.isOutdated) {
      // The breaker that this drain knows is that of the old URL. The next drain reads the configuration again.
      if (remaining === 0) return NOTHING_LEFT;
      return { remaining, nextDelayMs: LOOK_AGAIN_MS, pausedMs: 0 };
    }
    const { pausedUntil } = this.breaker;
    const now = this.now();
    const pausedMs = isPaused(this.breaker, now) ? Math.ceil((pausedUntil ?? now) - now) : 0;
    // The dispatcher wakes no queue during a pause, so an event that comes until its end is sent by the next drain.
    if (pausedMs > 0) return { remaining, nextDelayMs: pausedMs, pausedMs };
    if (remaining === 0) return NOTHING_LEFT;
    const waits: number[] = isClaimed ? [LOOK_AGAIN_MS] : [];
    // True if this drain had time for deliveries that are due, but could not send them, because another
    // process has claimed them or no slot was free.
    const isMissed = dueInMs === 0 && !this.isOver();
    if (dueInMs !== null) waits.push(isMissed ? LOOK_AGAIN_MS : dueInMs);
    return { remaining, nextDelayMs: Math.ceil(Math.min(...waits)), pausedMs: 0 };
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt;
  }

  private isOver(): boolean {
    return this.elapsedMs() > SEND_WITHIN_MS;
  }

  private async send(slots: DrainSlots): Promise<void> {
    let lookAt = 0;
    let waitsForSlotSince: number | null = null;
    for (;;) {
      while (this.ready.length > 0 && this.running.size < this.window && this.maySend()) {
        const free = slots.take();
        if (!free) break;
        const batch = this.ready.shift();
        if (batch) this.start(batch, free);
      }
      const needsBatches = this.ready.length === 0 && this.running.size < this.window;
      if (needsBatches && this.maySend() && performance.now() >= lookAt) {
        // A claim with fewer batches than requested has claimed everything due: wait before the next claim.
        lookAt = (await this.claim()) ? 0 : performance.now() + LOOK_AGAIN_MS;
        if (this.ready.length > 0) continue;
      }
      if (this.running.size > 0) {
        waitsForSlotSince = null;
        await this.endOrTick();
        continue;
      }
      waitsForSlotSince ??= performance.now();
      const mayWait = performance.now() - waitsForSlotSince < SLOT_WAIT_MS;
      if (this.ready.length === 0 || !this.maySend() || !mayWait) break;
      await sleep(SLOT_POLL_MS);
    }
    for (const { deliveries } of this.ready.splice(0)) this.progress.release(deliveries);
  }

  /** Records the attempts so far, then claims deliveries. True if more deliveries may be due. */
  private async claim(): Promise<boolean> {
    await this.record();
    this.claimedAt = performance.now();
    const batches = this.isProbing ? 1 : (this.window - this.running.size) * BATCHES_PER_SLOT;
    const claimed = await claimForEndpoint(this.deps.db, this.progress.endpoint, {
      nowAt: this.now(),
      claimMs: CLAIM_MS,
      batches,
      ...(this.isProbing ? { batchSize: 1 } : {}),
    });
    for (const { unsendable } of claimed) this.progress.release(unsendable);
    this.ready = claimed.filter(({ deliveries }) => deliveries.length > 0);
    return claimed.length >= batches;
  }

  private start({ deliveries }: ClaimedBatch, free: () => void): void {
    const time = {
      now: () => this.now(),
      maySend: () => this.maySend(),
      isFresh: performance.now() - this.claimedAt < FRESH_MS,
      isUnchanged: () => this.progress.isUnchanged(this.deps.db),
    };
    const run = sendBatch(this.deps, this.progress.endpoint, deliveries, time, (attempt) => {
      this.sent += 1;
      this.isProbing = false;
      this.progress.note(attempt, this.now());
      this.widen(attempt.state === 'DELIVERED');
    })
      .catch((error: unknown) => {
        this.errors.push(error);
        return deliveries;
      })
      .then((unsent) => {
        this.progress.release(unsent);
        free();
        this.running.delete(run);
      });
    this.running.add(run);
  }

  private widen(isSuccess: boolean): void {
    this.successes = isSuccess ? this.successes + 1 : 0;
    if (this.successes < this.window) return;
    this.window = widerWindow(this.window);
    this.successes = 0;
  }

  /**
   * Waits until a batch ends, but at most 1 s, or 200 ms if there are unrecorded attempts. Then records the
   * attempts if the last record is more than 200 ms old.
   */
  private async endOrTick(): Promise<void> {
    const timeout = new AbortController();
    const waitMs = this.progress.isRecorded ? LOOK_AGAIN_MS : RECORD_AFTER_MS;
    const tick = sleep(waitMs, undefined, { signal: timeout.signal }).catch(() => undefined);
    await Promise.race([...this.running, tick]);
    timeout.abort();
    if (performance.now() - this.recordedAt > RECORD_AFTER_MS) await this.record();
  }

  private async record(): Promise<void> {
    this.recordedAt = performance.now();
    if (this.progress.isRecorded) return;
    const { merchantId } = this.progress.endpoint;
    const options = { streamId: null, nowAt: this.now() };
    await recordProgress(this.deps, merchantId, [this.progress], options);
  }
}

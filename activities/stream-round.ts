import { setTimeout as sleep } from 'node:timers/promises';
import { endpointsOf } from '../db/repositories/webhooks/deliveries.ts';
import type { EndpointRef, StreamRef } from '../db/repositories/webhooks/deliveries.ts';
import { claimStream } from '../db/repositories/webhooks/claims.ts';
import type { ClaimedBatch, Endpoint, LeftReason } from '../db/repositories/webhooks/claims.ts';
import { dropPendingDeliveries } from '../db/repositories/webhooks/configs.ts';
import { isOpen, isPaused } from '../domain/endpoint-breaker.ts';
import { CLAIM_MS, SEND_WITHIN_MS, sendBatch } from './delivery-attempt.ts';
import type { AttemptDeps } from './delivery-attempt.ts';
import type { DeliveryWindows, FreeSlot } from './delivery-windows.ts';
import { EndpointProgress, recordProgress } from './endpoint-progress.ts';
import type { RecordDeps } from './endpoint-progress.ts';
import type { EndpointWakes } from './endpoint-wakes.ts';

export interface RoundDeps extends AttemptDeps, RecordDeps {
  windows: DeliveryWindows;
  wakes: EndpointWakes;
  /** True once the process is shutting down. Then no request begins. */
  isDraining: () => boolean;
  /** By merchant id, the ids of configurations that had deliveries recently. */
  knownEndpoints: Map<string, Set<string>>;
}

/**
 * An event stream whose webhooks the dispatcher was asked to send, for example the events of one subscription. The
 * object exists until its round ends.
 */
export interface SubmittedStream {
  ref: StreamRef;
  now: () => number;
  /** True if events may have been committed since the last claim began. */
  isWanted: boolean;
  /** Ends the round's wait for its requests in flight. */
  notify: () => void;
}

/** Batches that end within this time of each other, in ms, are recorded by one statement. */
const RECORD_TOGETHER_MS = 25;
/** Interval, in ms, between records of attempts. If the process dies, unrecorded attempts are sent again. */
const RECORD_AFTER_MS = 200;
/** If `knownEndpoints` has more merchants than this, it is cleared. */
const MOST_MERCHANTS = 1_000;
/** If `knownEndpoints` has more endpoints of one merchant than this, these endpoints are cleared. */
const MOST_ENDPOINTS = 50;

/** A batch: the deliveries to one endpoint that one claim took. The object exists until its results are recorded. */
interface Sending {
  progress: EndpointProgress;
  isOver: boolean;
  /** True if a delivery of the batch stays pending, so that the endpoint queue must send it. */
  isLeft: boolean;
}

/**
 * One round of the dispatcher for one stream. Sends the stream's due events: in sequence order to each endpoint, and to
 * all endpoints in parallel. Also sends events that are committed during the round. If a delivery cannot be sent at
 * once, the round wakes the endpoint queue, the workflow that sends the remaining deliveries.
 */
export class StreamRound {
  private readonly deps: RoundDeps;
  private readonly stream: SubmittedStream;
  private readonly sendings = new Set<Sending>();
  private readonly requests = new Set<Promise<void>>();

  constructor(deps: RoundDeps, stream: SubmittedStream) {
    this.deps = deps;
    this.stream = stream;
  }

  /** Resolves when the round ends. Throws if the database fails, after the requests in flight have ended. */
  async run(): Promise<void> {
    try {
      for (;;) {
        const ended = this.ended();
        if (ended.length > 0 && (ended.length === this.sendings.size || this.stream.isWanted)) {
          await this.record(ended);
        } else if (this.stream.isWanted) {
          this.stream.isWanted = false;
          await (this.deps.isDraining() ? this.leaveAll() : this.claim());
        } else if (this.sendings.size === 0) return;
        else await this.endOrTick();
      }
    } finally {
      await Promise.all(this.requests);
    }
  }

  private isSendingTo(configId: string): boolean {
    return [...this.sendings].some(({ progress }) => progress.endpoint.configId === configId);
  }

  private ended(): Sending[] {
    return [...this.sendings].filter(({ isOver }) => isOver);
  }

  private async claim(): Promise<void> {
    const { merchantId } = this.stream.ref;
    // Take slots before the claim: a claimed delivery without a slot would have to be released.
    const slots = new Map<string, FreeSlot>();
    const except: string[] = [];
    const known = [...(this.deps.knownEndpoints.get(merchantId) ?? [])];
    const take = async (configId: string): Promise<void> => {
      const free = await this.deps.windows.takeSoon({ merchantId, configId });
      if (free) slots.set(configId, free);
      else except.push(configId);
    };
    await Promise.all(known.filter((configId) => !this.isSendingTo(configId)).map(take));
    try {
      const claiming = { nowAt: this.stream.now(), claimMs: CLAIM_MS, except };
      // Counted from before the claim: if this process was frozen meanwhile, the claim may have ended.
      const until = performance.now() + SEND_WITHIN_MS;
      const { taken, left } = await claimStream(this.deps.db, this.stream.ref, claiming);
      for (const { endpoint, batch } of taken) {
        const { configId } = endpoint;
        const free = slots.get(configId) ?? this.deps.windows.take(endpoint);
        slots.delete(configId);
        this.start(endpoint, batch, free, until);
      }
      for (const { endpoint, reason } of left) await this.leave(endpoint, reason);
      this.remember([...taken, ...left].map(({ endpoint }) => endpoint.configId));
    } finally {
      for (const free of slots.values()) free();
    }
  }

  private start(
    endpoint: Endpoint,
    { deliveries, unsendable }: ClaimedBatch,
    free: (() => void) | null,
    until: number,
  ): void {
    const progress = new EndpointProgress(endpoint);
    const sending: Sending = { progress, isOver: false, isLeft: unsendable.length > 0 };
    this.sendings.add(sending);
    progress.release(unsendable);
    const { now } = this.stream;
    const maySend = (): boolean =>
      free !== null &&
      !this.deps.isDraining() &&
      !isOpen(progress.breaker) &&
      progress.deactivation === null &&
      !progress.isOutdated &&
      performance.now() < until;
    const isUnchanged = () => progress.isUnchanged(this.deps.db);
    const time = { now, maySend, isFresh: true, isUnchanged };
    const request = sendBatch(this.deps, endpoint, deliveries, time, (attempt) => {
      progress.note(attempt, now());
      if (attempt.state === 'PENDING') sending.isLeft = true;
    })
      .catch((error: unknown) => {
        const { merchantId, configId } = endpoint;
        const reason = error instanceof Error ? error.message : String(error);
        this.deps.logger?.warn({ merchantId, configId, error: reason }, 'webhook cannot be sent');
        return deliveries;
      })
      .then((unsent) => {
        progress.release(unsent);
        if (unsent.length > 0) sending.isLeft = true;
        sending.isOver = true;
        free?.();
        this.requests.delete(request);
        this.stream.notify();
      });
    this.requests.add(request);
  }

  /**
   * Handles deliveries that this round does not send. Wakes the endpoint queue if the queue must send them.
   */
  private async leave(endpoint: Endpoint, reason: LeftReason): Promise<void> {
    switch (reason) {
      case 'inactive':
        // The transaction that stored the deliveries began before the configuration was deactivated.
        await dropPendingDeliveries(this.deps.db, { ...endpoint, at: this.stream.now() });
        return;
      case 'breaker_open':
        if (!isPaused(endpoint.breaker, this.stream.now())) this.wake(endpoint);
        return;
      case 'claimed':
        // Another process has claimed deliveries of this stream. That process may have made its last claim
        // before these deliveries were committed, and would not send them.
        if (!this.isSendingTo(endpoint.configId)) this.wake(endpoint);
        return;
      case 'excepted':
        this.wake(endpoint);
        return;
      case 'not_due':
        // These deliveries have failed, or wait for an earlier delivery that has failed. The failure has woken
        // the endpoint queue.
        return;
    }
  }

  private async leaveAll(): Promise<void> {
    const endpoints = await endpointsOf(this.deps.db, this.stream.ref, this.stream.now());
    for (const endpoint of endpoints) this.wake(endpoint);
  }

  private wake({ merchantId, configId }: EndpointRef): void {
    this.deps.wakes.request({ merchantId, configId });
  }

  private async record(sendings: readonly Sending[]): Promise<void> {
    const { merchantId, streamId } = this.stream.ref;
    const progress = sendings.map((sending) => sending.progress);
    const nowAt = this.stream.now();
    const hasMore = await recordProgress(this.deps, merchantId, progress, { streamId, nowAt });
    if (hasMore) this.stream.isWanted = true;
    for (const sending of sendings) {
      // Keep a batch that is still being sent. Also keep a batch that ended during this record, because it
      // needs another record.
      if (!sending.isOver || !sending.progress.isRecorded) continue;
      this.sendings.delete(sending);
      const { endpoint, deactivation } = sending.progress;
      if (sending.isLeft && deactivation === null) this.wake(endpoint);
    }
  }

  /**
   * Waits until a batch ends or the stream is submitted again. If neither happens within 200 ms, or within 25 ms
   * while an ended batch is not recorded, records the attempts so far.
   */
  private async endOrTick(): Promise<void> {
    const waitMs = this.ended().length > 0 ? RECORD_TOGETHER_MS : RECORD_AFTER_MS;
    const timeout = new AbortController();
    const notified = new Promise<'notified'>((resolve) => {
      this.stream.notify = () => resolve('notified');
    });
    const tick = sleep(waitMs, 'tick' as const, { signal: timeout.signal }).catch(() => 'tick');
    const first = await Promise.race([notified, tick]);
    timeout.abort();
    if (first === 'notified') return;
    const unrecorded = [...this.sendings].filter(
      ({ isOver, progress }) => isOver || !progress.isRecorded,
    );
    if (unrecorded.length > 0) await this.record(unrecorded);
  }

  private remember(configIds: readonly string[]): void {
    const { knownEndpoints } = this.deps;
    const { merchantId } = this.stream.ref;
    const known = knownEndpoints.get(merchantId) ?? new Set();
    if (known.size > MOST_ENDPOINTS) known.clear();
    for (const configId of configIds) known.add(configId);
    if (knownEndpoints.size > MOST_MERCHANTS) knownEndpoints.clear();
    knownEndpoints.set(merchantId, known);
  }
}

import type { Db } from '../db/client.ts';
import { recordDeliveries } from '../db/repositories/webhooks/deliveries.ts';
import type { BreakerChange, RecordedAttempt } from '../db/repositories/webhooks/deliveries.ts';
import { findEndpoint } from '../db/repositories/webhooks/claims.ts';
import type { ClaimedDelivery, Endpoint } from '../db/repositories/webhooks/claims.ts';
import { deactivateWebhookConfig } from '../db/repositories/webhooks/configs.ts';
import { deactivationAfterFailure } from '../domain/delivery-schedule.ts';
import type { DeactivationReason } from '../domain/delivery-schedule.ts';
import { afterAttempt, isSameBreaker } from '../domain/endpoint-breaker.ts';
import type { Breaker, BreakerOutcome } from '../domain/endpoint-breaker.ts';
import type { Logger } from '../runtime/logger.ts';

export interface RecordDeps {
  db: Db;
  logger?: Pick<Logger, 'warn'> | undefined;
}

/** Maximum number of tries to write a circuit breaker while other processes change its row. */
const BREAKER_TRIES = 5;

/**
 * Collects, for one endpoint, the ended delivery attempts and the claims to release that the database does not have yet.
 * Computes the state of the endpoint's circuit breaker after these attempts.
 */
export class EndpointProgress {
  readonly endpoint: Endpoint;
  private readonly attempts: RecordedAttempt[] = [];
  private readonly unsent: ClaimedDelivery[] = [];
  private outcomes: BreakerOutcome[] = [];
  private recordedBreaker: Breaker;
  private currentBreaker: Breaker;
  private reason: DeactivationReason | null = null;
  private isStored = false;
  private isChanged = false;
  private reading: Promise<Endpoint | null> | null = null;

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
    this.recordedBreaker = endpoint.breaker;
    this.currentBreaker = endpoint.breaker;
  }

  /** The breaker after all attempts that were noted here, recorded or not. */
  get breaker(): Breaker {
    return this.currentBreaker;
  }

  /** Why the endpoint must be or was deactivated; null if its configuration was changed meanwhile. */
  get deactivation(): DeactivationReason | null {
    return this.isChanged ? null : this.reason;
  }

  /** True once this process has stored the deactivation. A further record must not store it again. */
  get isDeactivationStored(): boolean {
    return this.isStored;
  }

  noteDeactivationStored(): void {
    this.isStored = true;
  }

  /**
   * True if the configuration was changed after `endpoint` was read. URL and secret are then outdated: no further
   * request may begin, and the outcomes say nothing about the new URL.
   */
  get isOutdated(): boolean {
    return this.isChanged;
  }

  noteOutdated(): void {
    this.isChanged = true;
  }

  /**
   * Reads whether the configuration is still the one of `endpoint`, and notes a change. Callers that ask at the same
   * time share one read by primary key.
   */
  async isUnchanged(db: Db): Promise<boolean> {
    this.reading ??= findEndpoint(db, this.endpoint).finally(() => {
      this.reading = null;
    });
    const current = await this.reading;
    if (current?.updatedAt !== this.endpoint.updatedAt) this.noteOutdated();
    return !this.isChanged;
  }

  get isRecorded(): boolean {
    return this.attempts.length + this.unsent.length === 0;
  }

  note(attempt: RecordedAttempt, endedAt: number): void {
    this.attempts.push(attempt);
    const outcome: BreakerOutcome =
      attempt.state === 'DELIVERED'
        ? { kind: 'success' }
        : { kind: 'failure', at: endedAt, jitter: Math.random() };
    if (outcome.kind === 'failure') {
      this.reason ??= deactivationAfterFailure({
        httpStatus: attempt.httpStatus,
        failingSinceAt: this.currentBreaker.failingSince,
        nowAt: endedAt,
      });
    }
    this.outcomes.push(outcome);
    this.currentBreaker = afterAttempt(this.currentBreaker, outcome);
  }

  /** Adds claimed deliveries that were not sent. The next call of `recordProgress` releases their claims. */
  release(deliveries: readonly ClaimedDelivery[]): void {
    this.unsent.push(...deliveries);
  }

  /** Removes and returns all changes that are not recorded yet. The caller must record them. */
  take() {
    const { configId, updatedAt } = this.endpoint;
    const breaker: BreakerChange = {
      configId,
      updatedAt,
      from: this.recordedBreaker,
      to: this.currentBreaker,
    };
    const taken = {
      endpoint: this.endpoint,
      attempts: this.attempts.splice(0),
      released: this.unsent
        .splice(0)
        .map(({ eventId, claimedUntil }) => ({ configId, eventId, claimedUntil })),
      breakers: isSameBreaker(breaker.from, breaker.to) ? [] : [breaker],
      outcomes: this.outcomes,
    };
    this.outcomes = [];
    this.recordedBreaker = this.currentBreaker;
    return taken;
  }

  /** Applies the unrecorded outcomes to `stored`, the breaker that another process has changed. */
  adopt(stored: Breaker): void {
    this.recordedBreaker = stored;
    this.currentBreaker = this.outcomes.reduce(afterAttempt, stored);
  }
}

/**
 * Records the progress at endpoints of one merchant in one statement. Two rare cases take further statements:
 * another process has changed the breaker, or an endpoint must be deactivated. Returns true if `streamId` has
 * more deliveries to send; see `recordDeliveries`. Throws if the database fails. The claims of the unrecorded
 * deliveries then expire, and these deliveries are sent again.
 */
export async function recordProgress(
  { db, logger }: RecordDeps,
  merchantId: string,
  progress: readonly EndpointProgress[],
  options: { streamId: string | null; nowAt: number },
): Promise<boolean> {
  const taken = progress.map((one) => one.take());
  const { changedBreakers, changedConfigs, hasMore } = await recordDeliveries(
    db,
    merchantId,
    {
      attempts: taken.flatMap(({ attempts }) => attempts),
      released: taken.flatMap(({ released }) => released),
      breakers: taken.flatMap(({ breakers }) => breakers),
      configs: taken.map(({ endpoint }) => endpoint),
    },
    options.streamId,
  );
  for (const [index, { endpoint, breakers, outcomes }] of taken.entries()) {
    const one = progress[index];
    if (!one || one.isOutdated || one.isDeactivationStored) continue;
    const { configId, updatedAt: readUpdatedAt } = endpoint;
    if (changedConfigs.includes(configId)) {
      one.noteOutdated();
      continue;
    }
    if (breakers.length > 0 && !changedBreakers.includes(configId)) {
      const stored = await changeBreaker(db, endpoint, outcomes);
      if (!stored) {
        one.noteOutdated();
        continue;
      }
      one.adopt(stored);
    }
    const reason = one.deactivation;
    if (!reason) continue;
    const at = options.nowAt;
    if (await deactivateWebhookConfig(db, { merchantId, configId, readUpdatedAt, reason, at })) {
      one.noteDeactivationStored();
      logger?.warn({ merchantId, configId, reason }, 'webhook configuration deactivated');
    } else one.noteOutdated();
  }
  return hasMore;
}

/**
 * Applies outcomes to the stored breaker and returns the breaker that is then stored. Drops the outcomes if other
 * processes change the breaker during five tries. Returns null and changes nothing if the configuration was changed
 * after it was read: a change by the merchant has closed the breaker, and the outcomes are those of the old URL.
 */
async function changeBreaker(
  db: Db,
  { merchantId, configId, updatedAt }: Endpoint,
  outcomes: readonly BreakerOutcome[],
): Promise<Breaker | null> {
  for (let tries = 1; ; tries += 1) {
    const endpoint = await findEndpoint(db, { merchantId, configId });
    if (endpoint?.updatedAt !== updatedAt) return null;
    const from = endpoint.breaker;
    const to = outcomes.reduce(afterAttempt, from);
    if (isSameBreaker(from, to)) return to;
    const breakers = [{ configId, updatedAt, from, to }];
    const record = { attempts: [], released: [], breakers, configs: [] };
    const { changedBreakers } = await recordDeliveries(db, merchantId, record);
    if (changedBreakers.length > 0) return to;
    // Other processes also count the failures of this endpoint, so these outcomes may be dropped.
    if (tries === BREAKER_TRIES) return from;
  }
}

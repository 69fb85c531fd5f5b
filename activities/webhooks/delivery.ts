import { setTimeout as sleep } from 'node:timers/promises';
import { endpointsOf } from '../../db/repositories/webhooks/deliveries.ts';
import { LARGEST_WINDOW, MERCHANT_WINDOW } from '../../domain/endpoint-breaker.ts';
import type { EndpointRef } from '../../domain/endpoint-breaker.ts';
import type { StreamRef } from '../../domain/events.ts';
import { within } from '../../runtime/time-limit.ts';
import { Drain } from './drain.ts';
import type { DrainDeps, DrainEndpointInput, DrainEndpointResult } from './drain.ts';
import { pingEndpoint } from './ping.ts';
import type { PingResult } from '../../domain/delivery-schedule.ts';
import { createWebhookSender } from './sender.ts';
import type { WebhookRequest } from './sender.ts';
import { MAIL_ENDPOINT } from '../../domain/mails.ts';
import type { MailSender } from '../mails/sender.ts';

export interface WebhookDeps extends Omit<DrainDeps, 'send'> {
  /** Wakes the endpoint's workflow. Never throws. */
  wakeEndpoint: (endpoint: EndpointRef) => Promise<void>;
  allowLoopback: boolean;
  /** Null: the installation has no mail server. */
  mails: Pick<MailSender, 'send'> | null;
}

export interface WebhookActivities {
  /** Sends due deliveries: requests begin within 20 s, and it ends within 40 s. At least once. */
  drainEndpoint(input: DrainEndpointInput): Promise<DrainEndpointResult>;
  pingEndpoint(input: EndpointRef): Promise<PingResult>;
}

/** Shortest time in ms between two wake-ups of one endpoint's workflow by this process. */
const WAKE_EVERY_MS = 500;

export function createWebhookDelivery(deps: WebhookDeps): Pick<Delivery, keyof Delivery> {
  return new Delivery(deps);
}

/** A commit and the activity join the drain of the endpoint in this process while that drain may still send. */
class Delivery {
  readonly activities: WebhookActivities;
  private readonly deps: WebhookDeps & DrainDeps;
  private readonly drains = new Map<
    string,
    { drain: Drain; result: Promise<DrainEndpointResult> }
  >();
  private readonly wakes = new Map<string, { isWanted: boolean }>();
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(deps: WebhookDeps) {
    const { allowLoopback, mails } = deps;
    const post = createWebhookSender({ allowLoopback });
    const send = async (request: WebhookRequest) =>
      mails !== null && request.url === MAIL_ENDPOINT ? mails.send(request) : post(request);
    this.deps = { ...deps, send };
    this.activities = {
      drainEndpoint: ({ nowAt, ...ref }) =>
        // The activity may have waited, and retries and pauses count from the present.
        this.join({ ...ref, nowAt: Math.max(nowAt, Date.now()) }, true).result,
      pingEndpoint: (ref) => pingEndpoint(this.deps, ref),
    };
  }

  /**
   * Sends the pending events of a stream in the background. Resolves when they are sent or left to the workflows of
   * their endpoints. Never throws: after a failed drain it wakes the endpoint's workflow, else the sweep does.
   */
  deliver(stream: StreamRef): Promise<void> {
    return this.track(this.deliverStream(stream));
  }

  /**
   * From now on no request begins. Resolves when the requests in flight are recorded and the workflows of the other
   * deliveries are woken, at the latest after `timeoutMs`.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.stopping.abort();
    const end = async (): Promise<void> => {
      while (this.underWay.size > 0) await Promise.all(this.underWay);
    };
    await within(timeoutMs, end()).catch(() => undefined);
  }

  private async deliverStream(stream: StreamRef): Promise<void> {
    try {
      const endpoints = await endpointsOf(this.deps.db, stream, Date.now());
      const deliveries = endpoints.map(async ({ isOpen, ...ref }) => {
        if (isOpen || this.stopping.signal.aborted) this.wake(ref);
        else await this.deliverTo(ref);
      });
      await Promise.all(deliveries);
    } catch (error) {
      this.warn(stream, error);
    }
  }

  private async deliverTo(ref: EndpointRef): Promise<void> {
    const { drain, result, isJoined } = this.join({ ...ref, nowAt: Date.now() }, false);
    const hasFailed = await result.then(
      () => false,
      (error: unknown) => {
        this.warn(ref, error);
        return true;
      },
    );
    if (!isJoined && (hasFailed || drain.isLeftToQueue)) this.wake(ref);
  }

  private join(input: DrainEndpointInput, mayProbe: boolean) {
    const { merchantId, configId } = input;
    const running = this.drains.get(configId);
    if (running?.drain.isClosed === false) {
      running.drain.notify();
      return { ...running, isJoined: true };
    }
    // A drain that only waits for its slow requests must not delay other streams.
    const earlier = running?.drain.running;
    const drain = new Drain(this.deps, input, {
      mayProbe: () => mayProbe && (earlier?.size ?? 0) === 0,
      share: () => Math.max(1, this.shareOf(merchantId) - (earlier?.size ?? 0)),
      isStopping: () => this.stopping.signal.aborted,
      onEvent: (stream) => void this.deliver(stream),
      onEnd: () => {
        if (this.drains.get(configId)?.drain === drain) this.drains.delete(configId);
      },
    });
    const started = { drain, result: drain.run() };
    this.drains.set(configId, started);
    return { ...started, isJoined: false };
  }

  private shareOf(merchantId: string): number {
    const running = [...this.drains.values()].filter(
      ({ drain }) => drain.ref.merchantId === merchantId,
    );
    return Math.min(LARGEST_WINDOW, Math.max(1, Math.floor(MERCHANT_WINDOW / running.length)));
  }

  /** The last request within {@link WAKE_EVERY_MS} causes a further wake-up, so that none is lost. */
  private wake(ref: EndpointRef): void {
    const current = this.wakes.get(ref.configId);
    if (current) current.isWanted = true;
    else void this.track(this.keepWaking(ref));
  }

  private async keepWaking(ref: EndpointRef): Promise<void> {
    const own = { isWanted: true };
    this.wakes.set(ref.configId, own);
    while (own.isWanted) {
      own.isWanted = false;
      await this.deps.wakeEndpoint(ref);
      await sleep(WAKE_EVERY_MS, undefined, this.stopping).catch(() => undefined);
    }
    this.wakes.delete(ref.configId);
  }

  private track(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => this.underWay.delete(tracked));
    this.underWay.add(tracked);
    return tracked;
  }

  private warn(where: StreamRef | EndpointRef, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.deps.logger?.warn({ ...where, error: reason }, 'webhooks cannot be sent');
  }
}

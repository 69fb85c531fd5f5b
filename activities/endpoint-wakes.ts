import type { EndpointRef } from '../db/repositories/webhooks/deliveries.ts';

/** Shortest time, in ms, between two wake-ups of one endpoint queue by this process. */
const WAKE_EVERY_MS = 500;

/**
 * Wakes endpoint queues, each at most once per 500 ms from this process. An endpoint queue is the workflow that sends
 * the pending webhooks of one endpoint.
 */
export interface EndpointWakes {
  /**
   * Wakes the endpoint queue, at the earliest 500 ms after its last wake-up. The endpoint queue then finds every
   * delivery that was committed before this call.
   */
  request(endpoint: EndpointRef): void;
  /** Sends delayed wake-ups at once. Resolves when all wake-ups are sent. */
  flush(): Promise<void>;
}

export function createEndpointWakes(
  /** Must not throw. */
  wake: (endpoint: EndpointRef) => Promise<void>,
  everyMs = WAKE_EVERY_MS,
): EndpointWakes {
  const recent = new Map<string, { endpoint: EndpointRef; isWanted: boolean }>();
  const underWay = new Set<Promise<void>>();

  const send = (endpoint: EndpointRef): void => {
    const waking: Promise<void> = wake(endpoint).finally(() => underWay.delete(waking));
    underWay.add(waking);
    const last = { endpoint, isWanted: false };
    recent.set(endpoint.configId, last);
    const timer = setTimeout(() => {
      recent.delete(endpoint.configId);
      if (last.isWanted) send(endpoint);
    }, everyMs);
    // The timer must not keep the process alive: the shutdown calls `flush`.
    timer.unref();
  };

  return {
    request(endpoint) {
      const last = recent.get(endpoint.configId);
      if (last) last.isWanted = true;
      else send(endpoint);
    },
    async flush() {
      const wanted = [...recent.values()].filter(({ isWanted }) => isWanted);
      for (const last of wanted) {
        last.isWanted = false;
        send(last.endpoint);
      }
      await Promise.all(underWay);
    },
  };
}

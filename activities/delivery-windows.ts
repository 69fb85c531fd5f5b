import type { EndpointRef } from '../db/repositories/webhooks/deliveries.ts';

/**
 * Semaphores that limit the requests in flight from this process: to each endpoint, and to all endpoints of
 * one merchant, so that a merchant with many endpoints does not delay other merchants.
 *
 * The dispatcher, which makes first delivery attempts, takes one slot for the deliveries of one stream to one endpoint.
 * While this process drains the queue of an endpoint (activity `drainEndpoint`), only the drain gets new slots of that
 * endpoint: a drain sends many events with few statements, and a busy dispatcher would take all slots.
 */
export interface DeliveryWindows {
  /**
   * Takes a slot. The returned function frees the slot. Null if no slot is free, if a drain of the endpoint runs, or if
   * another caller waits for a slot of the endpoint.
   */
  take(endpoint: EndpointRef): FreeSlot | null;
  /**
   * Like {@link take}, but waits up to 1 s for a slot, if the endpoint answers quickly. The callers for one endpoint
   * get its slots in the order of their calls.
   */
  takeSoon(endpoint: EndpointRef): Promise<FreeSlot | null>;
  /** Begins a drain of the endpoint queue. Callers that wait in {@link takeSoon} get null. */
  beginDrain(endpoint: EndpointRef): DrainSlots;
}

/** The slots for one drain. `end` must be called when the drain ends. */
export interface DrainSlots {
  take(): FreeSlot | null;
  end(): void;
}

export type FreeSlot = () => void;

export interface SlotWait {
  /** Longest wait for a slot, in ms. */
  readonly waitMs: number;
  /** An endpoint counts as quick if one of its slots was taken or freed less than this time ago, in ms. */
  readonly quickMs: number;
}

const DEFAULT_SLOT_WAIT: SlotWait = { waitMs: 1_000, quickMs: 250 };

/** Maximum numbers of requests in flight: to one endpoint, and to all endpoints of one merchant. */
export interface WindowSizes {
  readonly ofEndpoint: number;
  readonly ofMerchant: number;
}

interface Window {
  readonly merchant: MerchantWindows;
  readonly configId: string;
  inFlight: number;
  drains: number;
  changedAt: number;
  readonly waiting: Set<(slot: FreeSlot | null) => void>;
}

interface MerchantWindows {
  readonly merchantId: string;
  inFlight: number;
  /** By the configuration's id. */
  readonly windows: Map<string, Window>;
}

export function createDeliveryWindows(
  sizes: WindowSizes,
  { waitMs, quickMs }: SlotWait = DEFAULT_SLOT_WAIT,
): DeliveryWindows {
  const windows = new Windows(sizes);
  const take = (window: Window): FreeSlot | null => {
    // During a drain, only the drain gets slots. Without a drain, callers that wait get slots first.
    const isReserved = window.drains > 0 || window.waiting.size > 0;
    return isReserved ? null : windows.takeSlot(window);
  };

  return {
    take(endpoint) {
      const window = windows.of(endpoint);
      const slot = take(window);
      windows.forget(window);
      return slot;
    },
    takeSoon(endpoint) {
      const window = windows.of(endpoint);
      const isQuick = performance.now() - window.changedAt < quickMs;
      const slot = take(window);
      if (slot !== null || window.drains > 0 || !isQuick) {
        windows.forget(window);
        return Promise.resolve(slot);
      }
      return new Promise((resolve) => {
        const end = (given: FreeSlot | null): void => {
          clearTimeout(timeout);
          window.waiting.delete(end);
          resolve(given);
          windows.forget(window);
        };
        const timeout = setTimeout(() => end(null), waitMs);
        window.waiting.add(end);
      });
    },
    beginDrain(endpoint) {
      const window = windows.of(endpoint);
      window.drains += 1;
      for (const end of window.waiting) end(null);
      return {
        take: () => windows.takeSlot(window),
        end() {
          window.drains -= 1;
          windows.forget(window);
        },
      };
    },
  };
}

/** The window of each endpoint that has a request in flight, a drain or a waiting caller. */
class Windows {
  private readonly sizes: WindowSizes;
  private readonly merchants = new Map<string, MerchantWindows>();

  constructor(sizes: WindowSizes) {
    this.sizes = sizes;
  }

  of({ merchantId, configId }: EndpointRef): Window {
    const known = this.merchants.get(merchantId);
    const merchant: MerchantWindows = known ?? { merchantId, inFlight: 0, windows: new Map() };
    this.merchants.set(merchantId, merchant);
    const window = merchant.windows.get(configId) ?? {
      merchant,
      configId,
      inFlight: 0,
      drains: 0,
      changedAt: 0,
      waiting: new Set(),
    };
    merchant.windows.set(configId, window);
    return window;
  }

  takeSlot(window: Window): FreeSlot | null {
    if (!this.isFree(window)) return null;
    const { merchant } = window;
    window.inFlight += 1;
    merchant.inFlight += 1;
    window.changedAt = performance.now();
    return () => {
      window.inFlight -= 1;
      merchant.inFlight -= 1;
      window.changedAt = performance.now();
      // Callers that wait for this endpoint get the slot before callers for other endpoints of the merchant.
      const next = [window, ...merchant.windows.values()].find(
        (one) => one.waiting.size > 0 && this.isFree(one),
      );
      const [first] = next?.waiting ?? [];
      if (next && first) first(this.takeSlot(next));
      this.forget(window);
    };
  }

  /** Removes the window if it is not used. */
  forget({ merchant, configId, inFlight, drains, waiting }: Window): void {
    if (inFlight + drains + waiting.size === 0) merchant.windows.delete(configId);
    if (merchant.windows.size === 0) this.merchants.delete(merchant.merchantId);
  }

  private isFree({ merchant, inFlight }: Window): boolean {
    return inFlight < this.sizes.ofEndpoint && merchant.inFlight < this.sizes.ofMerchant;
  }
}

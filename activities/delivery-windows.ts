/**
 * The delivery windows of a process: how many requests may be in flight to each endpoint. The
 * dispatcher takes a slot for a batch at a time. While the endpoint's queue drains in this process,
 * new slots are the queue's alone: it sends many events with few statements, and a busy dispatcher
 * would leave it none.
 */
export interface DeliveryWindows {
  /** The function that frees the slot; null when none is free, or the queue drains. */
  take(key: string): FreeSlot | null;
  /**
   * As {@link take}, in order of asking; waits up to a second for a slot of an endpoint that answers
   * quickly, and not at all for one that does not.
   */
  takeSoon(key: string): Promise<FreeSlot | null>;
  /** Begins a drain of the endpoint's queue. */
  beginDrain(key: string): DrainSlots;
}

export interface DrainSlots {
  take(): FreeSlot | null;
  end(): void;
}

export type FreeSlot = () => void;

export interface SlotPatience {
  /** Longest wait for a slot, in ms. */
  readonly waitMs: number;
  /** An endpoint is quick while a slot of it was taken or freed within this time, in ms. */
  readonly quickMs: number;
}

const PATIENCE: SlotPatience = { waitMs: 1_000, quickMs: 250 };

interface Window {
  inFlight: number;
  drains: number;
  changedAt: number;
  waiting: Set<(slot: FreeSlot | null) => void>;
}

export function createDeliveryWindows(
  slots: number,
  { waitMs, quickMs }: SlotPatience = PATIENCE,
): DeliveryWindows {
  const windows = new Map<string, Window>();

  const windowOf = (key: string): Window => {
    const window = windows.get(key) ?? {
      inFlight: 0,
      drains: 0,
      changedAt: 0,
      waiting: new Set(),
    };
    windows.set(key, window);
    return window;
  };
  const forget = (key: string, { inFlight, drains, waiting }: Window): void => {
    if (inFlight + drains + waiting.size === 0) windows.delete(key);
  };
  const takeSlot = (key: string): FreeSlot | null => {
    const window = windowOf(key);
    if (window.inFlight >= slots) return null;
    window.inFlight += 1;
    window.changedAt = performance.now();
    return () => {
      window.inFlight -= 1;
      window.changedAt = performance.now();
      const [first] = window.waiting;
      if (first) first(takeSlot(key));
      forget(key, window);
    };
  };
  const take = (key: string): FreeSlot | null => {
    const window = windows.get(key);
    // A free slot belongs to the queue while it drains, or else to callers that wait already.
    const isReserved = window !== undefined && (window.drains > 0 || window.waiting.size > 0);
    return isReserved ? null : takeSlot(key);
  };

  return {
    take,
    takeSoon(key) {
      const slot = take(key);
      const window = windowOf(key);
      const isQuick = performance.now() - window.changedAt < quickMs;
      if (slot !== null || window.drains > 0 || !isQuick) return Promise.resolve(slot);
      return new Promise((resolve) => {
        const end = (given: FreeSlot | null): void => {
          clearTimeout(timeout);
          window.waiting.delete(end);
          resolve(given);
          forget(key, window);
        };
        const timeout = setTimeout(() => end(null), waitMs);
        window.waiting.add(end);
      });
    },
    beginDrain(key) {
      const window = windowOf(key);
      window.drains += 1;
      for (const end of window.waiting) end(null);
      return {
        take: () => takeSlot(key),
        end() {
          window.drains -= 1;
          forget(key, window);
        },
      };
    },
  };
}

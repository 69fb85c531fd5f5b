/**
 * Semaphores that limit the requests in flight from this process to each endpoint. The dispatcher takes one
 * slot for each batch. While this process drains the endpoint's queue, only the drain gets new slots,
 * because a drain sends many events with few statements and a busy dispatcher would take all slots.
 */
export interface DeliveryWindows {
  /** Takes a slot. The returned function frees the slot. Null if no slot is free or a drain runs. */
  take(key: string): FreeSlot | null;
  /**
   * Like {@link take}, but waits up to 1 s for a slot, if the endpoint answers quickly. Callers get slots
   * in the order of their calls.
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

export interface SlotWait {
  /** Longest wait for a slot, in ms. */
  readonly waitMs: number;
  /** An endpoint counts as quick if one of its slots was taken or freed within this time, in ms. */
  readonly quickMs: number;
}

const DEFAULT_SLOT_WAIT: SlotWait = { waitMs: 1_000, quickMs: 250 };

interface Window {
  inFlight: number;
  drains: number;
  changedAt: number;
  waiting: Set<(slot: FreeSlot | null) => void>;
}

export function createDeliveryWindows(
  slots: number,
  { waitMs, quickMs }: SlotWait = DEFAULT_SLOT_WAIT,
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
    // During a drain, only the drain gets slots. Without a drain, callers that wait get slots first.
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

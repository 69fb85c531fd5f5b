/**
 * The delivery windows of a process: how many requests may be in flight to each endpoint. The
 * dispatcher takes a slot for a batch at a time. While the endpoint's queue drains in this process,
 * new slots are the queue's alone: it sends many events with few statements, and a busy dispatcher
 * would leave it none.
 */
export interface DeliveryWindows {
  /** The function that frees the slot; null when none is free, or the queue drains. */
  take(key: string): (() => void) | null;
  /** Begins a drain of the endpoint's queue. */
  beginDrain(key: string): DrainSlots;
}

export interface DrainSlots {
  take(): (() => void) | null;
  end(): void;
}

interface Window {
  inFlight: number;
  drains: number;
}

export function createDeliveryWindows(slots: number): DeliveryWindows {
  const windows = new Map<string, Window>();

  const windowOf = (key: string): Window => {
    const window = windows.get(key) ?? { inFlight: 0, drains: 0 };
    windows.set(key, window);
    return window;
  };
  const forget = (key: string, { inFlight, drains }: Window): void => {
    if (inFlight + drains === 0) windows.delete(key);
  };
  const takeSlot = (key: string): (() => void) | null => {
    const window = windowOf(key);
    if (window.inFlight >= slots) return null;
    window.inFlight += 1;
    return () => {
      window.inFlight -= 1;
      forget(key, window);
    };
  };

  return {
    take: (key) => ((windows.get(key)?.drains ?? 0) > 0 ? null : takeSlot(key)),
    beginDrain(key) {
      const window = windowOf(key);
      window.drains += 1;
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

/** A semaphore that shares its slots fairly among merchants. */
export interface FairSlots {
  /**
   * Resolves when the merchant has a slot, with the function that frees the slot. Waiting merchants get free
   * slots in turn. The callers of one merchant get its slots in the order of their calls.
   */
  take(merchantId: string): Promise<() => void>;
  /** Returns the number of callers that wait: of all merchants, and of this merchant. */
  waiting(merchantId: string): { readonly all: number; readonly own: number };
}

interface Share {
  inUse: number;
  readonly waiting: (() => void)[];
}

/** Creates a semaphore with `most` slots, of which one merchant gets at most `mostOfOne`. */
export function createFairSlots({
  most,
  mostOfOne,
}: {
  most: number;
  mostOfOne: number;
}): FairSlots {
  /** The merchants that use or wait for slots, in the order in which each last got a slot. */
  const shares = new Map<string, Share>();
  let inUse = 0;
  let waiting = 0;

  const isFree = (share: Share): boolean => inUse < most && share.inUse < mostOfOne;
  const grant = (merchantId: string, share: Share): (() => void) => {
    inUse += 1;
    share.inUse += 1;
    shares.delete(merchantId);
    shares.set(merchantId, share);
    return () => {
      inUse -= 1;
      share.inUse -= 1;
      if (share.inUse + share.waiting.length === 0) shares.delete(merchantId);
      serveNext();
    };
  };
  const serveNext = (): void => {
    for (const share of shares.values()) {
      if (share.waiting.length === 0 || !isFree(share)) continue;
      share.waiting.shift()?.();
      return;
    }
  };

  return {
    take(merchantId) {
      const share = shares.get(merchantId) ?? { inUse: 0, waiting: [] };
      if (share.waiting.length === 0 && isFree(share)) {
        return Promise.resolve(grant(merchantId, share));
      }
      shares.set(merchantId, share);
      waiting += 1;
      return new Promise((resolve) => {
        share.waiting.push(() => {
          waiting -= 1;
          resolve(grant(merchantId, share));
        });
      });
    },
    waiting: (merchantId) => ({ all: waiting, own: shares.get(merchantId)?.waiting.length ?? 0 }),
  };
}

import type { CustomSlotSupplier, SlotReserveContext, WorkflowSlotInfo } from '@temporalio/worker';

/**
 * Workflow tasks that a worker executes at once. With more, each takes longer, and a payer's has no priority any more:
 * only tasks that no worker has taken are in the order of their priorities.
 */
const AT_ONCE = 12;
/** With those that wait for a gateway: if it takes 1 s, a worker makes so many charges a second. */
const MOST = 40;

const PERMIT = {};

/** The slots of a worker's workflow tasks. A task that waits for a gateway lends its slot to another one. */
export class WorkflowTaskSlots implements CustomSlotSupplier<WorkflowSlotInfo> {
  readonly type = 'custom';
  private taken = 0;
  private atGateway = 0;
  /** The first one waits longest. */
  private readonly waiting = new Set<() => void>();

  private get hasFree(): boolean {
    return this.taken < Math.min(MOST, AT_ONCE + this.atGateway);
  }

  /** Lends a slot for the time of `request`. */
  async lendDuring<T>(request: () => Promise<T>): Promise<T> {
    this.atGateway += 1;
    this.admit();
    try {
      return await request();
    } finally {
      this.atGateway -= 1;
    }
  }

  reserveSlot(_: SlotReserveContext, signal: AbortSignal): Promise<object> {
    return new Promise((resolve, reject) => {
      const take = () => resolve(PERMIT);
      // After `take`, the SDK has not heard of the slot: it never releases it.
      const abort = () => {
        if (!this.waiting.delete(take)) this.releaseSlot();
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort, { once: true });
      this.waiting.add(take);
      this.admit();
    });
  }

  tryReserveSlot(): object | null {
    if (!this.hasFree) return null;
    this.taken += 1;
    return PERMIT;
  }

  markSlotUsed(): void {}

  releaseSlot(): void {
    this.taken -= 1;
    this.admit();
  }

  private admit(): void {
    for (const take of this.waiting) {
      if (!this.hasFree) return;
      this.waiting.delete(take);
      this.taken += 1;
      take();
    }
  }
}

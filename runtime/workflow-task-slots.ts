import type { CustomSlotSupplier, SlotReserveContext, WorkflowSlotInfo } from '@temporalio/worker';

/**
 * Workflow tasks that a worker executes at once. Temporal gives a payer's task to a worker first; but within a worker
 * all tasks share the time, so with more of them a payer waits longer.
 */
const AT_ONCE = 12;
/** With the tasks that wait for a gateway. If each waits 1 s, a worker makes at most this many charges a second. */
const MOST = 40;

const PERMIT = {};

/** The slots of a worker's workflow tasks. A task that waits for a gateway lends its slot to another one. */
export class WorkflowTaskSlots implements CustomSlotSupplier<WorkflowSlotInfo> {
  readonly type = 'custom';
  private taken = 0;
  private atGateway = 0;
  /** Polls without a slot, the oldest first. */
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
      // A slot that was given just before is lost to the SDK, which will not release it.
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

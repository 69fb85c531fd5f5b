import type { CustomSlotSupplier, SlotReserveContext, WorkflowSlotInfo } from '@temporalio/worker';

/** Workflow tasks that a worker executes at once. If each waits 1 s for a gateway, it makes at most as many charges a second. */
const MOST = 40;
/**
 * The same while payers or merchants wait: Temporal gives their task to a worker first; but within a worker all tasks share
 * the time, so with more of them a caller waits longer.
 */
const BESIDE_CALLERS = 6;
/** How long a caller's task lowers the number. */
const CALLERS_MS = 5_000;

const PERMIT = {};

/**
 * The slots of a worker's workflow tasks. Beside callers, a task that waits for a gateway lends its slot to another one.
 *
 * A poll of the worker's sticky queue gets no slot. Temporal puts a task that no sticky poll waits for on the shared
 * queue at once, where callers are first, none times out, and a worker that died holds nothing back.
 */
export class WorkflowTaskSlots implements CustomSlotSupplier<WorkflowSlotInfo> {
  readonly type = 'custom';
  private readonly now: () => number;
  private taken = 0;
  private callersUntil = -Infinity;
  private atGateway = 0;
  /** Polls without a slot, the oldest first. */
  private readonly waiting = new Set<() => void>();

  /** `now`: a clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  private get hasFree(): boolean {
    const hasCallers = this.now() < this.callersUntil;
    return this.taken < (hasCallers ? Math.min(MOST, BESIDE_CALLERS + this.atGateway) : MOST);
  }

  /** Call when a worker begins work for which a payer or a merchant waits. */
  serveCaller(): void {
    this.callersUntil = this.now() + CALLERS_MS;
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

  reserveSlot({ isSticky }: SlotReserveContext, signal: AbortSignal): Promise<object> {
    return new Promise((resolve, reject) => {
      if (isSticky) {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        return;
      }
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

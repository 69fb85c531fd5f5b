import type { ClockPosition } from './messages.ts';

/**
 * The subscription's own time. Nothing else in its workflow reads a clock. Without a test clock it is the
 * workflow's time, which Temporal replays. A test clock stands still between the instants that it steps to.
 * Rule: D-60.
 */
export class Clock {
  private position: ClockPosition | null;

  constructor(position: ClockPosition | null) {
    this.position = position && { ...position };
  }

  get isTestClock(): boolean {
    return this.position !== null;
  }

  get now(): number {
    return this.position?.nowAt ?? this.realNow;
  }

  get realNow(): number {
    // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
    return Date.now();
  }

  /** For continue-as-new. */
  get snapshot(): ClockPosition | null {
    return this.position && { ...this.position };
  }

  /** True for a test clock that has not reached its target. */
  get isBehind(): boolean {
    return this.position !== null && this.position.nowAt < this.position.targetAt;
  }

  /** The target that the test clock has reached and that is not recorded as reached; else null. */
  get unreportedAt(): number | null {
    if (!this.position || this.isBehind) return null;
    return this.position.nowAt > this.position.reachedAt ? this.position.nowAt : null;
  }

  /** The database knows that `reachedAt` was reached. */
  reported(reachedAt: number): void {
    if (this.position) this.position.reachedAt = reachedAt;
  }

  /** Sets a later target. An earlier one is ignored. */
  sendTo(targetAt: number): void {
    if (this.position && targetAt > this.position.targetAt) this.position.targetAt = targetAt;
  }

  /** Moves a test clock forward to `at`, an instant that the row has recorded, but not past its target. */
  catchUp(at: number): void {
    if (!this.position) return;
    const { nowAt, targetAt } = this.position;
    this.position.nowAt = Math.max(nowAt, Math.min(at, targetAt));
  }

  /**
   * Moves a test clock to `until`, or to its target if the target comes first. A move past `until` would
   * skip what falls due then. True when the clock is at `until`.
   */
  stepTo(until: number | null): boolean {
    if (!this.position) return false;
    const { targetAt } = this.position;
    const isReached = until !== null && until <= targetAt;
    this.position.nowAt = Math.max(this.position.nowAt, isReached ? until : targetAt);
    return isReached;
  }
}

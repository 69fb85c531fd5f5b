import type { ClockPosition } from '../../domain/subscription/snapshot.ts';

/** The workflow's time, or that of its test clock, which only the run moves. No other code reads a clock. */
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

  get snapshot(): ClockPosition | null {
    return this.position && { ...this.position };
  }

  get isBehind(): boolean {
    return this.position !== null && this.position.nowAt < this.position.targetAt;
  }

  /** The target, if the test clock has not reached it; else null. */
  get pendingTargetAt(): number | null {
    return this.position !== null && this.isBehind ? this.position.targetAt : null;
  }

  /** The target, if the test clock has reached it and no row records this yet; else null. */
  get unreportedAt(): number | null {
    if (!this.position || this.isBehind) return null;
    return this.position.nowAt > this.position.reachedAt ? this.position.nowAt : null;
  }

  /** Call this after the database has recorded that the test clock reached `reachedAt`. */
  reported(reachedAt: number): void {
    if (this.position) this.position.reachedAt = reachedAt;
  }

  /** Sets the target. Ignores a target that is not later than the present target. */
  sendTo(targetAt: number): void {
    if (this.position && targetAt > this.position.targetAt) this.position.targetAt = targetAt;
  }

  /** Moves a test clock forward to `at`, the row's latest change, but not past its target. */
  catchUp(at: number): void {
    if (!this.position) return;
    const { nowAt, targetAt } = this.position;
    this.position.nowAt = Math.max(nowAt, Math.min(at, targetAt));
  }

  /**
   * Moves a test clock back to `at`, but not before the last recorded target. The run had moved the clock without the
   * steps of a row that it did not know.
   */
  moveBack(at: number): void {
    if (!this.position) return;
    const { nowAt, reachedAt } = this.position;
    this.position.nowAt = Math.min(nowAt, Math.max(at, reachedAt));
  }

  /**
   * Moves a test clock to `until`, the next due step, or to its earlier target; never past a due step. True if it
   * reached `until`.
   */
  stepTo(until: number | null): boolean {
    if (!this.position) return false;
    const { targetAt } = this.position;
    const isReached = until !== null && until <= targetAt;
    this.position.nowAt = Math.max(this.position.nowAt, isReached ? until : targetAt);
    return isReached;
  }
}

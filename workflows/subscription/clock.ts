import type { ClockPosition } from './messages.ts';

/**
 * The subscription's own time, and the only place in its workflow that reads a clock. In real time
 * it is the workflow's (which Temporal replays); on a test clock it stands still between the instants
 * it steps to. Rule: D-60.
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

  /** A test clock that was sent further than it is. */
  get isBehind(): boolean {
    return this.position !== null && this.position.nowAt < this.position.targetAt;
  }

  /** A target that is reached and was not recorded yet. */
  get unreportedAt(): number | null {
    if (!this.position || this.isBehind) return null;
    return this.position.nowAt > this.position.reachedAt ? this.position.nowAt : null;
  }

  /** The database knows that `reachedAt` was reached. */
  reported(reachedAt: number): void {
    if (this.position) this.position.reachedAt = reachedAt;
  }

  /** The clock was sent forward; going back is ignored. */
  sendTo(targetAt: number): void {
    if (this.position && targetAt > this.position.targetAt) this.position.targetAt = targetAt;
  }

  /** Moves a test clock that stands before `at`, an instant the row has recorded, on to `at`. */
  catchUp(at: number): void {
    if (!this.position) return;
    const { nowAt, targetAt } = this.position;
    this.position.nowAt = Math.max(nowAt, Math.min(at, targetAt));
  }

  /**
   * Moves a test clock to `until`, or to its target if that comes first, never past either: jumping
   * straight to the target would skip what falls due between. True when `until` was reached.
   */
  stepTo(until: number | null): boolean {
    if (!this.position) return false;
    const { targetAt } = this.position;
    const isReached = until !== null && until <= targetAt;
    this.position.nowAt = Math.max(this.position.nowAt, isReached ? until : targetAt);
    return isReached;
  }
}

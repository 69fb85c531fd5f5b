/** The time in ms over which the rate of a wave is measured. */
const WINDOW_MS = 4_000;
/**
 * In a window whose renewals began later than this after their places, on average, the process did all that it can. So
 * it did if this share of them was not decided, for example because the gateway's limit was reached.
 */
const LATE_MS = 1_500;
const UNDECIDED_SHARE = 0.1;
/** In one whose renewals began earlier than this, the process could have done more: no queue was growing. */
const PUNCTUAL_MS = 200;
/** The share of what the process can do that is planned for the next wave. The rest is for payers and commands. */
const SHARE = 0.9;
/** How much faster than a wave that was not late the next one may be: before the first late one, and after it. */
const FIRST_RAISE = 2;
const RAISE = 1.25;
/** The weight of one late window, so that a short disturbance changes little. The first one replaces a guess. */
const WEIGHT = 0.3;

export interface PaceLimits {
  /** Renewals a second before any wave was seen, and fewest. */
  readonly start: number;
  readonly least: number;
  /** The operator's limit, for example of a gateway's contract. */
  readonly most: number;
}

/**
 * How many renewals of one instant a process lets begin a second: nearly as many as it can do, which it learns from
 * each wave.
 */
export class RenewalPace {
  private readonly limits: PaceLimits;
  private known: number | null;
  private rate: number;
  private window = emptyWindow(-Infinity);

  /** `known`: what an earlier process has learned; null if none did. */
  constructor(limits: PaceLimits, known: number | null) {
    this.limits = limits;
    this.known = known;
    this.rate = this.within(known ?? limits.start);
  }

  get perSecond(): number {
    return this.rate;
  }

  /** What a later process should know; null before the first late wave. */
  get learned(): number | null {
    return this.known;
  }

  /**
   * A renewal began `lateMs` after its place. `isDecided`: the gateway has charged or declined it. True if a window
   * ended, so that {@link learned} may be new.
   */
  tried(lateMs: number, isDecided: boolean, nowAt: number): boolean {
    const { window } = this;
    if (nowAt - window.latestAt > WINDOW_MS) {
      // No wave went on before.
      this.window = emptyWindow(nowAt);
      return false;
    }
    window.latestAt = nowAt;
    window.tried += 1;
    window.decided += isDecided ? 1 : 0;
    window.lateMs += lateMs;
    const lasted = nowAt - window.startedAt;
    if (lasted < WINDOW_MS) return false;
    const { tried, decided, lateMs: allLateMs } = window;
    const shown = (decided * 1_000) / lasted;
    const isAll = allLateMs > LATE_MS * tried || tried - decided > UNDECIDED_SHARE * tried;
    // A few late renewals are no wave.
    if (shown >= this.limits.least / 2) {
      if (isAll) this.lower(shown);
      else if (allLateMs < PUNCTUAL_MS * tried) this.raise(shown);
    }
    this.window = emptyWindow(nowAt);
    return true;
  }

  private lower(shown: number): void {
    const weight = this.known === null ? 1 : WEIGHT;
    this.rate = this.within(this.rate + weight * (SHARE * shown - this.rate));
    this.known = this.rate;
  }

  private raise(shown: number): void {
    const raise = this.known === null ? FIRST_RAISE : RAISE;
    this.rate = Math.max(this.rate, this.within(shown * raise));
    if (this.known !== null) this.known = this.rate;
  }

  private within(rate: number): number {
    const { least, most } = this.limits;
    return Math.min(most, Math.max(least, rate));
  }
}

function emptyWindow(startedAt: number) {
  return { startedAt, latestAt: startedAt, tried: 0, decided: 0, lateMs: 0 };
}

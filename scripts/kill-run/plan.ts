import type { Random } from './random.ts';

const DAY_MS = 86_400_000;

/** What one subscription of a run is to be, and so what it must have been charged. */
export interface LifePlan {
  readonly index: number;
  /** Which clock it lives by; null lives in real time, and only its first cycle falls due. */
  readonly clock: number | null;
  readonly amount: number;
  readonly interval: 'DAY' | 'WEEK' | 'MONTH';
  readonly intervalCount: number;
  readonly cycleCount: number;
  readonly trialDays: number;
  /** One charge after the first is declined by the gateway, and has to be retried. */
  readonly isDeclinedOnce: boolean;
}

const INTERVALS = [
  { interval: 'DAY', intervalCount: 1 },
  { interval: 'DAY', intervalCount: 3 },
  { interval: 'WEEK', intervalCount: 1 },
  { interval: 'WEEK', intervalCount: 2 },
  { interval: 'MONTH', intervalCount: 1 },
] as const;

/** One subscription in ten lives in real time, where the shortest interval is a day. */
const REAL_TIME_EVERY = 10;
const DECLINED_CHANCE = 0.15;
const TRIAL_CHANCE = 0.2;
/** Some end during the run, most do not. */
const CYCLE_COUNTS = [3, 8, 1_200, 1_200, 1_200] as const;

/** The lives of a run. All amounts differ, so that no charge can pass for another's. */
export function planLives(count: number, clocks: number, random: Random): LifePlan[] {
  return Array.from({ length: count }, (_, index) => {
    const isInRealTime = index % REAL_TIME_EVERY === REAL_TIME_EVERY - 1;
    const trialDays = !isInRealTime && random.isLucky(TRIAL_CHANCE) ? random.between(1, 10) : 0;
    return {
      index,
      clock: isInRealTime ? null : index % clocks,
      amount: 1_000 + index,
      ...random.pick(INTERVALS),
      cycleCount: random.pick(CYCLE_COUNTS),
      trialDays,
      isDeclinedOnce: !isInRealTime && random.isLucky(DECLINED_CHANCE),
    };
  });
}

/**
 * Every clock starts at noon on an early day of a month, so that a monthly date exists in each
 * month and this arithmetic needs none of the service's own calendar.
 */
export function clockStart(clock: number): number {
  return Date.UTC(2027, 0, 4 + clock, 12);
}

/** How many cycles have fallen due when the clock stands at `finalAt`: the first is at the anchor. */
export function dueCycles(plan: LifePlan, finalAt: number): number {
  if (plan.clock === null) return 1;
  const anchorAt = clockStart(plan.clock) + plan.trialDays * DAY_MS;
  if (finalAt < anchorAt) return 0;
  return Math.min(plan.cycleCount, 1 + intervalsBetween(plan, anchorAt, finalAt));
}

function intervalsBetween(plan: LifePlan, anchorAt: number, finalAt: number): number {
  const { interval, intervalCount } = plan;
  if (interval !== 'MONTH') {
    const days = interval === 'DAY' ? 1 : 7;
    return Math.floor((finalAt - anchorAt) / (days * intervalCount * DAY_MS));
  }
  const [from, to] = [new Date(anchorAt), new Date(finalAt)];
  const months = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth();
  const whole = months - from.getUTCMonth();
  const dayInMonth = (date: Date): number =>
    date.getTime() - Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  return Math.floor((dayInMonth(to) >= dayInMonth(from) ? whole : whole - 1) / intervalCount);
}

import type { DayFigures } from '../day/billing-day.ts';
import type { Shape } from '../floors/run.ts';

/** The product's renewals asleep again a second, divided by each floor's. */
export type RatiosToFloors = Record<Shape, number>;

export function ratiosOf({ waves, floors }: DayFigures): RatiosToFloors {
  const product = waves.reduce((sum, wave) => sum + wave.asleepPerSecond, 0) / waves.length;
  return {
    twoActivitiesAndNewRun: product / floors.twoActivitiesAndNewRun.asleepPerSecond,
    oneLocalActivity: product / floors.oneLocalActivity.asleepPerSecond,
  };
}

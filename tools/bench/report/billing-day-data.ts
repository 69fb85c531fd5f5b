import type { WaveFigures } from '../day/wave.ts';
import { PROCESSES } from '../stack/measured-stack.ts';
import type { DayFigures } from '../day/billing-day.ts';

/** Renewals a second (asleep and delivered) divided by those of the baseline; all waves but a last one with load. */
export function ratioToFloor({ waves, floor }: DayFigures): number {
  const counted = waves.length > 1 ? waves.slice(0, -1) : waves;
  const product = counted.reduce((sum, wave) => sum + wave.asleepPerSecond, 0) / counted.length;
  return product / floor.asleepPerSecond;
}

/** Returns a function that divides the CPU of a renewal in the stack's processes by that in the wave `reference`. */
export function cpuRatioTo(reference: WaveFigures): (wave: WaveFigures) => number {
  const total = ({ cost }: WaveFigures): number =>
    PROCESSES.reduce((sum, name) => sum + cost.cpuMs[name], 0);
  return (wave) => total(wave) / total(reference);
}

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

type CoreTime = ReturnType<typeof coreTime>;

export function coreTime() {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0, idle };
}

/** Steal time: the share of all cores' time that the hypervisor gave to other machines, in per cent. */
export function stolenPercent(before: CoreTime): number {
  const now = coreTime();
  return ((now.stolen - before.stolen) / Math.max(1, now.all - before.all)) * 100;
}

/** The share of all cores' time that was used since `before`, by anyone, in per cent. */
function busyPercent(before: CoreTime): number {
  const now = coreTime();
  return (1 - (now.idle - before.idle) / Math.max(1, now.all - before.all)) * 100;
}

export function coresSince(before: CoreTime): string {
  const [busy, stolen] = [busyPercent(before), stolenPercent(before)];
  return `${availableParallelism()}, ${busy.toFixed(0)} % busy, with ${stolen.toFixed(0)} % steal time`;
}

const TURN_EVERY_MS = 250;
const BUSY_OVER_TURNS = 8;

/** `turn` resolves for one caller every 250 ms, while the machine was less busy than this in the last 2 s. */
export function paceBelow(maxBusyPercent: number) {
  const waiting: (() => void)[] = [];
  const readings: CoreTime[] = [];
  let isOver = false;
  const timer = setInterval(() => {
    readings.push(coreTime());
    const [oldest] = readings;
    if (readings.length === BUSY_OVER_TURNS) readings.shift();
    if (oldest && busyPercent(oldest) < maxBusyPercent) waiting.shift()?.();
  }, TURN_EVERY_MS);
  return {
    turn: () => new Promise<void>((resolve) => (isOver ? resolve() : waiting.push(resolve))),
    /** Lets every caller go, also later ones. */
    end: () => {
      isOver = true;
      clearInterval(timer);
      for (const go of waiting.splice(0)) go();
    },
  };
}

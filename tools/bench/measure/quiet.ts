import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredStack, ProcessName } from '../stack/measured-stack.ts';
import { PROCESSES } from '../stack/measured-stack.ts';
import { cpuBetween, readCpu } from './cpu.ts';

export type CpuPercent = Record<ProcessName, number>;

const LOOK_MS = 500;
/** A stack is quiet if it uses at most this much more CPU than the measured idle stack, in per cent of a core. */
const ABOVE_IDLE_PERCENT = 20;

export async function cpuPercentOver(stack: MeasuredStack, ms: number): Promise<CpuPercent> {
  const pids = stack.pids();
  const before = readCpu(pids);
  const startedAt = performance.now();
  await sleep(ms);
  const used = cpuBetween(before, readCpu(pids));
  const elapsedMs = performance.now() - startedAt;
  return Object.fromEntries(
    PROCESSES.map((name) => [name, ((used[name] ?? 0) / elapsedMs) * 100]),
  ) as CpuPercent;
}

/** Waits at most `withinMs` until the stack uses little more CPU than `idle`. Null counts as no CPU use. */
export async function waitUntilQuiet(
  stack: MeasuredStack,
  idle: CpuPercent | null,
  withinMs: number,
): Promise<void> {
  const limit = total(idle) + ABOVE_IDLE_PERCENT;
  const giveUpAt = performance.now() + withinMs;
  while (performance.now() < giveUpAt) {
    const used = await cpuPercentOver(stack, LOOK_MS);
    if (total(used) <= limit) return;
  }
}

function total(percent: CpuPercent | null): number {
  return percent === null ? 0 : PROCESSES.reduce((sum, name) => sum + percent[name], 0);
}

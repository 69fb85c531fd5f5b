import { readFileSync } from 'node:fs';

/** Identifies a process by pid and start time. The pid alone is not unique, because the system reuses pids. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAs: string;
}

/** The process with this pid, or undefined if there is none. A zombie counts as none. */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAs = startInProc(pid);
  return startedAs === undefined ? undefined : { pid, startedAs };
}

/** True while this process runs. False if a later process has its pid. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAs === identity.startedAs;
}

/** The arguments of a running process, joined by blanks. Undefined if there is no such process. */
export function commandLineOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return undefined;
  }
}

/** Waits `waitMs` after each signal. Never signals a later process with the pid. False if it survived all. */
export async function endProcess(
  identity: ProcessIdentity,
  steps: readonly { readonly signal: NodeJS.Signals; readonly waitMs: number }[],
): Promise<boolean> {
  for (const { signal, waitMs } of steps) {
    if (!isRunning(identity)) return true;
    try {
      process.kill(identity.pid, signal);
    } catch {
      // Either the process has ended, or the system forbids the signal. `waitUntilGone` tells which.
    }
    if (await waitUntilGone(identity, waitMs)) return true;
  }
  return !isRunning(identity);
}

const POLL_MS = 50;

/** Waits until the process has ended. Returns false if it still runs after `waitMs`. */
export async function waitUntilGone(identity: ProcessIdentity, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  while (isRunning(identity)) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}

function startInProc(pid: number): string | undefined {
  const stat = statOf(pid);
  if (stat === undefined || stat[0] === 'Z' || stat[0] === 'X') return undefined;
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot}:${stat[START_TICKS]}`;
}

/** Where {@link statOf} has the start time, in clock ticks since boot. */
const START_TICKS = 19;

/** The fields of `/proc/<pid>/stat` from the state on: state, parent, … Undefined if there is no such process. */
export function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain blanks.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

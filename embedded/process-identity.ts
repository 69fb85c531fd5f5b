import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/**
 * Which process a pid means: the pid alone is reused by strangers, pid and moment of start are not.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque; equal for the same process and no other. */
  readonly startedAs: string;
}

/** The process with this pid now, or undefined when there is none (a zombie counts as none). */
export function identify(pid: number): ProcessIdentity | undefined {
  const startedAs = existsSync('/proc/self/stat') ? startInProc(pid) : startFromPs(pid);
  return startedAs === undefined ? undefined : { pid, startedAs };
}

/** True while exactly this process, and not a later one with its pid, runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAs === identity.startedAs;
}

/** The command line of a running process, its parts joined by blanks, or undefined. */
export function commandLineOf(pid: number): string | undefined {
  try {
    if (existsSync('/proc/self/cmdline')) {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    }
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Sends the signals in turn, each after the one before it had its time, until the process is gone.
 * Never signals a later process with the same pid. Returns false when it outlived all of them.
 */
export async function endProcess(
  identity: ProcessIdentity,
  steps: readonly { readonly signal: NodeJS.Signals; readonly waitMs: number }[],
): Promise<boolean> {
  for (const { signal, waitMs } of steps) {
    if (!isRunning(identity)) return true;
    try {
      process.kill(identity.pid, signal);
    } catch {
      // Gone in between, or not ours to signal; the check below tells which.
    }
    if (await waitUntilGone(identity, waitMs)) return true;
  }
  return !isRunning(identity);
}

const POLL_MS = 50;

/** Waits until the process is gone; false when it is still there after `waitMs`. */
export async function waitUntilGone(identity: ProcessIdentity, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  while (isRunning(identity)) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}

function startInProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name in parentheses, which may itself hold blanks: state is the first field,
    // the start in clock ticks since boot the twentieth.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

function startFromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
    }).trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}

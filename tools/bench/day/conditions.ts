import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../scripts/client/wait-for.ts';
import { countOpen } from './renewals.ts';
import { editAll } from './set-up.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';

/** Time in ms that {@link emptyCache} needs at most. */
export const EMPTIED_WITHIN_MS = 55_000;
const RESTARTED_WITHIN_MS = 15_000;
const WARM_WITHIN_MS = 20_000;
/** A worker polls this time in ms after its process has started. */
const POLLS_AFTER_MS = 5_000;
/** The time in ms for the edits of the other subscriptions. */
const EDITED_WITHIN_MS = 10_000;

/**
 * Restarts the worker, so that its cache holds no run. Then renews the subscriptions `others`, so that the code of the new
 * process is as warm as that of an old one.
 */
export async function emptyCache(stack: MeasuredStack, others: readonly string[]): Promise<void> {
  const before = stack.pids().get('worker');
  if (before === undefined) throw new Error('the worker does not run');
  process.kill(before, 'SIGTERM');
  await waitFor('the worker to be restarted', RESTARTED_WITHIN_MS, () => {
    const now = stack.pids().get('worker');
    return now !== undefined && now !== before ? true : undefined;
  });
  await sleep(POLLS_AFTER_MS);
  const dueAt = Date.now() + EDITED_WITHIN_MS;
  await editAll(stack, others, dueAt);
  await waitFor('the other subscriptions to be renewed', WARM_WITHIN_MS, async () => {
    const { unsettled } = await countOpen(stack, others, dueAt);
    return unsettled === 0 ? true : undefined;
  });
}

/** Starts a busy loop on each core, at the same priority as the stack. The returned function ends them. */
export function slowDown(): () => void {
  const loops = Array.from({ length: availableParallelism() }, () =>
    // Ends with this process, whose end closes its standard input.
    spawn(
      process.execPath,
      [
        '-e',
        "process.stdin.on('end', () => process.exit()).resume(); setInterval(() => { for (const end = Date.now() + 50; Date.now() < end;); }, 0)",
      ],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    ),
  );
  return () => loops.forEach((loop) => loop.kill());
}

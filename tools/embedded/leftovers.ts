import { endProcess, waitUntilGone } from './process-identity.ts';
import type { ProcessRecord, ProcessTable } from './process-table.ts';
import type { Report } from './progress.ts';

export const STARTER = 'start';

const EARLIER_START_WAIT_MS = 15_000;

/** Stops what a killed `npm start` left running. Throws if an earlier one still runs after 15 s. */
export async function clearEarlierStart(table: ProcessTable, report: Report): Promise<void> {
  const records = table.running();
  const starter = records.find(({ name }) => name === STARTER);
  if (starter !== undefined) await waitForEarlierStart(starter, report);
  // A process depends on the processes started before it, so the last process stops first.
  for (const record of table.running().toReversed()) {
    report(
      `stopping ${record.name} (pid ${record.pid}), left behind by an earlier start that was killed`,
    );
    const isGone = await endProcess(record, [
      { signal: record.name === 'postgres' ? 'SIGINT' : 'SIGTERM', waitMs: 6_000 },
      { signal: 'SIGKILL', waitMs: 3_000 },
    ]);
    if (!isGone) throw new Error(`${record.name} (pid ${record.pid}) cannot be stopped.`);
    table.remove(record.name);
  }
}

async function waitForEarlierStart(starter: ProcessRecord, report: Report): Promise<void> {
  report(`an earlier start (pid ${starter.pid}) is still running; waiting for it to end`);
  if (await waitUntilGone(starter, EARLIER_START_WAIT_MS)) return;
  throw new Error(
    `npm start already runs on this data folder (pid ${starter.pid}). Stop it first, or set ` +
      'DATA_DIR and other ports.',
  );
}

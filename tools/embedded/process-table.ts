import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { commandLineOf, identify, isRunning } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** A process that runs for a data folder of `npm start`, as recorded in the folder's `processes.json`. */
export interface ProcessRecord extends ProcessIdentity {
  readonly name: string;
  readonly command: string;
  readonly startedAt: string;
}

export type ProcessTable = ReturnType<typeof openProcessTable>;

/** From `file` the next `npm start` learns which processes a killed one left running. A missing file is an empty table. */
export function openProcessTable(file: string) {
  const records = (): ProcessRecord[] => {
    try {
      const content = JSON.parse(readFileSync(file, 'utf8')) as { processes: ProcessRecord[] };
      return content.processes;
    } catch {
      return [];
    }
  };
  const write = (processes: readonly ProcessRecord[]): void => {
    mkdirSync(dirname(file), { recursive: true });
    const temporary = `${file}.${process.pid}.tmp`;
    writeFileSync(temporary, `${JSON.stringify({ processes }, null, 2)}\n`);
    renameSync(temporary, file);
  };
  const without = (name: string): ProcessRecord[] => records().filter((r) => r.name !== name);

  return {
    running: () => records().filter(isRunning),
    add: (name: string, pid: number): void => {
      const identity = identify(pid);
      if (identity === undefined) return;
      const command = commandLineOf(pid) ?? '';
      const startedAt = new Date().toISOString();
      write([...without(name), { name, ...identity, command, startedAt }]);
    },
    remove: (name: string): void => write(without(name)),
  };
}

import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** How often each status was answered; 0 stands for no answer. */
export type Calls = ReadonlyMap<number, number>;

/** What became of every call of a run, from the report that Schemathesis left. */
export async function countCalls(reportFile: string): Promise<Calls> {
  const calls = new Map<number, number>();
  if (!existsSync(reportFile)) return calls;
  for await (const line of createInterface({ input: createReadStream(reportFile) })) {
    const { ScenarioFinished: finished } = JSON.parse(line) as ReportLine;
    for (const { response } of Object.values(finished?.recorder.interactions ?? {})) {
      const status = response?.status_code ?? 0;
      calls.set(status, (calls.get(status) ?? 0) + 1);
    }
  }
  return calls;
}

interface ReportLine {
  ScenarioFinished?: {
    recorder: {
      interactions: Record<string, { response: { status_code: number } | null }>;
    };
  };
}

export function mergedCalls(all: readonly Calls[]): Calls {
  const merged = new Map<number, number>();
  for (const [status, count] of all.flatMap((calls) => [...calls])) {
    merged.set(status, (merged.get(status) ?? 0) + count);
  }
  return new Map([...merged].toSorted(([a], [b]) => a - b));
}

export function totalOf(calls: Calls): number {
  return [...calls.values()].reduce((sum, count) => sum + count, 0);
}

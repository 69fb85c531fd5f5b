import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface Call {
  /** Method and path as in the OpenAPI document: `GET /customer/{customerId}`. */
  readonly operation: string;
  readonly status: number;
}

interface ReportLine {
  ScenarioFinished?: {
    recorder: {
      /** Both fields are absent if no request was sent. */
      cases?: Record<string, { value: { method: string; path: string } }>;
      interactions?: Record<string, { response: { status_code: number } | null }>;
    };
  };
}

export async function readCalls(reportFile: string): Promise<Call[]> {
  const calls: Call[] = [];
  if (!existsSync(reportFile)) return calls;
  for await (const line of createInterface({ input: createReadStream(reportFile) })) {
    const { ScenarioFinished: finished } = JSON.parse(line) as ReportLine;
    if (finished === undefined) continue;
    const { cases = {}, interactions = {} } = finished.recorder;
    for (const [id, { response }] of Object.entries(interactions)) {
      const { method = '', path = '' } = cases[id]?.value ?? {};
      calls.push({ operation: `${method} ${path}`, status: response?.status_code ?? 0 });
    }
  }
  return calls;
}

export function countStatuses(calls: readonly Call[]): [status: number, count: number][] {
  const counts = new Map<number, number>();
  for (const { status } of calls) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].toSorted(([a], [b]) => a - b);
}

/** Operations that never answered 2xx: only their refusals were tested. 405 is no operation. */
export function neverSucceeded(calls: readonly Call[]): string[] {
  const done = new Set(
    calls.filter(({ status }) => status >= 200 && status < 300).map(({ operation }) => operation),
  );
  const asked = calls.filter(({ status }) => status !== 405).map(({ operation }) => operation);
  return [...new Set(asked)].filter((operation) => !done.has(operation)).toSorted();
}

// npm run bench:create: measures the latency of POST /subscription/create at a running npm start, for a
// client on the same machine. The benchmark prints the figures and does not compare them with a limit.

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Pool } from 'undici';
import { MONTHLY } from '../scripts/client/monthly.ts';
import { commandLine, wholeNumber } from '../scripts/client/options.ts';
import { findRunningStart } from '../scripts/client/running-start.ts';
import type { RunningStart } from '../scripts/client/running-start.ts';
import { cells, print, runScript, styled } from '../scripts/client/terminal.ts';
import type { Column } from '../scripts/client/terminal.ts';
import { readRunConditions } from './measure/machine.ts';
import { inParallel } from './measure/parallel.ts';
import { distributionOf, percentile } from './measure/percentiles.ts';

const CONCURRENCIES = [1, 8] as const;
/** Number of first requests that are not measured, because the API compiles code and opens connections for them. */
const WARM_UP = 30;

const COLUMNS = [11, 8, 10, 10, 10, 10].map((width): Column => ({ width, align: 'right' }));

const program = commandLine('run bench:create', 'Latency of POST /subscription/create.')
  .option('--requests <count>', 'number of requests at each concurrency', wholeNumber, 300)
  .option('--json <file>', 'write every figure as JSON');

await runScript(async () => {
  const { requests, json } = program.parse().opts<{ requests: number; json?: string }>();
  const start = await findRunningStart();
  print();
  print(styled('bold', '  POST /subscription/create, in milliseconds'));
  print();
  const heading = ['in parallel', 'requests', 'p50', 'p95', 'p99', 'per second'];
  print(styled('dim', `  ${cells(COLUMNS, heading).join('  ')}`));
  await measure(start, 1, WARM_UP);
  const measured: object[] = [];
  for (const concurrency of CONCURRENCIES) {
    const { latenciesMs, elapsedMs } = await measure(start, concurrency, requests);
    const perSecond = requests / (elapsedMs / 1_000);
    measured.push({ concurrency, perSecond, latencyMs: distributionOf(latenciesMs) });
    const row = [
      String(concurrency),
      String(requests),
      ...[50, 95, 99].map((percent) => percentile(latenciesMs, percent).toFixed(1)),
      perSecond.toFixed(1),
    ];
    print(`  ${cells(COLUMNS, row).join('  ')}`);
  }
  print();
  if (json !== undefined) {
    const content = { surroundings: readRunConditions(), arguments: { requests }, measured };
    writeFileSync(json, `${JSON.stringify(content, null, 2)}\n`);
  }
  return 0;
});

async function measure(
  { demo }: RunningStart,
  concurrency: number,
  requests: number,
): Promise<{ latenciesMs: number[]; elapsedMs: number }> {
  const pool = new Pool(demo.apiUrl, { connections: concurrency });
  const authorization = `Basic ${Buffer.from(`${demo.keyId}:${demo.secret}`).toString('base64')}`;
  const startedAt = performance.now();
  try {
    const latenciesMs = await inParallel(Array.from({ length: requests }), concurrency, () =>
      createOnce(pool, authorization),
    );
    return { latenciesMs, elapsedMs: performance.now() - startedAt };
  } finally {
    await pool.close();
  }
}

async function createOnce(pool: Pool, authorization: string): Promise<number> {
  const startedAt = performance.now();
  const response = await pool.request({
    method: 'POST',
    path: '/subscription/create',
    headers: {
      authorization,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify(MONTHLY),
  });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}: ${text}`);
  return performance.now() - startedAt;
}

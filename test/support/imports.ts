import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';
import type { PaymentGateway } from '../../gateways/port.ts';
import { runImport } from '../../cli/import/run.ts';
import type { ReportLine } from '../../cli/import/report.ts';
import { checkoutCommand } from './card-tokens.ts';
import { countRows } from './database.ts';
import type { TestEnvironment } from './test-environment.ts';

/** A line of an import file: a monthly subscription of 19.99 USD with 5 of 12 cycles paid. */
export const LINE = {
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  cyclesCharged: 5,
};

/**
 * Writes import files and imports them. A line is an object or a text. The files are in a temporary folder,
 * which `close` removes.
 */
export function importsIn(env: TestEnvironment) {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-import-'));
  const write = (lines: readonly (object | string)[]) => {
    const file = join(folder, `${randomUUID()}.jsonl`);
    const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
    writeFileSync(file, `${texts.join('\n')}\n`);
    return file;
  };
  const reportOf = (reportFile: string): ReportLine[] =>
    readFileSync(reportFile, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as ReportLine);
  const variables = () => ({ ...process.env, ...env.variables });
  const args = [...bundledProgram(inject('programFolder'), 'cli/import.ts')];

  const start = (environment: Readonly<Record<string, string>>, given: readonly string[]) => {
    const running = promisify(execFile)(process.execPath, [...args, ...given], {
      env: { ...variables(), ...environment },
    });
    const done = running.then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: number | null; stdout: string; stderr: string }) => error,
    );
    return { child: running.child, done };
  };
  /** Starts `npm run import -- …` and returns the child process and its result. */
  const command = (...given: string[]) => start({}, given);

  return {
    write,
    /** Runs an import in this process. */
    async run(
      lines: readonly (object | string)[],
      options: { commit?: boolean; gateway?: PaymentGateway; now?: () => number } = {},
    ) {
      const file = write(lines);
      const reportFile = `${file}.report`;
      const result = await runImport(
        {
          db: env.db,
          merchantId: env.merchantId,
          gateway: options.gateway ?? env.gateway,
          workflows: env.workflows,
          random: randomBytes,
          now: options.now ?? Date.now,
          renewalsPerSecond: 100_000,
        },
        {
          file,
          reportFile,
          commit: options.commit === true,
          onLine: () => undefined,
          onProblem: () => undefined,
        },
      );
      return { ...result, report: reportOf(reportFile) };
    },
    command,
    /** As `command`, with the sandbox gateway at another address. */
    commandAt: (gatewayUrl: string, ...given: string[]) =>
      start({ GATEWAY_URL: gatewayUrl }, given),
    /** Saves a card at the sandbox and returns its id there. */
    async sandboxMethod(number?: string): Promise<string> {
      const { paymentToken: token, checkoutSessionId: session } = checkoutCommand(
        await env.token(number),
      );
      const saved = await env.gateway.saveMethod({ key: `save:${token}`, token, session });
      if (saved.kind !== 'saved') throw new Error(`not saved: ${saved.kind}`);
      return saved.card.gatewayMethodId;
    },
    /** The number of rows of each table. */
    countRows: () => countRows(env.db),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

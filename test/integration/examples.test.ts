import { execFile } from 'node:child_process';
import { describe, expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';

interface Ended {
  exitCode: number | string;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. A program that cannot be started has the exit code `ENOENT`. */
function run(command: string, args: string[], variables: Record<string, string>): Promise<Ended> {
  return new Promise((done) => {
    const env = { ...process.env, ...variables };
    execFile(command, args, { env }, (error, stdout, stderr) => {
      done({ exitCode: error?.code ?? 0, stdout, stderr });
    });
  });
}

const inTypeScript = ['--import', 'tsx', 'examples/whole-life/life.ts'];
const inPython = ['examples/whole-life/life.py'];

/** The lines that both programs print, with ids replaced. */
const LINES = [
  'created      sub_…',
  'paid         19.99 USD on the hosted page; ACTIVE until 28 February',
  'edited       24.99 USD from 28 February on',
  'paused       from 10 March to 15 April; access until 31 March; then charged again',
  'declined     on 15 May and four hours later: insufficient_funds; UNPAID',
  'retried      by hand: paid; ACTIVE until 15 June',
  'refunded     10.00 USD of it',
  'cancelled    at the end of the period: ENDED on 15 June, and no payment in the next year',
  'link         /l/…: one payer subscribed, and is cancelled at once',
  'payment link /l/…: one payer paid 49.00 USD once',
  'saved        pmt_…: charged 5.00 USD, and declined once with lost_card',
  'as expected  25 events, each with both signatures',
];

function linesOf(stdout: string): string[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/(sub_|pmt_)\w+/, '$1…').replace(/http\S+\/l\/\w+/, '/l/…'));
}

describe('the example program whole-life', () => {
  test('gets every expected answer and event in TypeScript [D-§7, D-60]', async ({ shop }) => {
    const ended = await run(process.execPath, inTypeScript, shop.variables);
    expect({ ...ended, stdout: linesOf(ended.stdout) }).toEqual({
      exitCode: 0,
      stdout: LINES,
      stderr: '',
    });
  });

  test('gets every expected answer and event in Python [D-§7, D-60]', async ({ shop }) => {
    const ended = await run('python3', inPython, shop.variables);
    expect({ ...ended, stdout: linesOf(ended.stdout) }).toEqual({
      exitCode: 0,
      stdout: LINES,
      stderr: '',
    });
  });
});

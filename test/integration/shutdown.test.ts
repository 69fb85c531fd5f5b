import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'perennial-shutdown-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program that calls `onShutdown` with closers, given as source text, and then prints "up". */
async function startProgram(
  closers: string,
  environment: Record<string, string> = {},
  withinMs = 60_000,
) {
  const file = join(folder, `${Math.random()}.mts`);
  writeFileSync(
    file,
    `import { onShutdown } from ${JSON.stringify(resolve('runtime/shutdown.ts'))};
     const say = (line: string) => console.log(line);
     const logger = { info() {}, error(details: object) { say('error ' + JSON.stringify(details)); } };
     onShutdown([${closers}], { logger: logger as never, withinMs: ${withinMs} });
     setInterval(() => undefined, 1000);
     say('up');`,
  );
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, lines: lines() }));
  const lines = (): string[] => output.trim().split('\n');
  while (!output.includes('up')) await once(child.stdout, 'data');
  return { child, ended };
}

/** The source text of a closer: a step that `onShutdown` runs before the process exits. */
const closer = (name: string, body: string, timeoutMs = 5_000): string =>
  `{ name: '${name}', timeoutMs: ${timeoutMs}, close: async () => { ${body} } }`;

describe('a process with closers', () => {
  it.each(['SIGTERM', 'SIGHUP'] as const)('runs its closers in order on %s', async (signal) => {
    const slow = "await new Promise((r) => setTimeout(r, 50)); say('first');";
    const { child, ended } = await startProgram(
      [closer('a', slow), closer('b', "say('second');")].join(','),
    );
    child.kill(signal);
    expect(await ended).toEqual({ code: 0, lines: ['up', 'first', 'second'] });
  });

  it('runs the next closer and exits with 1 when a closer hangs or throws', async () => {
    const { child, ended } = await startProgram(
      [
        closer('stuck', 'await new Promise(() => undefined);', 100),
        closer('broken', "throw new Error('no');"),
        closer('last', "say('last');"),
      ].join(','),
    );
    child.kill('SIGTERM');
    expect(await ended).toEqual({
      code: 1,
      lines: [
        'up',
        'error {"closer":"stuck","error":"still open after 100 ms"}',
        'error {"closer":"broken","error":"no"}',
        'last',
      ],
    });
  });

  it('stops waiting for closers at the common time limit, runs the last closer and exits with 1', async () => {
    const stuck = (name: string) => closer(name, 'await new Promise(() => undefined);');
    const { child, ended } = await startProgram(
      [stuck('first'), stuck('second'), closer('last', "say('last');")].join(','),
      {},
      100,
    );
    child.kill('SIGTERM');
    const { code, lines } = await ended;
    expect(code).toBe(1);
    expect(lines).toEqual([
      'up',
      expect.stringMatching(/^error {"closer":"first","error":"still open after \d+ ms"}$/),
      expect.stringMatching(/^error {"closer":"second","error":"still open after \d+ ms"}$/),
      'last',
    ]);
    // Both closers together get the common limit, not 5 s each.
    const waitsMs = lines.slice(1, 3).map((line) => Number(/(\d+) ms/.exec(line)?.[1]));
    expect(Math.max(...waitsMs)).toBe(waitsMs[0]);
    expect(waitsMs.reduce((sum, ms) => sum + ms)).toBeLessThan(110);
  });

  it('closes once when two signals come at once, as npm sends them', async () => {
    const { child, ended } = await startProgram(
      closer('a', "say('closing'); await new Promise((r) => setTimeout(r, 100)); say('closed');"),
    );
    child.kill('SIGINT');
    child.kill('SIGINT');
    expect(await ended).toEqual({ code: 0, lines: ['up', 'closing', 'closed'] });
  });

  it('stops when its stdin ends and PERENNIAL_EXIT_WITH_PARENT is set', async () => {
    const { child, ended } = await startProgram(closer('a', "say('closed');"), {
      PERENNIAL_EXIT_WITH_PARENT: '1',
    });
    child.stdin.end();
    expect(await ended).toEqual({ code: 0, lines: ['up', 'closed'] });
  });
});

import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { CommandError, runCommand } from './run-command.ts';

export class ComponentMissingError extends Error {
  override readonly name = 'ComponentMissingError';
}

async function requireExecutable(path: string, variable: string): Promise<void> {
  await access(path, constants.X_OK).catch(() => {
    throw new ComponentMissingError(`${variable} is ${path}, which is not an executable file.`);
  });
}

export async function onPath(program: string): Promise<string | undefined> {
  try {
    const found = await runCommand('sh', ['-c', `command -v ${program}`], { timeoutMs: 5_000 });
    return found.trim().startsWith('/') ? found.trim() : undefined;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

interface Search {
  readonly given: string | undefined;
  /** The environment variable of `given`. */
  readonly variable: string;
  /** The name of a program on PATH that will do. */
  readonly program?: string;
  /** Where an earlier search put the program. */
  readonly cached: readonly string[];
  readonly ways: readonly (() => Promise<string>)[];
  readonly advice: readonly string[];
}

/** From `given`, PATH, the cache, else the first way that works. Throws ComponentMissingError with every failure. */
export async function findProgram(search: Search): Promise<string> {
  const { given, variable, program, cached, ways, advice } = search;
  if (given !== undefined) {
    await requireExecutable(given, variable);
    return given;
  }
  const found = program === undefined ? undefined : await onPath(program);
  const known = found ?? cached.find((path) => existsSync(path));
  if (known !== undefined) return known;
  const failures: string[] = [];
  for (const way of ways) {
    try {
      return await way();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      failures.push(`  - ${text.replaceAll('\n', '\n    ')}`);
    }
  }
  throw new ComponentMissingError([...advice, 'These attempts failed:', ...failures].join('\n'));
}

import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { z } from 'zod';

/** The variables of a process. An empty variable counts as absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Names every wrong variable with its expected form, one per line; contains no secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(['Cannot start: the settings are incomplete or wrong.', ...problems].join('\n  - '));
    this.problems = problems;
    // Node prints the stack of an uncaught error. For wrong settings the message is enough.
    this.stack = `${this.name}: ${this.message}`;
  }
}

export const port = z.coerce.number().int().min(1).max(65_535);
export const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ''));
export const flag = z
  .enum(['true', 'false', '1', '0', 'on', 'off'])
  .transform((value) => value === 'true' || value === '1' || value === 'on');
export const text = z.string().min(1);

/** Reads a list whose parts are separated by commas. */
export const listOf = (value: string): string[] => value.split(',').map((part) => part.trim());

type Variables = Readonly<Record<string, z.ZodType>>;
type Read<Table extends Variables, Name extends keyof Table> = {
  [Key in Name]: z.output<Table[Key]>;
};

/** Values of `.env` fill in missing variables. Other product code must not read `process.env`. */
export function processEnvironment(): Environment {
  const dotEnv = existsSync('.env') ? parseEnv(readFileSync('.env', 'utf8')) : {};
  return { ...dotEnv, ...process.env };
}

/** Returns the variables for a child process: those of this process, replaced or extended by `overrides`. */
export function childEnvironment(overrides: Environment): NodeJS.ProcessEnv {
  return { ...process.env, ...overrides };
}

/** Checks several variables or a file that a variable names. Returns the problem, if there is one. */
export type Check = (environment: Environment) => string | undefined;

/** @throws ConfigError with every problem at once. */
export function read<Table extends Variables, Name extends keyof Table & string>(
  variables: Table,
  names: readonly Name[],
  environment: Environment,
  checks: readonly Check[] = [],
): Read<Table, Name> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const name of new Set(names)) {
    const raw = present(environment[name]);
    const result = variables[name]?.safeParse(raw);
    if (result?.success === true) values[name] = result.data;
    else if (raw === undefined) problems.push(`${name}: is not set and has no default`);
    else problems.push(`${name}: ${result?.error.issues.map(({ message }) => message).join('; ')}`);
  }
  for (const check of checks) {
    const problem = check(environment);
    if (problem !== undefined) problems.push(problem);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Read<Table, Name>;
}

/** Returns undefined for an empty variable. */
export function present(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value;
}

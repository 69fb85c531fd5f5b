import type { Readable } from 'node:stream';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { Environment } from '../../runtime/environment.ts';
import { commandPlace } from './place.ts';
import { errorText, reasonOf } from './terminal.ts';

/** Where a command gets its settings and its input, and prints: the process, or a test. */
export interface Surroundings {
  readonly environment: Environment | undefined;
  readonly input: Readable;
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
}

export const processSurroundings: Surroundings = {
  environment: undefined,
  input: process.stdin,
  print: (line) => console.log(line),
  printError: (line) => console.error(line),
};

/** A wrong option prints the error and the usage, and the process exits with 1. */
export function commandLine(npmCommand: string, description: string): Command {
  return new Command(`npm ${npmCommand} --`).description(description).showHelpAfterError();
}

/**
 * A command that prints to its surroundings and returns an exit code: 1 after a wrong option or an error, which it
 * prints, else that of `exit`, else 0. `build` adds the options and the action.
 */
export function operatorCommand(
  name: string,
  description: string,
  build: (program: Command, surroundings: Surroundings, exit: (code: number) => void) => unknown,
) {
  return async (args: readonly string[], surroundings: Surroundings): Promise<number> => {
    const { print, printError } = surroundings;
    let code = 0;
    const program = commandLine(`run ${name}`, description)
      .exitOverride()
      .configureOutput({
        writeOut: (text) => print(text.trimEnd()),
        writeErr: (text) => printError(text.trimEnd()),
      });
    build(program, surroundings, (given) => (code = given));
    try {
      await program.parseAsync(args, { from: 'user' });
      return code;
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode;
      printError(errorText(error instanceof Error ? reasonOf(error) : String(error)));
      return 1;
    }
  };
}

/** DATABASE_URL, else the database of the running `npm start`. */
export function databaseUrlOf({ environment }: Surroundings): string {
  return commandPlace(environment).databaseUrl;
}

const GATEWAYS = ['sandbox', 'stripe-double'] as const;
export type GatewayChoice = (typeof GATEWAYS)[number];

export function gatewayOption(description: string): Option {
  return new Option('--gateway <name>', description).choices(GATEWAYS);
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Give a whole number above 0.');
}

/** ISO 8601, with or without a time: `2027-01-31`, `2027-01-31T12:00Z`. Returns epoch ms. */
export function instantOption(text: string): number {
  const at = Date.parse(text);
  // `Date` reads 31 February as 3 March.
  const isDay = new Date(text.slice(0, 10)).getUTCDate() === Number(text.slice(8, 10));
  const isInstant = /^\d{4}-\d\d-\d\d(T.*(Z|[+-]\d\d:\d\d))?$/.test(text) && !Number.isNaN(at);
  if (isInstant && isDay) return at;
  throw new InvalidArgumentError('Give an instant like 2027-01-31 or 2027-01-31T12:00Z.');
}

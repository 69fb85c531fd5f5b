import { Command, InvalidArgumentError, Option } from 'commander';

/**
 * Returns the command line of an npm command. A wrong option prints the error and the usage, and the process
 * exits with 1. `--help` prints the usage.
 */
export function commandLine(npmCommand: string, description: string): Command {
  return new Command(`npm ${npmCommand} --`).description(description).showHelpAfterError();
}

const GATEWAYS = ['sandbox', 'stripe-double'] as const;
export type GatewayChoice = (typeof GATEWAYS)[number];

/** The option `--gateway`, without a default. */
export function gatewayOption(description: string): Option {
  return new Option('--gateway <name>', description).choices(GATEWAYS);
}

/** Reads the argument of an option that takes a whole number above 0. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Give a whole number above 0.');
}

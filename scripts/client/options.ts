import { InvalidArgumentError } from 'commander';

/** Reads the argument of an option that takes a whole number above 0. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Give a whole number above 0.');
}

import { hasAtMost, isStorable } from '../../domain/storable-text.ts';
import { CONTROL } from '../command-line/terminal.ts';

const LENGTH_MAX = 100;

/** Returns why a merchant cannot have this name, which payers and operators see; null if it can. */
export function merchantNameProblem(name: string): string | null {
  const isUsable =
    name.trim() !== '' && hasAtMost(name, LENGTH_MAX) && isStorable(name) && !CONTROL.test(name);
  return isUsable
    ? null
    : `The name must have 1 to ${LENGTH_MAX} characters, not only blanks, and no control characters.`;
}

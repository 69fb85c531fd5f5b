import { userInfo } from 'node:os';
import { Option } from 'commander';
import type { Db } from '../../db/client.ts';
import { recordAction } from '../../db/repositories/operator-actions.ts';
import type { OperatorAction } from '../../db/repositories/operator-actions.ts';

/** Records an action in the transaction of the action. */
export type Recorder = (tx: Db, action: Omit<OperatorAction, 'actedBy'>) => Promise<void>;

export function recorder(by: string): Recorder {
  const actedBy = by.trim();
  if (actedBy === '') throw new Error('--by must not be empty.');
  return (tx, action) => recordAction(tx, { actedBy, ...action });
}

/** The name of the operator, for the audit log. */
export function byOption(): Option {
  return new Option('--by <name>', 'name of the person who acts').default(
    userOfMachine(),
    'the user of this machine',
  );
}

function userOfMachine(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run with a user id that has no name.
    return `uid ${process.getuid?.()}`;
  }
}

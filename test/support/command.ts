import { randomUUID } from 'node:crypto';
import type { Command, CommandKind } from '../../domain/subscription/commands.ts';

type CommandOf<Kind> = Extract<Command, { kind: Kind }>;
type FieldsOf<Kind> = Omit<CommandOf<Kind>, 'kind' | 'commandId'>;
/** One argument, which may be absent if the command needs no field. */
type Given<Fields> = Partial<Fields> extends Fields ? [fields?: Fields] : [fields: Fields];

/** A command with a new id. */
export function command<Kind extends CommandKind>(kind: Kind, ...[fields]: Given<FieldsOf<Kind>>) {
  return { ...fields, kind, commandId: randomUUID() } as CommandOf<Kind>;
}

import { listActions } from '../../db/repositories/operator-actions.ts';
import type { ListedAction } from '../../db/repositories/operator-actions.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { databaseUrlOf, instantOption, operatorCommand } from '../command-line/options.ts';
import { withDatabase } from '../command-line/servers.ts';
import { cells, jsonText, minuteText, printable } from '../command-line/terminal.ts';

const LIMIT = 1_000;

interface Options {
  readonly since?: number;
  readonly subject?: string;
  readonly json?: boolean;
}

export const auditCommand = operatorCommand(
  'audit',
  `Lists the newest ${LIMIT} actions of operators, the newest first.`,
  (program, surroundings) =>
    program
      .option('--since <instant>', 'only actions from then on', instantOption)
      .option('--subject <id>', 'only actions on this record, or on records of this merchant')
      .option('--json', 'print JSON instead of text')
      .action(async ({ json, ...filter }: Options) => {
        const { print } = surroundings;
        const place = { url: databaseUrlOf(surroundings), command: 'audit' };
        const actions = await withDatabase(place, (db) =>
          listActions(db, { ...filter, limit: LIMIT }),
        );
        if (json === true) {
          print(
            jsonText(
              actions.map((action) => ({ ...action, at: formatInstant(action.at) })),
              2,
            ),
          );
        } else if (actions.length === 0) print('There are no actions.');
        else tableOf(actions).forEach((line) => print(line));
      }),
);

function tableOf(actions: readonly ListedAction[]): string[] {
  const rows = actions.map(({ at, actedBy, command, subject, facts }) => [
    `${minuteText(at)} UTC`,
    printable(actedBy ?? 'an operator'),
    printable(command),
    printable(subject),
    factsText(facts),
  ]);
  const widths = [0, 1, 2, 3, 4].map((index) =>
    Math.max(...rows.map((row) => row[index]?.length ?? 0)),
  );
  return rows.map((row) => cells(widths, row).join('  ').trimEnd());
}

function factsText(facts: ListedAction['facts']): string {
  return Object.entries(facts)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === 'string' ? printable(value) : jsonText(value)}`,
    )
    .join(' ');
}

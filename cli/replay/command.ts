import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { operatorCommand } from '../command-line/options.ts';
import { grouped, printable } from '../command-line/terminal.ts';
import { historyProblems } from './problems.ts';
import { createReplay } from './replay.ts';

export const replayCommand = operatorCommand(
  'replay',
  'Replays histories on the workflows of this build. Exit code 1 if one cannot go on or differs.',
  (program, { print }, exit) =>
    program
      .argument('<folder>', 'folder or file of histories as JSON, for example of npm run histories')
      .action(async (folder: string) => {
        const files = jsonFilesIn(folder);
        if (files.length === 0) throw new Error(`There is no history in ${folder}.`);
        let wrong = 0;
        const replay = await createReplay();
        for await (const run of replay(read(files))) {
          const problems = historyProblems(run);
          if (problems.length > 0) wrong += 1;
          for (const problem of problems) print(printable(`${run.name}: ${problem}`));
        }
        if (wrong > 0) exit(1);
        print(
          `${grouped(files.length)} histories replayed, ${grouped(wrong)} of them differ on this build.`,
        );
      }),
);

function jsonFilesIn(path: string): string[] {
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .map((name) => join(path, name));
}

function* read(files: readonly string[]): Generator<readonly [string, unknown]> {
  for (const file of files) yield [file, JSON.parse(readFileSync(file, 'utf8'))];
}

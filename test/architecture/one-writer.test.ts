import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const FOLDERS = ['activities', 'api', 'cli', 'db', 'temporal', 'tools'];
const SUBSCRIPTIONS = 'db/repositories/subscriptions';

const sources = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name)),
);

test.each([
  ['insert(subscriptions)', 'write-change.ts'],
  ['insert(subscriptionEntries)', 'write-change.ts'],
  ['insert(subscriptionCommands)', 'write-change.ts'],
  ['lastTransitionId: transitionId', 'write-change.ts'],
  ['insert(paymentAttempts)', 'attempts.ts'],
])('only one file contains %s', (text, writer) => {
  const writers = sources.filter((file) =>
    readFileSync(file, 'utf8').replaceAll(/\s/g, '').includes(text.replaceAll(' ', '')),
  );
  expect(writers).toEqual([`${SUBSCRIPTIONS}/${writer}`]);
});

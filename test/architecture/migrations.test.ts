import { readMigrationFiles } from 'drizzle-orm/migrator';
import { expect, it } from 'vitest';

/** What a later migration may contain: nothing that reads or rewrites a whole table while writers wait. */
const ALLOWED = [
  /^create table /i,
  /^create (unique )?index concurrently if not exists /i,
  /^drop index concurrently if exists /i,
  /^drop table /i,
  /^alter table \S+ drop column /i,
  /^alter table \S+ add column (?!.*\b(references|unique|primary key|check|generated|\w*serial)\b)[^()]*$/i,
  /^alter table \S+ add constraint .* not valid;?$/i,
  /^alter table \S+ validate constraint /i,
];

/** Names what makes writers wait in the migration, or mixes the two ways in which `db/migrate.ts` runs one. */
function faultsOf(statements: readonly string[]): string[] {
  const lines = statements.map((statement) => statement.trim().replaceAll(/\s+/g, ' '));
  const created = lines.flatMap((line) => /^create table "?(\w+)/i.exec(line)?.[1] ?? []);
  const onNewTable = (line: string) =>
    created.some((table) =>
      new RegExp(`^(create .*index .*\\bon|alter table) "?${table}\\b`, 'i').test(line),
    );
  const faults = lines.filter(
    (line) => !ALLOWED.some((form) => form.test(line)) && !onNewTable(line),
  );
  const beside = lines.filter((line) => /\bconcurrently\b/i.test(line)).length;
  if (beside > 0 && beside < lines.length) faults.push('concurrently beside others');
  // A transaction would keep the lock of the one during the scan of the other.
  const scans = lines.some((line) => /\bvalidate constraint\b/i.test(line));
  if (scans && lines.length > 1) faults.push('a validation beside others');
  return faults;
}

it('no migration after the first makes writers wait for a whole table', () => {
  const [, ...later] = readMigrationFiles({ migrationsFolder: 'db/migrations' });
  expect(later.flatMap(({ sql }) => faultsOf(sql))).toEqual([]);
});

it('no two migrations have the same date, by which the applied ones are known', () => {
  const migrations = readMigrationFiles({ migrationsFolder: 'db/migrations' });
  expect(new Set(migrations.map(({ folderMillis }) => folderMillis)).size).toBe(migrations.length);
});

it.each([
  ['alter table "refund" add column "note" text;'],
  ['alter table "refund" add column "tries" integer not null default 0'],
  ['alter table "refund" add constraint "c" check ("tries" >= 0) not valid'],
  ['alter table "refund" validate constraint "c"'],
  ['create unique index concurrently if not exists "r" on "refund" using btree ("note")'],
  ['create table "note" ("id" text)', 'create index "n" on "note" ("id")'],
])('a migration may contain: %s', (...statements) => {
  expect(faultsOf(statements)).toEqual([]);
});

it.each([
  ['create index "r" on "refund" using btree ("note")'],
  ['create index concurrently "r" on "refund" using btree ("note")'],
  ['alter table "refund" alter column "note" type bigint'],
  ['alter table "refund" alter column "note" set not null'],
  ['alter table "refund" add constraint "c" check ("tries" >= 0)'],
  ['alter table "refund" add column "at" timestamptz default clock_timestamp()'],
  ['alter table "refund" add column "n" bigserial'],
  ['alter table "refund" add column "key" text unique'],
  ['alter table "refund" add column "n" bigint default nextval(\'n\')'],
  ['drop index "refund__open__idx"'],
  ['update "refund" set "note" = \'\''],
])('a migration may not contain: %s', (statement) => {
  expect(faultsOf([statement])).toEqual([statement]);
});

it('a migration that builds an index beside the writers, or validates, contains nothing else', () => {
  const validate = 'alter table "refund" validate constraint "c"';
  const constrain = 'alter table "refund" add constraint "c" check ("tries" >= 0) not valid';
  expect(faultsOf([constrain, validate])).toEqual(['a validation beside others']);
  const index = 'create index concurrently if not exists "r" on "refund" ("note")';
  expect(faultsOf([index, 'alter table "refund" add column "note" text'])).toEqual([
    'concurrently beside others',
  ]);
});

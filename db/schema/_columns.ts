import { getColumns, getColumnTable, getTableName, sql } from 'drizzle-orm';
import {
  bigint,
  char,
  check,
  customType,
  foreignKey,
  makePgArray,
  parsePgArray,
  text,
} from 'drizzle-orm/pg-core';
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';
import { readState } from '../../domain/subscription/recorded-state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';

/** Reads an instant as epoch ms. Connections use UTC, so the text ends in `+00`. */
const epochMs = (text: string): number =>
  Date.parse(`${text.replace(' ', 'T').replace(/\+00$/, '')}Z`);

/** `timestamptz(3)`, read as epoch ms. */
export const instant = customType<{ data: number; driverData: string }>({
  dataType: () => 'timestamp(3) with time zone',
  toDriver: (value) => new Date(value).toISOString(),
  fromDriver: epochMs,
});

/** An array of instants, read as epoch ms. */
export const instants = customType<{ data: number[]; driverData: string }>({
  dataType: () => 'timestamp(3) with time zone[]',
  toDriver: (values) => makePgArray(values.map((value) => new Date(value).toISOString())),
  fromDriver: (value) => parsePgArray(value).map((text: string) => epochMs(text)),
});

/** `text[]`. The driver returns its text, because it reads no types (`fetch_types`). */
export const texts = customType<{ data: string[]; driverData: string }>({
  dataType: () => 'text[]',
  toDriver: (values) => makePgArray(values),
  fromDriver: (value) => parsePgArray(value),
});

/** The real time of the insert, unless a statement sets another one. */
export const realTime = (name: string) =>
  instant(name)
    .notNull()
    .default(sql`now()`);

/** The fields that a renewal changes. They come first, so that the end of the text stays the same. */
const CHANGING_FIELDS = [
  'version',
  'owed',
  'openAttempt',
  'latest',
  'cyclesCharged',
  'nextIndex',
  'currentPeriodEndAt',
  'jitterMs',
  'jitterFor',
  'notices',
] as const;

/** As text. @throws UnreadableStateError at a read: no process can go on from a wrong field. */
export const recordedState = customType<{ data: SubscriptionState; driverData: unknown }>({
  dataType: () => 'json',
  toDriver: (state) => {
    const first = Object.fromEntries(CHANGING_FIELDS.map((field) => [field, state[field]]));
    return { ...first, ...state };
  },
  fromDriver: (value) => readState(value),
});

export const bytes = customType<{ data: Buffer; driverData: Buffer }>({
  dataType: () => 'bytea',
});

export const amountMinor = (name = 'amount_minor') => bigint(name, { mode: 'number' });

export const currency = (name = 'currency') => char(name, { length: 3 });

export const merchantId = () => text('merchant_id').notNull();

/** Returns the foreign key from the column `id` to the parent of the same merchant. */
export const childOf = (
  { merchantId: ownerId }: { merchantId: AnyPgColumn },
  id: AnyPgColumn,
  parent: { merchantId: AnyPgColumn; id: AnyPgColumn },
) =>
  foreignKey({
    name: `${getTableName(getColumnTable(id))}__${id.name}__fk`,
    columns: [ownerId, id],
    foreignColumns: [parent.merchantId, parent.id],
  });

/** Returns the SQL CHECK that a row has a normal form if its details have an e-mail address, and only then. */
export const matchesEmail = (details: AnyPgColumn, normalEmail: AnyPgColumn) =>
  sql`(${details}->>'email' is null) = (${normalEmail} is null)`;

/** Returns for each column the CHECK that it has one of the values of its `enum`. */
export const areListed = (...columns: AnyPgColumn[]) =>
  columns.map((column) => {
    const table = getColumnTable<PgTable>(column);
    const declared = Object.values(getColumns(table)).find((each) => each.name === column.name);
    const values = declared?.enumValues?.map((value) => `'${value}'`).join(', ') ?? '';
    return check(
      `${getTableName(table)}__${column.name}__ck`,
      sql`${column} in (${sql.raw(values)})`,
    );
  });

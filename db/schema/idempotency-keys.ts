import { sql } from 'drizzle-orm';
import { check, index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId, oneOf } from './_columns.ts';

export const IDEMPOTENCY_STATES = ['IN_FLIGHT', 'DONE'] as const;
export type IdempotencyState = (typeof IDEMPOTENCY_STATES)[number];

/**
 * One use of an Idempotency-Key, IN_FLIGHT under a lease until the definite answer is stored. `commandId` stays the
 * same when another request gets the lease, so that a repeat finds the first command.
 */
export const idempotencyKeys = pgTable(
  'idempotency_key',
  {
    merchantId: merchantId(),
    route: text('route').notNull(),
    key: text('key').notNull(),
    fingerprint: bytes('fingerprint').notNull(),
    state: text('state').$type<IdempotencyState>().notNull(),
    owner: uuid('owner').notNull(),
    lockedUntil: instant('locked_until').notNull(),
    commandId: text('command_id').notNull(),
    httpStatus: integer('http_status'),
    body: text('body'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.route, table.key] }),
    check('idempotency_key__state__ck', sql`${table.state} in (${oneOf(IDEMPOTENCY_STATES)})`),
    check('idempotency_key__fingerprint__ck', sql`octet_length(${table.fingerprint}) = 32`),
    // The periodic sweep checks by this index whether a charge or a refund was requested with a key.
    index('idempotency_key__command__idx').on(table.merchantId, table.commandId),
    index('idempotency_key__expiry__idx').on(table.expiresAt),
  ],
);

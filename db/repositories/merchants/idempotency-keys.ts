import { createHash, randomUUID } from 'node:crypto';
import { and, eq, isNull, lte, or, sql } from 'drizzle-orm';
import { DomainError } from '../../../domain/errors.ts';
import { commandIdFrom, idOfCommand } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { idempotencyKeys } from '../../schema/merchants.ts';
import { paymentIntents, refunds } from '../../schema/payments.ts';
import { hasValues, isRecord } from '../records.ts';

const DAY_MS = 86_400_000;
/** Lifetime of a key. */
export const KEY_LIFETIME_MS = 45 * DAY_MS;
/** Lifetime of a key whose stored answer is a declined charge. The lifetime is short, because no money moved. */
export const DECLINED_KEY_LIFETIME_MS = DAY_MS;
/** Length of a call's lease on its key, longer than any call may take (35 s). */
export const KEY_LEASE_MS = 45_000;

/** The key of one request, with its scope (merchant and route) and fingerprint. */
export interface KeyUse {
  merchantId: string;
  /** Method and route template. */
  route: string;
  key: string;
  /** SHA-256 of the request. */
  fingerprint: Buffer;
}

/** The kinds of orders: a payment intent, and a refund. */
export type OrderPrefix = 'in' | 'rf';

export interface StoredAnswer {
  status: number;
  /** The exact text of the answer. */
  text: string;
}

/**
 * `mine`: the caller must do the work, and pass `owner` to every later write of the key. `commandId` stays the same
 * until the key expires. `isRepeat`: an earlier call has claimed the key.
 */
export type Claim =
  | { kind: 'mine'; owner: string; commandId: string; isRepeat: boolean }
  | { kind: 'stored'; answer: StoredAnswer };

/**
 * Claims a new or expired key, or one of the same request without answer and lease. With `orderPrefix` the command id
 * is derived from the key, also in a restored database.
 * @throws DomainError `idempotency_key_reused`, `idempotency_key_in_use`.
 */
export async function claimKey(
  db: Db,
  use: KeyUse,
  newCommandId: string,
  nowAt: number,
  orderPrefix?: OrderPrefix,
): Promise<Claim> {
  const owner = randomUUID();
  const orderId = orderPrefix && idOfCommand(orderPrefix, derivedCommandId(use));
  const commandId =
    orderId === undefined || (await isTaken(db, use.merchantId, orderId, nowAt))
      ? newCommandId
      : derivedCommandId(use);
  const now = new Date(nowAt).toISOString();
  const isPast = sql`${idempotencyKeys.expiresAt} <= ${now}`;
  const isAbandoned = sql`(${idempotencyKeys.state} = 'IN_FLIGHT'
    and ${idempotencyKeys.fingerprint} = excluded.fingerprint
    and ${idempotencyKeys.lockedUntil} <= ${now})`;
  const [mine] = await db
    .insert(idempotencyKeys)
    .values({
      ...use,
      state: 'IN_FLIGHT',
      owner,
      lockedUntil: nowAt + KEY_LEASE_MS,
      commandId,
      createdAt: nowAt,
      expiresAt: nowAt + KEY_LIFETIME_MS,
    })
    .onConflictDoUpdate({
      target: [idempotencyKeys.merchantId, idempotencyKeys.route, idempotencyKeys.key],
      set: {
        owner,
        fingerprint: use.fingerprint,
        state: 'IN_FLIGHT',
        lockedUntil: nowAt + KEY_LEASE_MS,
        commandId: sql`case when ${isPast} then excluded.command_id else ${idempotencyKeys.commandId} end`,
        httpStatus: null,
        body: null,
        expiresAt: nowAt + KEY_LIFETIME_MS,
      },
      setWhere: sql`${isPast} or ${isAbandoned}`,
    })
    .returning({
      commandId: idempotencyKeys.commandId,
      isKnown: sql<boolean>`${idempotencyKeys}.xmax <> 0`,
    });
  if (mine) {
    const isRepeat = mine.isKnown && mine.commandId !== newCommandId;
    return { kind: 'mine', owner, commandId: mine.commandId, isRepeat };
  }
  return { kind: 'stored', answer: await storedAnswer(db, use) };
}

function derivedCommandId({ merchantId, route, key }: KeyUse): string {
  const hash = createHash('sha256').update(JSON.stringify([merchantId, route, key]), 'utf8');
  return commandIdFrom(hash.digest());
}

async function isTaken(
  db: Db,
  merchantId: string,
  orderId: string,
  nowAt: number,
): Promise<boolean> {
  const orders = orderId.startsWith('rf_') ? refunds : paymentIntents;
  const isKeyGone = or(isNull(orders.adoptedAt), lte(orders.adoptedAt, nowAt - KEY_LIFETIME_MS));
  return (await db.$count(orders, and(isRecord(orders, merchantId, orderId), isKeyGone))) > 0;
}

async function storedAnswer(db: Db, use: KeyUse): Promise<StoredAnswer> {
  const [row] = await db.select().from(idempotencyKeys).where(isKey(use));
  if (row && !row.fingerprint.equals(use.fingerprint)) {
    throw new DomainError('idempotency_key_reused');
  }
  if (row?.state !== 'DONE' || row.httpStatus === null || row.body === null) {
    throw new DomainError('idempotency_key_in_use', undefined, { retryAfterSeconds: 1 });
  }
  return { status: row.httpStatus, text: row.body };
}

/** Stores the definite answer, for 45 days by default. Does nothing if another call has the key now. */
export async function storeAnswer(
  db: Db,
  use: KeyUse,
  owner: string,
  { status: httpStatus, text: body }: StoredAnswer,
  expiresAt?: number,
): Promise<void> {
  await db
    .update(idempotencyKeys)
    .set({ httpStatus, body, state: 'DONE', ...(expiresAt === undefined ? {} : { expiresAt }) })
    .where(and(isKey(use), eq(idempotencyKeys.owner, owner)));
}

/** Ends the lease without an answer. The next call with this key continues under the same command id. */
export async function releaseKey(db: Db, use: KeyUse, owner: string, nowAt: number): Promise<void> {
  await db
    .update(idempotencyKeys)
    .set({ lockedUntil: nowAt })
    .where(and(isKey(use), eq(idempotencyKeys.owner, owner)));
}

/** Deletes the key of a call that executed nothing, unless another call has claimed it. */
export async function deleteKey(db: Db, use: KeyUse, owner: string): Promise<void> {
  await db.delete(idempotencyKeys).where(and(isKey(use), eq(idempotencyKeys.owner, owner)));
}

function isKey(use: KeyUse) {
  return hasValues(idempotencyKeys, { merchantId: use.merchantId, route: use.route, key: use.key });
}

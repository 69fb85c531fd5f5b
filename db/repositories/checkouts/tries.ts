import { createHash } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { checkoutSessions, checkoutTries } from '../../schema/checkouts.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord, timestamp } from '../records.ts';
import { METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';

export interface SessionRef {
  merchantId: string;
  sessionId: string;
}

/** Records that the gateway's card page is about to be opened for the session. A repeat is safe. */
export async function recordCardPage(db: Db, ref: SessionRef, gateway: string): Promise<void> {
  await db
    .update(checkoutSessions)
    .set({ gateways: sql`array_append(${checkoutSessions.gateways}, ${gateway})` })
    .where(and(isSession(ref), sql`not ${gateway} = any(${checkoutSessions.gateways})`));
}

/**
 * Returns the gateways whose card pages were opened for the session, the first one first, and when the payer entered the
 * card that the session replaces; null: none, or it was imported.
 */
export async function findCardSession(db: Db, ref: SessionRef) {
  const [row] = await db
    .select({
      purpose: checkoutSessions.purpose,
      expiresAt: checkoutSessions.expiresAt,
      gateways: checkoutSessions.gateways,
      presentEnteredAt: paymentMethods.enteredAt,
    })
    .from(checkoutSessions)
    .leftJoin(
      subscriptions,
      and(
        eq(checkoutSessions.purpose, 'update_method'),
        isRecord(subscriptions, checkoutSessions.merchantId, checkoutSessions.subscriptionId),
      ),
    )
    .leftJoin(paymentMethods, METHOD_OF_SUBSCRIPTION)
    .where(isSession(ref));
  return row ?? null;
}

/** One try with a card. A reload of the return page has the same `key`, so the reload is the same try. */
export interface TryRef extends SessionRef {
  key: Buffer;
}

/** `text`: the gateway's one-time token, or a refused card's decline code and refusal id. */
export function tryKey(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/** Returns a try that was admitted before; null for a new try. */
export async function findTry(db: Db, ref: TryRef): Promise<{ errorCode: string | null } | null> {
  const { merchantId, sessionId, key } = ref;
  const [row] = await db
    .select({ errorCode: checkoutTries.errorCode })
    .from(checkoutTries)
    .where(hasValues(checkoutTries, { merchantId, sessionId, key }));
  return row ?? null;
}

/**
 * Counts and admits a try; false if the session has `limit` tries or does not exist. A repeat of an admitted try returns
 * true and is not counted. `nowAt` is real time.
 */
export async function admitTry(
  db: Db,
  ref: TryRef,
  { limit, nowAt }: { limit: number; nowAt: number },
): Promise<boolean> {
  const { merchantId, sessionId, key } = ref;
  // The lock serialises the tries of one session, so concurrent tries cannot exceed the limit.
  const admitted = await db.execute(sql`
    with session as (
      select merchant_id, id from checkout_session
      where merchant_id = ${merchantId} and id = ${sessionId} and tries < ${limit}
      for no key update
    ), admitted as (
      insert into checkout_try (merchant_id, session_id, key, created_at)
      select merchant_id, id, ${key}::bytea, ${timestamp(nowAt)}
      from session
      on conflict do nothing
      returning merchant_id, session_id
    )
    update checkout_session s set tries = tries + 1
    from admitted a where (s.merchant_id, s.id) = (a.merchant_id, a.session_id)
    returning s.id`);
  return admitted.length > 0 || (await findTry(db, ref)) !== null;
}

/** Records that the try failed. True for the first call, false for a repeat. */
export async function declineTry(db: Db, ref: TryRef, errorCode: string): Promise<boolean> {
  const { merchantId, sessionId, key } = ref;
  // Locks the session before the try, as `admitTry` does. In another order the two could deadlock.
  const declined = await db.execute(sql`
    with session as (
      select merchant_id, id from checkout_session
      where merchant_id = ${merchantId} and id = ${sessionId}
      for no key update
    ), declined as (
      update checkout_try t set error_code = ${errorCode}
      from session s
      where (t.merchant_id, t.session_id) = (s.merchant_id, s.id)
        and t.key = ${key}::bytea and t.error_code is null
      returning t.merchant_id, t.session_id
    )
    update checkout_session s set last_error_code = ${errorCode}
    from declined d where (s.merchant_id, s.id) = (d.merchant_id, d.session_id)
    returning s.id`);
  return declined.length > 0;
}

export function isSession(ref: SessionRef) {
  return isRecord(checkoutSessions, ref.merchantId, ref.sessionId);
}

import { createHash } from 'node:crypto';
import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { checkoutSessions, checkoutTries } from '../../schema/checkouts.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';
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
  const [row] = await db
    .select({ errorCode: checkoutTries.errorCode })
    .from(checkoutTries)
    .where(isTry(ref));
  return row ?? null;
}

/**
 * Counts and admits a try; false if the session has `limit` tries. A repeat of an admitted try returns true and is not
 * counted. `nowAt` is real time.
 */
export async function admitTry(
  db: Db,
  ref: TryRef,
  { limit, nowAt }: { limit: number; nowAt: number },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // The row's lock serialises the tries of one session, so concurrent tries cannot exceed the limit.
    const [session] = await tx
      .select({ tries: checkoutSessions.tries })
      .from(checkoutSessions)
      .where(isSession(ref))
      .for('no key update');
    if (!session) throw new Error(`no session ${ref.sessionId}`);
    if (await findTry(tx, ref)) return true;
    if (session.tries >= limit) return false;
    await tx.insert(checkoutTries).values({ ...ref, createdAt: nowAt });
    await tx
      .update(checkoutSessions)
      .set({ tries: sql`${checkoutSessions.tries} + 1` })
      .where(isSession(ref));
    return true;
  });
}

/** Records that the try failed. True for the first call, false for a repeat. */
export async function declineTry(db: Db, ref: TryRef, errorCode: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const settled = await tx
      .update(checkoutTries)
      .set({ errorCode })
      .where(and(isTry(ref), isNull(checkoutTries.errorCode)))
      .returning({ key: checkoutTries.key });
    if (settled.length === 0) return false;
    await tx.update(checkoutSessions).set({ lastErrorCode: errorCode }).where(isSession(ref));
    return true;
  });
}

function isTry(ref: TryRef) {
  return hasValues(checkoutTries, {
    merchantId: ref.merchantId,
    sessionId: ref.sessionId,
    key: ref.key,
  });
}

export function isSession(ref: SessionRef) {
  return isRecord(checkoutSessions, ref.merchantId, ref.sessionId);
}

import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db } from '../client.ts';
import { checkoutSessions } from '../schema/checkout-sessions.ts';
import { checkoutTries } from '../schema/checkout-tries.ts';

/** How everything on a hosted page names its session. */
export interface SessionRef {
  merchantId: string;
  sessionId: string;
}

/** One try with a card; `key` is the same whenever its return address is loaded. */
export interface TryRef extends SessionRef {
  key: Buffer;
}

/** A try that was admitted before, with why it did not go through; null for one that is new. */
export async function findTry(db: Db, ref: TryRef): Promise<{ errorCode: string | null } | null> {
  const [row] = await db
    .select({ errorCode: checkoutTries.errorCode })
    .from(checkoutTries)
    .where(isTry(ref));
  return row ?? null;
}

/**
 * Counts the try, once. False when the session had `limit` tries before, and then it is not counted;
 * true again for a try that was admitted already. `nowAt` is real time.
 */
export async function admitTry(
  db: Db,
  ref: TryRef,
  { limit, nowAt }: { limit: number; nowAt: number },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // Tries of one session queue here, so that no two of them are the last one.
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

/** The try did not go through. True the first time this is said of it. */
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
  return and(
    eq(checkoutTries.merchantId, ref.merchantId),
    eq(checkoutTries.sessionId, ref.sessionId),
    eq(checkoutTries.key, ref.key),
  );
}

/** Of the row of this session. */
export function isSession(ref: SessionRef) {
  return and(
    eq(checkoutSessions.merchantId, ref.merchantId),
    eq(checkoutSessions.id, ref.sessionId),
  );
}

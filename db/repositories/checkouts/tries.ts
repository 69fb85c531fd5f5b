import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkout-sessions.ts';
import { checkoutTries } from '../../schema/checkout-tries.ts';

/** Identifies the session of a hosted page. */
export interface SessionRef {
  merchantId: string;
  sessionId: string;
}

/** One try with a card. `key` stays the same when the payer loads the return address again. */
export interface TryRef extends SessionRef {
  key: Buffer;
}

/** A try that was admitted before, with its error code. Null for a new try. */
export async function findTry(db: Db, ref: TryRef): Promise<{ errorCode: string | null } | null> {
  const [row] = await db
    .select({ errorCode: checkoutTries.errorCode })
    .from(checkoutTries)
    .where(isTry(ref));
  return row ?? null;
}

/**
 * Counts a try once. False if the session already had `limit` tries; then the try is not counted. True
 * for a try that was admitted before. `nowAt` is real time.
 */
export async function admitTry(
  db: Db,
  ref: TryRef,
  { limit, nowAt }: { limit: number; nowAt: number },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // This lock serialises the tries of one session, so two tries cannot both be the last allowed one.
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

/** Records that the try failed. True the first time only. */
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

/** Selects the row of this session. */
export function isSession(ref: SessionRef) {
  return and(
    eq(checkoutSessions.merchantId, ref.merchantId),
    eq(checkoutSessions.id, ref.sessionId),
  );
}

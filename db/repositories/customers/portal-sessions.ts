import { and, eq, gt, isNull } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import { portalSessions } from '../../schema/portal-sessions.ts';
import { isRecord } from '../records.ts';

type NewSession = Omit<typeof portalSessions.$inferSelect, 'browserHash'>;

export async function insertPortalSession(db: Db, session: NewSession): Promise<void> {
  await db.insert(portalSessions).values(session);
}

export type PortalSession = NonNullable<Awaited<ReturnType<typeof findPortalSession>>>;

export async function findPortalSession(db: Db, tokenHash: Buffer) {
  const [row] = await db
    .select({
      session: portalSessions,
      merchant: { id: merchants.id, name: merchants.name, settings: merchants.settings },
    })
    .from(portalSessions)
    .innerJoin(merchants, eq(merchants.id, portalSessions.merchantId))
    .where(eq(portalSessions.tokenHash, tokenHash));
  return row ?? null;
}

/** Gives the session to a browser, unless another one has it or it has expired. */
export async function claimPortalSession(
  db: Db,
  { merchantId, id }: Pick<NewSession, 'merchantId' | 'id'>,
  browserHash: Buffer,
  nowAt: number,
): Promise<void> {
  const { browserHash: owner, expiresAt } = portalSessions;
  await db
    .update(portalSessions)
    .set({ browserHash })
    .where(and(isRecord(portalSessions, merchantId, id), isNull(owner), gt(expiresAt, nowAt)));
}

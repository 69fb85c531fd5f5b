import { createHmac, randomBytes } from 'node:crypto';
import { and, asc, eq, gt, isNull, or, getTableColumns } from 'drizzle-orm';
import { randomToken } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { credentials, merchants } from '../../schema/merchants.ts';
import type { MerchantMode } from '../../schema/merchants.ts';

/** 43 base62 characters hold 256 bits. */
const SECRET_LENGTH = 43;

/** Time in ms for which the old credential stays valid after a rotation. */
export const ROTATION_OVERLAP_MS = 24 * 3_600_000;

/** A new credential. The database stores only a hash of the secret. */
export interface IssuedCredential {
  keyId: string;
  secret: string;
}

export type Credential = Awaited<ReturnType<typeof listCredentials>>[number];

/** Returns the stored form of a secret: HMAC-SHA256 under the server's pepper, 32 bytes. */
export function hashSecret(pepper: string, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret, 'utf8').digest();
}

/** Returns also a revoked or expired credential; null for an unknown key id. */
export async function findCredential(db: Db, keyId: string): Promise<Credential | null> {
  const [row] = await selectCredentials(db).where(eq(credentials.keyId, keyId));
  return row ?? null;
}

/** Returns all credentials, revoked and expired ones included, oldest first. */
export async function listCredentials(db: Db) {
  return selectCredentials(db).orderBy(asc(credentials.createdAt), asc(credentials.keyId));
}

function selectCredentials(db: Db) {
  return db
    .select({ ...getTableColumns(credentials), mode: merchants.mode })
    .from(credentials)
    .innerJoin(merchants, eq(merchants.id, credentials.merchantId));
}

export async function issueCredential(
  db: Db,
  order: { merchantId: string; mode: MerchantMode; pepper: string; nowAt: number },
): Promise<IssuedCredential> {
  const { merchantId, mode, pepper, nowAt } = order;
  const keyId = `mk_${mode}_${randomToken(randomBytes)}`;
  const secret = `sk_${mode}_${randomToken(randomBytes, SECRET_LENGTH)}`;
  await db.insert(credentials).values({
    keyId,
    merchantId,
    secretHash: hashSecret(pepper, secret),
    createdAt: nowAt,
  });
  return { keyId, secret };
}

/**
 * Replaces a credential. The new credential is valid at once; the old credential stays valid for 24 h. Changes
 * nothing and returns null if the credential is unknown, revoked or already replaced.
 */
export async function rotateCredential(
  db: Db,
  order: { keyId: string; pepper: string; nowAt: number },
): Promise<IssuedCredential | null> {
  const { keyId, pepper, nowAt } = order;
  return db.transaction(async (tx) => {
    const [ending] = await tx
      .update(credentials)
      .set({ expiresAt: nowAt + ROTATION_OVERLAP_MS })
      .where(and(isKey(keyId), isNull(credentials.revokedAt), isNull(credentials.expiresAt)))
      .returning({ merchantId: credentials.merchantId });
    if (!ending) return null;
    const found = await findCredential(tx, keyId);
    if (!found) return null;
    return issueCredential(tx, { ...ending, mode: found.mode, pepper, nowAt });
  });
}

/** Revokes a credential at once. False if no valid credential has this id. */
export async function revokeCredential(db: Db, keyId: string, nowAt: number): Promise<boolean> {
  const revoked = await db
    .update(credentials)
    .set({ revokedAt: nowAt })
    .where(
      and(
        isKey(keyId),
        isNull(credentials.revokedAt),
        or(isNull(credentials.expiresAt), gt(credentials.expiresAt, nowAt)),
      ),
    )
    .returning({ keyId: credentials.keyId });
  return revoked.length > 0;
}

function isKey(keyId: string) {
  return eq(credentials.keyId, keyId);
}

import { createHmac, randomBytes } from 'node:crypto';
import { and, asc, eq, gt, isNull, or } from 'drizzle-orm';
import { randomToken } from '../../domain/ids.ts';
import type { Db } from '../client.ts';
import { credentials } from '../schema/credentials.ts';
import { merchants } from '../schema/merchants.ts';
import type { MerchantMode } from '../schema/merchants.ts';

/** Which pepper hashed a secret. There is one so far. */
const PEPPER_VERSION = 1;

/** 43 base62 characters hold 256 bits. Rule: D-20. */
const SECRET_LENGTH = 43;

/** How long the old credential works beside the one that replaces it. Rule: D-20. */
export const ROTATION_OVERLAP_MS = 24 * 3_600_000;

/** A credential as its owner gets it: the secret exists nowhere else afterwards. */
export interface IssuedCredential {
  keyId: string;
  secret: string;
}

export interface Credential {
  keyId: string;
  merchantId: string;
  mode: MerchantMode;
  secretHash: Buffer;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
}

/** What is kept of a secret: HMAC-SHA256 under the server's pepper, 32 bytes. Rule: D-20. */
export function hashSecret(pepper: string, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret, 'utf8').digest();
}

/** The credential of a key id, whatever its state, or null. */
export async function findCredential(db: Db, keyId: string): Promise<Credential | null> {
  const [row] = await selectCredentials(db).where(eq(credentials.keyId, keyId));
  return row ?? null;
}

/** Every credential that still works or ever worked, oldest first. */
export async function listCredentials(db: Db): Promise<Credential[]> {
  return selectCredentials(db).orderBy(asc(credentials.createdAt), asc(credentials.keyId));
}

function selectCredentials(db: Db) {
  return db
    .select({
      keyId: credentials.keyId,
      merchantId: credentials.merchantId,
      mode: merchants.mode,
      secretHash: credentials.secretHash,
      createdAt: credentials.createdAt,
      expiresAt: credentials.expiresAt,
      revokedAt: credentials.revokedAt,
    })
    .from(credentials)
    .innerJoin(merchants, eq(merchants.id, credentials.merchantId));
}

export interface CredentialOrder {
  merchantId: string;
  mode: MerchantMode;
  pepper: string;
  nowAt: number;
}

/** Makes another credential for a merchant. */
export async function issueCredential(db: Db, order: CredentialOrder): Promise<IssuedCredential> {
  const { merchantId, mode, pepper, nowAt } = order;
  const keyId = `mk_${mode}_${randomToken(randomBytes)}`;
  const secret = `sk_${mode}_${randomToken(randomBytes, SECRET_LENGTH)}`;
  await db.insert(credentials).values({
    keyId,
    merchantId,
    secretHash: hashSecret(pepper, secret),
    pepperVersion: PEPPER_VERSION,
    createdAt: nowAt,
  });
  return { keyId, secret };
}

/**
 * Replaces a credential: the new one works at once, the old one for 24 h more. Null, and no change,
 * for an unknown one and for one that was revoked or replaced before. Rule: D-20.
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

/** Ends a credential now. False when there is no such credential that still works. */
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

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { and, asc, eq, getColumns, gt, isNull, lt, notInArray, or } from 'drizzle-orm';
import { randomToken } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { credentials, merchants } from '../../schema/merchants.ts';
import type { MerchantMode } from '../../schema/merchants.ts';

/** 43 base62 characters hold 256 bits. */
const SECRET_LENGTH = 43;

/** Time in ms for which the old credential stays valid after a rotation. */
export const ROTATION_OVERLAP_MS = 24 * 3_600_000;

/** The latest use of a credential is written at most once in this time, in ms. */
const USE_INTERVAL_MS = 60_000;

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

/** Returns 8 bytes that tell which pepper hashed a secret. */
export function pepperIdOf(pepper: string): Buffer {
  return createHash('sha256').update('credential-pepper-id').update(pepper).digest().subarray(0, 8);
}

/** Returns null unless working credentials were hashed with none of these peppers; then the reason to refuse. */
export async function missingPeppers(db: Db, peppers: readonly string[]): Promise<string | null> {
  const isForeign = notInArray(credentials.pepperId, peppers.map(pepperIdOf));
  const count = await db.$count(credentials, and(isForeign, isWorking(Date.now())));
  if (count === 0) return null;
  return (
    `CREDENTIAL_PEPPER: ${count} working credentials were made with another value. ` +
    'Append this value after a comma, or revoke the credentials.'
  );
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
    .select({ ...getColumns(credentials), mode: merchants.mode })
    .from(credentials)
    .innerJoin(merchants, eq(merchants.id, credentials.merchantId));
}

export interface CredentialOrder {
  readonly merchantId: string;
  readonly mode: MerchantMode;
  readonly pepper: string;
  readonly nowAt: number;
  readonly isReadOnly?: boolean;
  /** Absent or null: the credential works until it is revoked. */
  readonly expiresAt?: number | null;
}

export async function issueCredential(
  db: Db,
  { mode, pepper, nowAt, ...rest }: CredentialOrder,
): Promise<IssuedCredential> {
  const keyId = `mk_${mode}_${randomToken(randomBytes)}`;
  const secret = `sk_${mode}_${randomToken(randomBytes, SECRET_LENGTH)}`;
  await db
    .insert(credentials)
    .values({ ...rest, keyId, ...hashed(pepper, secret), createdAt: nowAt });
  return { keyId, secret };
}

/**
 * Replaces a credential by one of the same scope, and of the same expiry unless `expiresAt` is given. The new one is
 * valid at once; the old one for 24 h more, at most until its expiry. Changes nothing and returns null if the
 * credential is unknown, revoked, expired or already replaced.
 */
export async function rotateCredential(
  db: Db,
  order: { keyId: string; pepper: string; nowAt: number; expiresAt?: number },
): Promise<(IssuedCredential & { merchantId: string; formerUntil: number }) | null> {
  const { keyId, pepper, nowAt } = order;
  return db.transaction(async (tx) => {
    const [old] = await selectCredentials(tx)
      .where(and(isKey(keyId), isWorking(nowAt), isNull(credentials.replacedAt)))
      .for('update', { of: credentials });
    if (!old) return null;
    const { merchantId, mode, isReadOnly, expiresAt } = old;
    const formerUntil = Math.min(expiresAt ?? Infinity, nowAt + ROTATION_OVERLAP_MS);
    await tx
      .update(credentials)
      .set({ expiresAt: formerUntil, replacedAt: nowAt })
      .where(isKey(keyId));
    const like = { merchantId, mode, isReadOnly, expiresAt: order.expiresAt ?? expiresAt };
    const issued = await issueCredential(tx, { ...like, pepper, nowAt });
    return { ...issued, merchantId, formerUntil };
  });
}

/** Revokes a credential at once. Returns its merchant; null if no valid credential has this id. */
export async function revokeCredential(
  db: Db,
  keyId: string,
  nowAt: number,
): Promise<string | null> {
  const [revoked] = await db
    .update(credentials)
    .set({ revokedAt: nowAt })
    .where(and(isKey(keyId), isWorking(nowAt)))
    .returning({ merchantId: credentials.merchantId });
  return revoked?.merchantId ?? null;
}

/** Records a use, at most once a minute for all processes, and hashes the secret with `pepper` from then on. */
export async function recordUse(
  db: Db,
  use: { keyId: string; secret: string; pepper: string; nowAt: number },
): Promise<void> {
  const { keyId, secret, pepper, nowAt } = use;
  const { lastUsedAt } = credentials;
  await db
    .update(credentials)
    .set({ lastUsedAt: nowAt, ...hashed(pepper, secret) })
    .where(and(isKey(keyId), or(isNull(lastUsedAt), lt(lastUsedAt, nowAt - USE_INTERVAL_MS))));
}

/** False while the latest use that is recorded is less than a minute ago. */
export function isUseDue({ lastUsedAt }: Credential, nowAt: number): boolean {
  return lastUsedAt === null || lastUsedAt < nowAt - USE_INTERVAL_MS;
}

function hashed(pepper: string, secret: string) {
  return { secretHash: hashSecret(pepper, secret), pepperId: pepperIdOf(pepper) };
}

function isWorking(nowAt: number) {
  const { revokedAt, expiresAt } = credentials;
  return and(isNull(revokedAt), or(isNull(expiresAt), gt(expiresAt, nowAt)));
}

function isKey(keyId: string) {
  return eq(credentials.keyId, keyId);
}

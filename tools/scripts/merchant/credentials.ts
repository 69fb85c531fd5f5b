import {
  issueCredential,
  listCredentials,
  revokeCredential,
  rotateCredential,
} from '../../../db/repositories/merchants/credentials.ts';
import type { Credential } from '../../../db/repositories/merchants/credentials.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { minuteText } from '../client/terminal.ts';
import type { Place, Report } from './place.ts';

export interface CredentialOptions {
  readonly readOnly?: boolean;
  readonly expires?: number;
}

export async function add(
  { db, pepper }: Place,
  keyId: string,
  { readOnly: isReadOnly = false, expires: expiresAt }: CredentialOptions,
): Promise<Report> {
  requireFuture(expiresAt);
  const known = (await listCredentials(db)).find((credential) => credential.keyId === keyId);
  if (known === undefined) throw new Error(`There is no credential ${keyId}.`);
  const { merchantId, mode } = known;
  const order = { merchantId, mode, isReadOnly, expiresAt: expiresAt ?? null };
  const made = await issueCredential(db, { ...order, pepper: await pepper(), nowAt: Date.now() });
  return { lines: [`Another credential of ${merchantId}.`, ...secretLines(made)], data: made };
}

export async function rotate(
  { db, pepper }: Place,
  keyId: string,
  { expires: expiresAt }: CredentialOptions,
): Promise<Report> {
  requireFuture(expiresAt);
  const order = { keyId, pepper: await pepper(), nowAt: Date.now() };
  const made = await rotateCredential(db, {
    ...order,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });
  if (made === null) {
    throw new Error(
      `${keyId} cannot be replaced: it is unknown, revoked, expired or already replaced.`,
    );
  }
  const { formerUntil, ...issued } = made;
  return {
    lines: [`${keyId} works until ${formatInstant(formerUntil)}.`, ...secretLines(issued)],
    data: { ...issued, replaces: keyId },
  };
}

export async function revoke({ db }: Place, keyId: string): Promise<Report> {
  const isRevoked = await revokeCredential(db, keyId, Date.now());
  if (!isRevoked) throw new Error(`There is no working credential ${keyId}.`);
  return { lines: [`${keyId} is revoked.`], data: { revoked: keyId } };
}

export function secretLines({ keyId, secret }: { keyId: string; secret: string }): string[] {
  return [`  user      ${keyId}`, `  password  ${secret}`, 'The password is not shown again.'];
}

export function shownCredential(credential: Credential) {
  const { keyId, isReadOnly, lastUsedAt } = credential;
  return {
    keyId,
    state: stateOf(credential),
    access: isReadOnly ? 'read only' : 'full',
    lastUsedAt: lastUsedAt === null ? null : formatInstant(lastUsedAt),
  };
}

export function credentialLine(shown: ReturnType<typeof shownCredential>): string {
  const { keyId, state, access, lastUsedAt } = shown;
  const used =
    lastUsedAt === null ? 'never used' : `last used ${minuteText(Date.parse(lastUsedAt))} UTC`;
  return `    ${keyId}  ${state}  ${access}  ${used}`;
}

function requireFuture(expiresAt: number | undefined): void {
  if (expiresAt !== undefined && expiresAt <= Date.now()) {
    throw new Error('--expires must be an instant in the future.');
  }
}

function stateOf({ revokedAt, expiresAt }: Credential): string {
  if (revokedAt !== null) return `revoked ${formatInstant(revokedAt)}`;
  if (expiresAt === null) return 'works';
  return `${Date.now() < expiresAt ? 'works until' : 'ended'} ${formatInstant(expiresAt)}`;
}

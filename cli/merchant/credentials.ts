import type { Command } from 'commander';
import {
  issueCredential,
  findCredential,
  revokeCredential,
  rotateCredential,
} from '../../db/repositories/merchants/credentials.ts';
import type { Credential } from '../../db/repositories/merchants/credentials.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { instantOption } from '../command-line/options.ts';
import { minuteText } from '../command-line/terminal.ts';
import type { Place, Report } from './place.ts';

interface CredentialOptions {
  readonly readOnly?: boolean;
  readonly expires?: number;
}

export function addCredentialCommands(
  program: Command,
  run: (command: (place: Place) => Promise<Report>) => Promise<void>,
): void {
  program
    .command('add <keyId>')
    .description('create another credential for the same merchant')
    .option('--read-only', 'the credential may only read')
    .option('--expires <instant>', 'the credential works until then', instantOption)
    .action((keyId: string, options: CredentialOptions) =>
      run((place) => add(place, keyId, options)),
    );
  program
    .command('rotate <keyId>')
    .description('replace a credential by one like it; the old one stays valid for 24 hours')
    .option('--expires <instant>', 'another expiry of the new one', instantOption)
    .action((keyId: string, options: CredentialOptions) =>
      run((place) => rotate(place, keyId, options)),
    );
  program
    .command('revoke <keyId>')
    .description('revoke a credential; it becomes invalid within 5 seconds')
    .action((keyId: string) => run((place) => revoke(place, keyId)));
}

async function add(
  { db, pepper, record }: Place,
  keyId: string,
  { readOnly: isReadOnly = false, expires: expiresAt }: CredentialOptions,
): Promise<Report> {
  requireFuture(expiresAt);
  const known = await findCredential(db, keyId);
  if (known === null) throw new Error(`There is no credential ${keyId}.`);
  const { merchantId, mode } = known;
  const limits = { isReadOnly, expiresAt: expiresAt ?? null };
  const order = { merchantId, mode, ...limits, pepper: await pepper(), nowAt: Date.now() };
  const made = await db.transaction(async (tx) => {
    const issued = await issueCredential(tx, order);
    await record(tx, {
      command: 'merchant add',
      subject: issued.keyId,
      merchantId,
      facts: {
        isReadOnly,
        ...(expiresAt === undefined ? {} : { expires: formatInstant(expiresAt) }),
      },
    });
    return issued;
  });
  return { lines: [`Another credential of ${merchantId}.`, ...secretLines(made)], data: made };
}

async function rotate(
  { db, pepper, record }: Place,
  keyId: string,
  { expires: expiresAt }: CredentialOptions,
): Promise<Report> {
  requireFuture(expiresAt);
  const order = { keyId, pepper: await pepper(), nowAt: Date.now() };
  const made = await db.transaction(async (tx) => {
    const issued = await rotateCredential(tx, {
      ...order,
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
    if (issued !== null) {
      const { merchantId } = issued;
      const facts = { replacedBy: issued.keyId };
      await record(tx, { command: 'merchant rotate', subject: keyId, merchantId, facts });
    }
    return issued;
  });
  if (made === null) {
    throw new Error(
      `${keyId} cannot be replaced: it is unknown, revoked, expired or already replaced.`,
    );
  }
  const { formerUntil, merchantId: _, ...issued } = made;
  return {
    lines: [`${keyId} works until ${formatInstant(formerUntil)}.`, ...secretLines(issued)],
    data: { ...issued, replaces: keyId },
  };
}

async function revoke({ db, record }: Place, keyId: string): Promise<Report> {
  await db.transaction(async (tx) => {
    const merchantId = await revokeCredential(tx, keyId, Date.now());
    if (merchantId === null) throw new Error(`There is no working credential ${keyId}.`);
    await record(tx, { command: 'merchant revoke', subject: keyId, merchantId, facts: {} });
  });
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

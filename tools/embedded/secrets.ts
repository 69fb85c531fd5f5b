import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** The first four have the names of their environment variables. */
export type EmbeddedSecrets = ReturnType<typeof newSecrets>;

const newKey = (): string => randomBytes(32).toString('base64url');
const newSecrets = () => ({
  GATEWAY_KEY: newKey(),
  CREDENTIAL_PEPPER: newKey(),
  SESSION_KEY: newKey(),
  ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  postgresPassword: newKey(),
});

/** Adds missing secrets. An existing secret never changes: rows in the database depend on it. */
export function loadOrMakeSecrets(file: string): EmbeddedSecrets {
  const kept = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as Partial<EmbeddedSecrets>)
    : {};
  const secrets: EmbeddedSecrets = { ...newSecrets(), ...kept };
  if (Object.keys(secrets).some((name) => !(name in kept))) writeForOwner(file, secrets);
  return secrets;
}

/** Writes a JSON file that only its owner can read. A reader sees the old or the new content. */
export function writeForOwner(file: string, content: object): void {
  mkdirSync(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Sql } from 'postgres';
import { StripeRefusal } from './errors.ts';
import { newId } from './book.ts';

export interface NewAccount {
  readonly secretKey: string;
  readonly webhookUrl: string | null;
  readonly webhookSecret: string | null;
}

/** Registers an account, or changes the account that already has this key. Returns the account's id. */
export async function saveAccount(sql: Sql, account: NewAccount, now: number): Promise<string> {
  const { secretKey, webhookUrl, webhookSecret } = account;
  const [row] = await sql<{ id: string }[]>`
    insert into stripe_double.account (id, key_hash, webhook_url, webhook_secret, created)
    values (${newId('acct')}, ${hash(secretKey)}, ${webhookUrl}, ${webhookSecret}, ${now})
    on conflict (key_hash) do update set
      webhook_url = excluded.webhook_url, webhook_secret = excluded.webhook_secret
    returning id`;
  if (row === undefined) throw new Error('no account was stored');
  return row.id;
}

/** Replaces the account's key. The double refuses the old key from now on. */
export async function replaceKey(sql: Sql, accountId: string, secretKey: string): Promise<void> {
  await sql`update stripe_double.account set key_hash = ${hash(secretKey)} where id = ${accountId}`;
}

/** Refuses a missing, unknown or live key with 401. */
export async function accountOf(sql: Sql, headers: IncomingHttpHeaders): Promise<string> {
  const key = secretKey(headers.authorization ?? '');
  if (key === null) {
    throw unauthorized(
      'You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. Authorization: Bearer YOUR_SECRET_KEY).',
    );
  }
  const [own] = await sql<{ id: string }[]>`
    select id from stripe_double.account where key_hash = ${hash(key)}`;
  if (own === undefined || !/^[sr]k_test_/.test(key)) {
    throw unauthorized(`Invalid API Key provided: ${masked(key)}`);
  }
  return own.id;
}

function secretKey(authorization: string): string | null {
  const [scheme = '', given = ''] = authorization.split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && given !== '' ? given : null;
}

function masked(key: string): string {
  return `${key.slice(0, 8)}${'*'.repeat(8)}${key.slice(-4)}`;
}

function unauthorized(message: string): StripeRefusal {
  return new StripeRefusal(401, { type: 'invalid_request_error', message });
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

import { createHash } from 'node:crypto';
import type { Sql, TransactionSql } from 'postgres';
import { invalid, StripeRefusal } from './errors.ts';

const KEY_LIFETIME_MS = 24 * 3_600_000;
const KEY_LENGTH = 255;

export interface StoredAnswer {
  readonly status: number;
  readonly body: string;
  readonly requestId: string;
}

export interface Claim {
  readonly accountId: string;
  readonly key: string;
  readonly requestId: string;
}

/** Claimed before, stored with the effects. A request that was not executed (401, 429) stores nothing. */
export function createIdempotency(sql: Sql, nowMs: () => number) {
  return {
    /** Null: execute it. Refuses a key of another request with 400, and one in progress with 409. */
    async claim(claim: Claim, request: string): Promise<StoredAnswer | null> {
      const { accountId, key, requestId } = claim;
      if (key.length > KEY_LENGTH) {
        throw invalid(`Idempotency-Key must have at most ${KEY_LENGTH} characters.`);
      }
      const fingerprint = createHash('sha256').update(request).digest('hex');
      await sql`
        delete from stripe_double.idempotency
        where account_id = ${accountId} and key = ${key} and status is not null
          and created_ms <= ${nowMs() - KEY_LIFETIME_MS}`;
      const [own] = await sql`
        insert into stripe_double.idempotency (account_id, key, fingerprint, request_id, created_ms)
        values (${accountId}, ${key}, ${fingerprint}, ${requestId}, ${nowMs()})
        on conflict do nothing returning key`;
      if (own !== undefined) return null;
      const [row] = await sql<IdempotencyRow[]>`
        select fingerprint, request_id, status, body from stripe_double.idempotency
        where account_id = ${accountId} and key = ${key}`;
      // The other request has released its claim between the two statements.
      if (row === undefined) throw inUse(key);
      if (row.fingerprint !== fingerprint) {
        throw new StripeRefusal(400, {
          type: 'idempotency_error',
          message: `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`,
        });
      }
      if (row.status === null || row.body === null) throw inUse(key);
      return { status: row.status, body: row.body, requestId: row.request_id };
    },

    store: async (tx: TransactionSql, { accountId, key }: Claim, status: number, body: string) => {
      await tx`
        update stripe_double.idempotency set status = ${status}, body = ${body}
        where account_id = ${accountId} and key = ${key}`;
    },

    release: async ({ accountId, key }: Claim) => {
      await sql`
        delete from stripe_double.idempotency
        where account_id = ${accountId} and key = ${key} and status is null`;
    },
  };
}

function inUse(key: string): StripeRefusal {
  return new StripeRefusal(409, {
    type: 'idempotency_error',
    code: 'idempotency_key_in_use',
    message: `There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): ${key}. Please try again later.`,
  });
}

interface IdempotencyRow {
  readonly fingerprint: string;
  readonly request_id: string;
  readonly status: number | null;
  readonly body: string | null;
}

import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { Db } from '../../client.ts';

/** Every column with a sealed secret. Bytes 2 to 9 of a sealed secret are the id of its key. */

export type SealedOwner = 'webhook endpoint' | 'gateway account';

/** `isUsed`: SQL, false for secrets that no process reads any more. */
function sealed(owner: SealedOwner, column: string, isUsed: string) {
  const [table, id] =
    owner === 'webhook endpoint' ? ['webhook_config', 'id'] : ['merchant_gateway', 'name'];
  return {
    owner,
    table: sql.identifier(table),
    id: sql.identifier(id),
    column: sql.identifier(column),
    keyId: sql`substring(${sql.identifier(column)} from 2 for 8)`,
    isUsed: sql.raw(isUsed),
  };
}

const SEALED = [
  sealed('webhook endpoint', 'sealed_signer', 'deleted_at is null'),
  sealed(
    'webhook endpoint',
    'sealed_previous_signer',
    'deleted_at is null and previous_signer_until > now()',
  ),
  sealed('gateway account', 'sealed_key', 'true'),
  sealed('gateway account', 'sealed_webhook_secret', 'true'),
  sealed(
    'gateway account',
    'sealed_previous_webhook_secret',
    'previous_webhook_secret_until > now()',
  ),
] as const;

/** Reports once, in one line, how many secrets in use are sealed with none of these keys. Reports nothing if none are. */
export async function reportUnreadableSecrets(
  db: Db,
  keyIds: readonly Buffer[],
  report: (line: string) => void,
): Promise<void> {
  const known = sql.join(
    keyIds.map((id) => sql`${id}`),
    sql`, `,
  );
  const counts = await countSealed(
    db,
    ({ keyId, isUsed }) => sql`${keyId} not in (${known}) and ${isUsed}`,
  );
  const [endpoints, accounts] = (['webhook endpoint', 'gateway account'] as const).map((owner) =>
    counts.filter((one) => one.owner === owner).reduce((sum, { count }) => sum + count, 0),
  );
  if (!endpoints && !accounts) return;
  report(
    `ENCRYPTION_KEY cannot decrypt ${endpoints} secrets of webhook endpoints and ${accounts} of gateway accounts. ` +
      'Their webhooks are not sent and their charges not made. Append the key that encrypted them, after a comma.',
  );
}

/** Returns the number of secrets in use that are not sealed with this key. */
export async function countSealedBefore(db: Db, currentKeyId: Buffer): Promise<number> {
  const counts = await countSealed(
    db,
    ({ keyId, isUsed }) => sql`${keyId} <> ${currentKeyId} and ${isUsed}`,
  );
  return counts.reduce((sum, { count }) => sum + count, 0);
}

async function countSealed(db: Db, which: (secret: (typeof SEALED)[number]) => SQL) {
  const queries = SEALED.map(
    (secret) => sql`select ${secret.owner}::text as owner, count(*)::int as count
      from ${secret.table} where ${which(secret)}`,
  );
  return db.execute<{ owner: SealedOwner; count: number }>(sql.join(queries, sql` union all `));
}

/** A secret's place: `id` is that of the webhook configuration, or the account's name. */
export interface SealedPlace {
  readonly owner: SealedOwner;
  readonly merchantId: string;
  readonly id: string;
}

export interface ResealOrder {
  readonly currentKeyId: Buffer;
  /** Returns null for a secret that cannot be decrypted, which stays as it is. */
  readonly reseal: (place: SealedPlace, stored: Buffer) => Buffer | null;
  readonly batch: number;
  /** Called in the transaction of each batch that has changed secrets. */
  readonly inBatch: (tx: Db, count: number) => Promise<void>;
}

/** Seals anew what another key has sealed. Each batch is one transaction, so a repeat continues. Returns the count. */
export async function resealAll(db: Db, order: ResealOrder): Promise<number> {
  let total = 0;
  for (const secret of SEALED) {
    let after = { merchantId: '', id: '' };
    for (;;) {
      const { count, last } = await db.transaction((tx) => resealBatch(tx, secret, after, order));
      total += count;
      if (last === undefined) break;
      after = last;
    }
  }
  return total;
}

async function resealBatch(
  tx: Db,
  { owner, table, id, column, keyId }: (typeof SEALED)[number],
  after: { merchantId: string; id: string },
  { currentKeyId, reseal, batch, inBatch }: ResealOrder,
) {
  const rows = await tx.execute<{ merchantId: string; id: string; stored: Buffer }>(sql`
    select merchant_id as "merchantId", ${id} as id, ${column} as stored from ${table}
    where ${keyId} <> ${currentKeyId} and (merchant_id, ${id}) > (${after.merchantId}, ${after.id})
    order by merchant_id, ${id} limit ${batch} for no key update`);
  let count = 0;
  for (const { merchantId, id: ownId, stored } of rows) {
    const resealed = reseal({ owner, merchantId, id: ownId }, stored);
    if (resealed === null) continue;
    count += 1;
    await tx.execute(sql`update ${table} set ${column} = ${resealed}
      where merchant_id = ${merchantId} and ${id} = ${ownId}`);
  }
  if (count > 0) await inBatch(tx, count);
  return { count, last: rows.length < batch ? undefined : rows.at(-1) };
}

import { and, eq, exists, inArray, isNotNull, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { accountEventBody } from '../../../domain/events.ts';
import type { StreamRef } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { merchantGateways } from '../../schema/merchants.ts';
import { paymentAttempts } from '../../schema/payments.ts';
import { hasValues } from '../records.ts';
import { appendEvents } from '../webhooks/outbox.ts';

interface Account {
  merchantId: string;
  name: string;
}

const isRefused = (merchantId: AnyPgColumn | string, name: AnyPgColumn | string) =>
  and(
    eq(paymentAttempts.merchantId, merchantId),
    eq(paymentAttempts.gateway, name),
    paymentAttempts.isAccountRefused,
    inArray(paymentAttempts.state, ['SENDING', 'UNSENT']),
  );

/** Finds the accounts whose charges the gateway refuses, or takes again, since the merchant was last told. */
export function findChangedAccounts(db: Db, limit: number): Promise<Account[]> {
  const { merchantId, name, blockedAt } = merchantGateways;
  const refused = db.select().from(paymentAttempts).where(isRefused(merchantId, name));
  return db
    .select({ merchantId, name })
    .from(merchantGateways)
    .where(sql`${exists(refused)} <> ${isNotNull(blockedAt)}`)
    .limit(limit);
}

/** Records what `findChangedAccounts` found, with its event. Null if another call has done so. */
export async function recordAccountChange(
  db: Db,
  { merchantId, name }: Account,
  nowAt: number,
): Promise<StreamRef | null> {
  return db.transaction(async (tx) => {
    const isAccount = hasValues(merchantGateways, { merchantId, name });
    const [account] = await tx.select().from(merchantGateways).where(isAccount).for('update');
    const [refused] = await tx
      .select({ reason: paymentAttempts.reason, sinceAt: paymentAttempts.unansweredAt })
      .from(paymentAttempts)
      .where(isRefused(merchantId, name))
      .orderBy(paymentAttempts.unansweredAt)
      .limit(1);
    if (!account || (account.blockedAt !== null) === (refused !== undefined)) return null;
    const blockedAt = refused ? (refused.sinceAt ?? nowAt) : null;
    await tx.update(merchantGateways).set({ blockedAt }).where(isAccount);
    const type = refused ? 'account.charges_blocked' : 'account.charges_resumed';
    const draft = {
      type,
      at: nowAt,
      gateway: name,
      blockedSinceAt: blockedAt ?? account.blockedAt ?? nowAt,
      reason: refused?.reason ?? null,
    } as const;
    const stream = { merchantId, streamId: name };
    await appendEvents(tx, stream, [
      { type, occurredAt: nowAt, body: (envelope) => accountEventBody(draft, envelope) },
    ]);
    return stream;
  });
}

/** Number of accounts whose charges the gateway refuses. */
export function countBlockedAccounts(db: Db): Promise<number> {
  return db.$count(merchantGateways, isNotNull(merchantGateways.blockedAt));
}

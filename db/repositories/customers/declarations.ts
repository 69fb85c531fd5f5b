import { and, asc, isNull, lt, sql } from 'drizzle-orm';
import { isWithdrawable, WITHDRAWAL_DAYS } from '../../../domain/declaration.ts';
import type { DeclarationOutcome } from '../../../domain/declaration.ts';
import { plainEventBody } from '../../../domain/events.ts';
import type { StreamRef } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { declarations } from '../../schema/declarations.ts';
import { loadSettings } from '../merchants/settings.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import { findContract, findRefundable } from './named-contract.ts';
import type { Contract } from './named-contract.ts';

export type DeclarationRow = typeof declarations.$inferSelect;

type Read = {
  readonly declaration: DeclarationRow;
  readonly contract: Contract | null;
  readonly isExecutable: boolean;
  readonly withdrawalDays: number;
};

type Declared = typeof declarations.$inferInsert;

/** Stores a declaration. Returns its id, also of an equal one that the same form sent before. */
export async function insertDeclaration(db: Db, declared: Declared): Promise<string> {
  const [stored] = await db
    .insert(declarations)
    .values(declared)
    .onConflictDoUpdate({ target: declarations.tokenHash, set: { tokenHash: declared.tokenHash } })
    .returning({ id: declarations.id });
  if (!stored) throw new Error('a stored declaration has an id');
  return stored.id;
}

export async function findDeclaration(
  db: Db,
  merchantId: string,
  tokenHash: Buffer,
): Promise<DeclarationRow | null> {
  const [row] = await db
    .select()
    .from(declarations)
    .where(hasValues(declarations, { merchantId, tokenHash }));
  return row ?? null;
}

/** Finds declarations that were not handled within a minute. */
export function takeDeclarations(db: Db, limit: number) {
  return db
    .select({ merchantId: declarations.merchantId, id: declarations.id })
    .from(declarations)
    .where(
      and(
        isNull(declarations.outcome),
        lt(declarations.createdAt, sql`now() - interval '1 minute'`),
      ),
    )
    .orderBy(asc(declarations.createdAt))
    .limit(limit);
}

export function declarationRows(db: Db) {
  return {
    async read({ merchantId, id }: { merchantId: string; id: string }): Promise<Read | null> {
      const declaration = await findRecord(db, declarations, merchantId, id);
      if (declaration === null || declaration.outcome !== null) return null;
      const settings = await loadSettings(db, merchantId);
      return {
        declaration,
        contract: await findContract(db, declaration),
        isExecutable: settings.declarations === 'execute',
        withdrawalDays: settings.withdrawalDays ?? WITHDRAWAL_DAYS,
      };
    },
    settle: (read: Read, outcome: DeclarationOutcome) =>
      db.transaction((tx) => settle(tx, read, outcome)),
  };
}

async function settle(
  tx: Db,
  { declaration, contract, withdrawalDays }: Read,
  outcome: DeclarationOutcome,
): Promise<StreamRef> {
  const { merchantId, id, kind, createdAt } = declaration;
  const streamId = contract?.subscriptionId ?? contract?.intentId ?? id;
  const isWithdrawal = kind === 'withdrawal' && contract !== null;
  const [settled] = await tx
    .update(declarations)
    .set({
      outcome,
      subscriptionId: contract?.subscriptionId ?? null,
      intentId: contract?.intentId ?? null,
      isInPeriod: isWithdrawal ? isWithdrawable(contract, withdrawalDays) : null,
      refundable: isWithdrawal ? await findRefundable(tx, merchantId, contract) : null,
    })
    .where(and(isRecord(declarations, merchantId, id), isNull(declarations.outcome)))
    .returning();
  const stream = { merchantId, streamId };
  if (!settled) return stream;
  const draft = { type: `${kind}.received`, at: contract?.declaredAt ?? createdAt } as const;
  await appendEvents(tx, stream, [
    {
      type: draft.type,
      occurredAt: draft.at,
      body: (envelope) => plainEventBody(draft, envelope, shownDeclaration(settled)),
    },
  ]);
  return stream;
}

/** A declaration in the list and in its event. */
export function shownDeclaration(row: DeclarationRow) {
  return {
    declarationId: row.id,
    kind: row.kind,
    name: row.name,
    email: row.email,
    reference: row.reference,
    reason: row.reason,
    endDate: row.endOn,
    language: row.locale,
    declaredAt: row.createdAt,
    outcome: row.outcome ?? ('pending' as const),
    subscriptionId: row.subscriptionId,
    intentId: row.intentId,
    isInWithdrawalPeriod: row.isInPeriod,
    refunds: (row.refundable ?? []).map(({ intentId, amountMinor }) => ({
      xIntentId: intentId,
      amount: amountMinor,
    })),
  };
}

import { and, asc, eq, gt, inArray, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import { isWithdrawable, WITHDRAWAL_DAYS } from '../../../domain/declaration.ts';
import type { DeclarationOutcome, NamedContract } from '../../../domain/declaration.ts';
import { emailNormalForm } from '../../../domain/email.ts';
import { declarationEventBody } from '../../../domain/events.ts';
import type { StreamRef } from '../../../domain/events.ts';
import { isId } from '../../../domain/ids.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { declarations } from '../../schema/declarations.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionEntries, subscriptions } from '../../schema/subscriptions.ts';
import { loadSettings } from '../merchants/settings.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { appendEvents } from '../webhooks/outbox.ts';

export type DeclarationRow = typeof declarations.$inferSelect;

interface Contract extends NamedContract {
  readonly subscriptionId: string | null;
  readonly intentId: string | null;
}

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
      body: (envelope) => declarationEventBody(draft, envelope, shownDeclaration(settled)),
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

/**
 * Returns the contract with this reference and e-mail address: the only one, or of several subscriptions the only one that
 * has begun and not ended; null if there is none.
 */
async function findContract(db: Db, declaration: DeclarationRow): Promise<Contract | null> {
  const { merchantId, reference, email, createdAt } = declaration;
  const normalEmail = emailNormalForm(email) ?? '';
  const isPayers = (own: AnyPgColumn) =>
    or(eq(own, normalEmail), eq(customers.normalEmail, normalEmail));
  const isNamed = (table: { id: AnyPgColumn; receiptId: AnyPgColumn }, prefix: 'sub' | 'in') =>
    eq(isId(prefix, reference) ? table.id : table.receiptId, reference);
  const found = await db
    .select({ subscriptionId: subscriptions.id, state: subscriptions.state })
    .from(subscriptions)
    .innerJoin(customers, isRecord(customers, subscriptions.merchantId, subscriptions.customerId))
    .where(
      and(
        eq(subscriptions.merchantId, merchantId),
        isNamed(subscriptions, 'sub'),
        isPayers(subscriptions.normalEmail),
      ),
    )
    .limit(CANDIDATES_MOST);
  if (found.length > 0) {
    const living = found.filter(({ state }) => !['CREATED', 'ENDED'].includes(state.status));
    const named = onlyOne(living) ?? onlyOne(found);
    return named && contractOf(db, { ...named, intentId: null }, createdAt);
  }
  const payments = await db
    .select({
      intentId: paymentIntents.id,
      paidAt: paymentIntents.succeededAt,
      cycleNumber: paymentIntents.cycleNumber,
      subscriptionId: paymentIntents.subscriptionId,
      state: subscriptions.state,
    })
    .from(paymentIntents)
    .innerJoin(customers, isRecord(customers, paymentIntents.merchantId, paymentIntents.customerId))
    .leftJoin(
      subscriptions,
      hasValues(subscriptions, {
        merchantId: paymentIntents.merchantId,
        id: paymentIntents.subscriptionId,
      }),
    )
    .where(
      and(
        eq(paymentIntents.merchantId, merchantId),
        isNamed(paymentIntents, 'in'),
        isPayers(paymentIntents.normalEmail),
      ),
    )
    .limit(CANDIDATES_MOST);
  const payment = onlyOne(payments.filter(({ paidAt }) => paidAt !== null)) ?? onlyOne(payments);
  if (payment === null) return null;
  const { intentId, paidAt, cycleNumber, subscriptionId, state } = payment;
  if (cycleNumber !== null && subscriptionId !== null && state !== null) {
    return contractOf(db, { subscriptionId, intentId, state }, createdAt);
  }
  // A charge outside the cycles is a contract of its own.
  return {
    subscriptionId: null,
    intentId,
    state: null,
    concludedAt: paidAt,
    declaredAt: createdAt,
    isPaidSince: false,
  };
}

/** With more contracts of one reference, none is the only one. */
const CANDIDATES_MOST = 20;

function onlyOne<T>(candidates: readonly T[]): T | null {
  return candidates.length === 1 ? (candidates[0] ?? null) : null;
}

async function contractOf(
  db: Db,
  named: { subscriptionId: string; intentId: string | null; state: SubscriptionState },
  createdAt: number,
): Promise<Contract> {
  const { merchantId } = named.state;
  const ref = { merchantId, subscriptionId: named.subscriptionId };
  const [first] = await db
    .select({ kind: subscriptionEntries.kind, at: subscriptionEntries.at })
    .from(subscriptionEntries)
    .where(
      and(
        hasValues(subscriptionEntries, ref),
        inArray(subscriptionEntries.kind, ['trial_begun', 'paid', 'imported']),
      ),
    )
    .orderBy(asc(subscriptionEntries.version))
    .limit(1);
  const paidSince = await db.$count(
    subscriptionEntries,
    and(
      hasValues(subscriptionEntries, { ...ref, kind: 'paid' }),
      gt(subscriptionEntries.recordedAt, createdAt),
    ),
  );
  return {
    ...named,
    concludedAt: first && first.kind !== 'imported' ? first.at : null,
    declaredAt: await businessNow(db, ref, createdAt),
    isPaidSince: paidSince > 0,
  };
}

async function findRefundable(tx: Db, merchantId: string, { subscriptionId, intentId }: Contract) {
  const { id, amountMinor, refundedMinor, succeededAt } = paymentIntents;
  const left = sql<number>`${amountMinor} - ${refundedMinor}`.mapWith(Number);
  return tx
    .select({ intentId: id, amountMinor: left })
    .from(paymentIntents)
    .where(
      and(
        eq(paymentIntents.merchantId, merchantId),
        subscriptionId === null
          ? eq(id, intentId ?? '')
          : eq(paymentIntents.subscriptionId, subscriptionId),
        isNotNull(succeededAt),
        sql`${left} > 0`,
      ),
    )
    .orderBy(asc(succeededAt), asc(id))
    .limit(100);
}

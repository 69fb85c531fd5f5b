import { setupEventBody } from '../../../domain/events.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import type { SetupMethodRef, SetupOutcome } from '../../../domain/setup-method.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions, setupMethods, checkoutTries } from '../../schema/checkouts.ts';
import { HOSTED, fillIn, insertSession, opensWith } from '../checkouts/sessions.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import { CARD, setMethodLive } from '../customers/payment-methods.ts';
import { findRecord, isRecord, hasValues } from '../records.ts';
import { and, eq, isNotNull, sql, getColumns } from 'drizzle-orm';
import { customers, paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import type { GivenDetails, NewCheckout } from '../checkouts/sessions.ts';

export type SetupMethod = typeof setupMethods.$inferSelect;

/** A setup session with its order data. An absent field becomes null. */
export type NewSetupMethod = SetupMethodRef &
  Omit<typeof setupMethods.$inferInsert, 'id' | 'status' | 'paymentMethodId'>;

/** Writes a setup session and its hosted session. False if it exists already. */
export async function insertSetupMethod(
  tx: Db,
  session: NewSetupMethod,
  checkout: NewCheckout,
): Promise<boolean> {
  const { merchantId, setupMethodId, createdAt, expiresAt } = session;
  const inserted = await tx
    .insert(setupMethods)
    .values({ ...session, id: setupMethodId, status: 'CREATED' })
    .onConflictDoNothing()
    .returning({ id: setupMethods.id });
  if (inserted.length === 0) return false;
  const { id, token } = checkout;
  const purpose = 'setup_method';
  await insertSession(tx, { merchantId, id, token, purpose, setupMethodId, expiresAt, createdAt });
  return true;
}

export const findSetupMethod = (db: Db, merchantId: string, id: string) =>
  findRecord(db, setupMethods, merchantId, id);

/**
 * Completes a setup session after its card was saved: records the session, its event and the method's status
 * LIVE. Refuses a session that is not in CREATED. A repeat with the same method returns `saved`.
 */
export async function completeSetupMethod(
  db: Db,
  ref: SetupMethodRef,
  paymentMethodId: string,
  nowAt: number,
): Promise<SetupOutcome> {
  return db.transaction(async (tx): Promise<SetupOutcome> => {
    const [session] = await tx.select().from(setupMethods).where(isSetup(ref)).for('update');
    if (!session) throw new Error(`no setup session ${ref.setupMethodId}`);
    if (session.status === 'SUCCESS' && session.paymentMethodId === paymentMethodId) {
      return { kind: 'saved', paymentMethodId };
    }
    if (setupMethodStatusAt(session, nowAt) !== 'CREATED') return setupIsOver(session);
    await tx
      .update(setupMethods)
      .set({ status: 'SUCCESS', paymentMethodId, completedAt: nowAt })
      .where(isSetup(ref));
    await setMethodLive(tx, ref.merchantId, paymentMethodId);
    const { merchantId, setupMethodId } = ref;
    const { customerId, metadata } = session;
    const draft = { at: nowAt, setupMethodId, paymentMethodId, customerId, metadata };
    await appendEvents(tx, { merchantId, streamId: setupMethodId }, [
      {
        type: 'setup_method.success',
        occurredAt: nowAt,
        body: (envelope) => setupEventBody(draft, envelope),
      },
    ]);
    return { kind: 'saved', paymentMethodId };
  });
}

export function setupIsOver(session: SetupMethod): SetupOutcome {
  const message =
    session.status === 'SUCCESS'
      ? 'A payment method was saved in this session already.'
      : 'The session is over; nothing was saved.';
  return { kind: 'refused', code: 'operation_not_allowed', message };
}

export type HostedSetup = NonNullable<Awaited<ReturnType<typeof findHostedSetup>>>;

type SetupSessionRef = Pick<HostedSetup, 'merchantId' | 'sessionId' | 'setupMethodId'>;

/** Returns the setup session that a token opens; null if there is none. */
export async function findHostedSetup(db: Db, token: string) {
  const { id: setupMethodId, billingDetails: customerDetails, ...setup } = getColumns(setupMethods);
  const [row] = await db
    .select({ ...setup, ...HOSTED, setupMethodId, customerDetails, card: CARD })
    .from(checkoutSessions)
    .innerJoin(
      setupMethods,
      isRecord(setupMethods, checkoutSessions.merchantId, checkoutSessions.setupMethodId),
    )
    .innerJoin(customers, isRecord(customers, setupMethods.merchantId, setupMethods.customerId))
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .leftJoin(
      paymentMethods,
      isRecord(paymentMethods, setupMethods.merchantId, setupMethods.paymentMethodId),
    )
    .where(opensWith(token, 'setup_method'));
  return row ?? null;
}

/** Adds the payer's details to the session and the customer. */
export function fillInSetupDetails(db: Db, setup: HostedSetup, given: GivenDetails): Promise<void> {
  const { billingDetails } = setupMethods;
  return fillIn(db, setup, given, billingDetails, isSetup(setup), (tx, { customerDetails }) =>
    tx.update(setupMethods).set({ billingDetails: customerDetails }).where(isSetup(setup)),
  );
}

/** Sets a CREATED session to FAILED after `limit` declines. An unknown outcome does not count. */
export async function failSpentSetup(db: Db, setup: SetupSessionRef, limit: number): Promise<void> {
  const { merchantId, sessionId } = setup;
  const isDeclined = and(
    hasValues(checkoutTries, { merchantId, sessionId }),
    isNotNull(checkoutTries.errorCode),
  );
  const declined = db.$count(checkoutTries, isDeclined);
  await db
    .update(setupMethods)
    .set({ status: 'FAILED' })
    .where(and(isSetup(setup), eq(setupMethods.status, 'CREATED'), sql`${declined} >= ${limit}`));
}

function isSetup(setup: SetupMethodRef) {
  return isRecord(setupMethods, setup.merchantId, setup.setupMethodId);
}

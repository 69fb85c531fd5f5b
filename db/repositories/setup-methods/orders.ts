import { setupEventBody } from '../../../domain/events.ts';
import { isId } from '../../../domain/ids.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import type { SetupMethodRef, SetupOutcome } from '../../../domain/setup-method.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions, setupMethods } from '../../schema/checkouts.ts';
import { hashCheckoutToken } from '../checkouts/sessions.ts';
import type { NewCheckout } from '../subscriptions/create.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import { setMethodLive } from '../customers/payment-methods.ts';
import { isRecord } from '../is-record.ts';

export type SetupMethod = typeof setupMethods.$inferSelect;

/** A setup session with its order data. An absent field becomes null. */
export type NewSetupMethod = SetupMethodRef &
  Omit<typeof setupMethods.$inferInsert, 'id' | 'status' | 'paymentMethodId'>;

/**
 * Writes a setup session and its checkout session, inside the caller's transaction. Writes nothing and returns
 * false if the setup session exists already.
 */
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
  await tx.insert(checkoutSessions).values({
    merchantId,
    id: checkout.id,
    tokenHash: hashCheckoutToken(checkout.token),
    purpose: 'setup_method',
    setupMethodId,
    expiresAt,
    createdAt,
  });
  return true;
}

/** Returns the merchant's setup session; null for an unknown id and for another merchant's id. */
export async function findSetupMethod(
  db: Db,
  merchantId: string,
  setupMethodId: string,
): Promise<SetupMethod | null> {
  if (!isId('sm', setupMethodId)) return null;
  const [row] = await db
    .select()
    .from(setupMethods)
    .where(isSession({ merchantId, setupMethodId }));
  return row ?? null;
}

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
    const [session] = await tx.select().from(setupMethods).where(isSession(ref)).for('update');
    if (!session) throw new Error(`no setup session ${ref.setupMethodId}`);
    if (session.status === 'SUCCESS' && session.paymentMethodId === paymentMethodId) {
      return { kind: 'saved', paymentMethodId };
    }
    if (setupMethodStatusAt(session, nowAt) !== 'CREATED') return setupIsOver(session);
    await tx
      .update(setupMethods)
      .set({ status: 'SUCCESS', paymentMethodId, completedAt: nowAt })
      .where(isSession(ref));
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

function isSession(ref: SetupMethodRef) {
  return isRecord(setupMethods, ref.merchantId, ref.setupMethodId);
}

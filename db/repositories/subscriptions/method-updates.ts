import { and, asc, eq, getColumns, isNotNull, sql } from 'drizzle-orm';
import { cardExpiresAt } from '../../../domain/payment-method.ts';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import type { EventCard } from '../../../domain/events.ts';
import { applyNewDetails } from '../../../domain/subscription/notes.ts';
import { withdrawExpiring } from '../../../domain/subscription/notices.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions, checkoutTries } from '../../schema/checkouts.ts';
import { customers, paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionCommands, subscriptions } from '../../schema/subscriptions.ts';
import { hashToken, SHOWN } from '../checkouts/sessions.ts';
import { CARD, METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';
import type { SessionRef } from '../checkouts/tries.ts';
import { hasValues, isRecord } from '../records.ts';
import { latestAttempt } from '../payments/shown-attempts.ts';
import { businessNow } from './business-time.ts';
import { lockCurrentRow } from './row.ts';
import { withoutCommand, writeChange } from './write-change.ts';

export type UpdatableSubscription = NonNullable<
  Awaited<ReturnType<typeof findUpdatableSubscription>>
>;

export async function findUpdatableSubscription(db: Db, ref: SubscriptionRef) {
  const { id: subscriptionId, ...order } = getColumns(subscriptions);
  const [row] = await db
    .select({
      ...order,
      ...SHOWN,
      subscriptionId,
      card: { ...CARD, gateway: paymentMethods.gateway },
    })
    .from(subscriptions)
    .innerJoin(customers, isRecord(customers, subscriptions.merchantId, subscriptions.customerId))
    .innerJoin(merchants, eq(merchants.id, subscriptions.merchantId))
    .leftJoin(paymentMethods, METHOD_OF_SUBSCRIPTION)
    .where(isRecord(subscriptions, ref.merchantId, ref.subscriptionId));
  return row ?? null;
}

/**
 * Creates the session of a link for replacing a card: before the gateway's card page or a try, and not when our page
 * is opened, which must write nothing. A repeat is safe.
 */
export async function ensureUpdateSession(
  db: Db,
  session: SessionRef & { subscriptionId: string; token: string; expiresAt: number },
  nowAt: number,
): Promise<void> {
  const { merchantId, sessionId, subscriptionId, token, expiresAt } = session;
  await db
    .insert(checkoutSessions)
    .values({
      merchantId,
      id: sessionId,
      tokenHash: hashToken(token),
      purpose: 'update_method',
      subscriptionId,
      expiresAt,
      createdAt: nowAt,
    })
    .onConflictDoNothing();
}

export type CyclePayment = NonNullable<Awaited<ReturnType<typeof findCyclePayment>>>;

/** Returns the payment of a cycle of the subscription; null for the id of another payment. */
export async function findCyclePayment(
  db: Db,
  { merchantId, subscriptionId, intentId }: SubscriptionRef & IntentRef,
) {
  const [row] = await db
    .select({
      status: paymentIntents.status,
      amountMinor: paymentIntents.amountMinor,
    })
    .from(paymentIntents)
    .where(
      and(
        isRecord(paymentIntents, merchantId, intentId),
        eq(paymentIntents.subscriptionId, subscriptionId),
        isNotNull(paymentIntents.cycleNumber),
      ),
    );
  return row ? { ...row, attempt: await latestAttempt(db, { merchantId, intentId }) } : null;
}

export type UpdateTry = Awaited<ReturnType<typeof updateTriesOf>>[number];

/**
 * True if a card try of the session is `saved` or `paid`, so that the page takes no other card. False if the saved
 * card's payment was declined.
 */
export async function hasReplacedCard(
  db: Db,
  ref: SessionRef & { subscriptionId: string },
): Promise<boolean> {
  const tries = await updateTriesOf(db, ref);
  return tries.some(({ command }) => {
    const result = command?.result;
    return result?.kind === 'checkout' && result.outcome !== 'declined';
  });
}

/**
 * Returns all card tries of the session, oldest first. `errorCode`: the decline code; null if the card was not declined,
 * or its outcome is unknown. `command` saved the card, at `acceptedAt` of the subscription's own time; null if it was
 * not saved.
 */
export async function updateTriesOf(db: Db, ref: SessionRef & { subscriptionId: string }) {
  const rows = await db
    .select({
      errorCode: checkoutTries.errorCode,
      result: subscriptionCommands.result,
      acceptedAt: subscriptionCommands.acceptedAt,
      card: CARD,
    })
    .from(checkoutTries)
    .innerJoin(subscriptions, isRecord(subscriptions, ref.merchantId, ref.subscriptionId))
    .leftJoin(
      subscriptionCommands,
      and(
        eq(subscriptionCommands.merchantId, checkoutTries.merchantId),
        eq(subscriptionCommands.subscriptionId, ref.subscriptionId),
        // The command id is the card token, and the key of the try is the token's hash.
        eq(sql`sha256(convert_to(${subscriptionCommands.commandId}, 'UTF8'))`, checkoutTries.key),
      ),
    )
    .leftJoin(
      paymentMethods,
      hasValues(paymentMethods, {
        merchantId: subscriptions.merchantId,
        // Limits the search to the rows of an index.
        customerId: subscriptions.customerId,
        tokenHash: checkoutTries.key,
      }),
    )
    .where(hasValues(checkoutTries, { merchantId: ref.merchantId, sessionId: ref.sessionId }))
    .orderBy(asc(checkoutTries.createdAt));
  return rows.map(({ errorCode, result, acceptedAt, card }) => ({
    errorCode,
    command: acceptedAt === null ? null : { result, acceptedAt, card },
  }));
}

/**
 * Plans the attempt that may follow new details of the card, or withdraws the notice that it expires. False if neither is
 * to do. `nowAt` is real time.
 */
export async function recordNewDetails(
  db: Db,
  ref: SubscriptionRef,
  card: Pick<EventCard, 'expiryMonth' | 'expiryYear'>,
  nowAt: number,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const { state } = await lockCurrentRow(tx, ref);
    const at = await businessNow(tx, ref, nowAt);
    const change = applyNewDetails(state, at) ?? withdrawExpiring(state, cardExpiresAt(card), at);
    if (change) await writeChange(tx, withoutCommand(change, at));
    return change !== null;
  });
}

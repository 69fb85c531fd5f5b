import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import { attemptNumberOf, DIRECT_COMMAND } from '../../domain/payment-intent.ts';
import type { AttemptTrigger } from '../../domain/payment-intent.ts';
import type { RefundRef } from '../../domain/refund.ts';
import type { ChargeCause } from '../../domain/subscription/charge-cause.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import { changeBy } from '../../domain/subscription/ledger.ts';
import { calendarDate } from '../../domain/subscription/state.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import type { ListedCharge } from '../../gateways/processor.ts';
import type { Db } from '../../db/client.ts';
import { paymentAttempts, paymentIntents, refunds } from '../../db/schema/payments.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { findMethod } from '../../db/repositories/customers/payment-methods.ts';
import { findRecord, isRecord } from '../../db/repositories/records.ts';
import {
  insertAttempt,
  OPEN_STATES,
  setPending,
} from '../../db/repositories/subscriptions/attempts.ts';
import type { Attempt } from '../../db/repositories/subscriptions/attempts.ts';
import { appendDrafts } from '../../db/repositories/payments/events.ts';
import { findChargeable, lockRow } from '../../db/repositories/subscriptions/row.ts';
import {
  insertCycleIntent,
  withoutCommand,
  writeChange,
} from '../../db/repositories/subscriptions/write-change.ts';
import type { KnownState } from '../../workflows/subscription/messages.ts';
import { settlePayment } from '../../db/repositories/payments/charges.ts';
import { attemptsOf, insertPayment, lockIntent } from '../../db/repositories/payments/orders.ts';
import { insertRefund, settleRefund } from '../../db/repositories/payments/refunds.ts';

/**
 * Nothing is sent to the gateway, so this also holds after it forgot the keys. A function that throws changes nothing.
 */

type Intent = typeof paymentIntents.$inferSelect;

/** A charge in the gateway's book that the rows do not have. */
export interface LostCharge extends ListedCharge {
  readonly gateway: string;
}

export interface LostRefund extends RefundRef {
  readonly intentId: string;
  readonly gatewayRefundId: string;
  readonly status: 'succeeded' | 'pending';
  readonly amountMinor: number;
  readonly createdAt: number;
}

/** The rows do not have what the record refers to. The message is for the operator. */
export class NotAdopted extends Error {}

/** As SENDING, with the gateway's id: the run looks the charge up and does not send it. Throws NotAdopted. */
export async function adoptCycleCharge(
  db: Db,
  subscription: SubscriptionRef,
  cycleNumber: number,
  lost: LostCharge,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { state, order } = await lockRow(tx, subscription);
    if (cycleNumber <= state.cyclesCharged) throw new NotAdopted('its cycle is paid already');
    const { paymentMethodId } = state;
    if (paymentMethodId === null || state.anchorAt === null) {
      throw new NotAdopted("the payer's saved payment method is lost");
    }
    if (cycleNumber > state.terms.cycleCount) {
      throw new NotAdopted(`its row has ${state.terms.cycleCount} cycles`);
    }
    const date = dueDate(state, cycleNumber);
    // The gateway does not know a test clock's time. If the lost edit of a date is the reason, the charge has its date.
    const createdAt = state.testClockId === null ? lost.createdAt : date;
    const dueAt = Math.min(date, createdAt);
    const { intentId, amountMinor, currency } = lost;
    const inserted = await insertCycleIntent(tx, order, state.terms, {
      intentId,
      cycleNumber,
      amountMinor,
      currency,
      createdAt,
      dueAt,
      paymentMethodId: null,
      adoptedAt: Date.now(),
    });
    if (inserted) await appendDrafts(tx, order, [inserted.created], inserted.source);
    await adoptAttempt(tx, lost, {
      paymentMethodId,
      createdAt,
      commandId: null,
      trigger: 'scheduled',
      // A declined attempt behind it is not opened.
      cause: lost.outcome === 'declined' ? null : { rule: 'adopted' },
    });
  });
}

function dueDate(state: SubscriptionState, cycleNumber: number): number {
  if (state.owed?.cycleNumber === cycleNumber) return state.owed.dueAt;
  return calendarDate(state, state.nextIndex + cycleNumber - state.cyclesCharged - 1);
}

/** Without a row of its intent, the charge is a one-time charge of its subscription. Throws NotAdopted. */
export async function adoptOrder(db: Db, lost: LostCharge): Promise<void> {
  const { gatewayChargeId, outcome, createdAt } = lost;
  await db.transaction(async (tx) => {
    const intent = (await lockIntent(tx, lost)) ?? (await insertOneTime(tx, lost));
    const { kind, paymentMethodId } = intent;
    if (kind !== 'one_time' && kind !== 'tokenised') {
      throw new NotAdopted("the payer's payment method is lost");
    }
    if (paymentMethodId === null) throw new NotAdopted('its row has no payment method');
    const attempt = await adoptAttempt(tx, lost, {
      paymentMethodId,
      createdAt: intent.createdAt,
      commandId: DIRECT_COMMAND,
      trigger: kind,
      cause: null,
    });
    if (outcome !== 'succeeded') return;
    await settlePayment(tx, attempt, { kind: outcome, gatewayChargeId }, createdAt);
  });
}

async function insertOneTime(tx: Db, lost: LostCharge): Promise<Intent> {
  const { merchantId, intentId, subscriptionId, amountMinor, currency, createdAt: nowAt } = lost;
  if (subscriptionId === null) throw new NotAdopted('its order is lost');
  const subscription = await findChargeable(tx, merchantId, subscriptionId);
  if (!subscription) throw new NotAdopted(`there is no row of ${subscriptionId}`);
  const { state, customerId, customerDetails } = subscription;
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'one_time',
    subscriptionId,
    customerId,
    paymentMethodId: state.paymentMethodId,
    amountMinor,
    currency,
    customerDetails,
    nowAt,
  });
  const [intent] = await tx
    .update(paymentIntents)
    .set({ adoptedAt: Date.now() })
    .where(isRecord(paymentIntents, merchantId, intentId))
    .returning();
  if (!intent) throw new Error('insert returned no row');
  return intent;
}

interface AdoptedAttempt {
  readonly paymentMethodId: string;
  readonly createdAt: number;
  readonly commandId: string | null;
  readonly trigger: AttemptTrigger;
  readonly cause: ChargeCause | null;
}

/** Its number is that in the key, also if earlier declined attempts are lost. Throws NotAdopted. */
async function adoptAttempt(tx: Db, lost: LostCharge, facts: AdoptedAttempt): Promise<Attempt> {
  const { merchantId, intentId, gateway, key, amountMinor, currency, outcome } = lost;
  const intent = await lockIntent(tx, lost);
  if (intent?.amountMinor !== amountMinor || intent.currency !== currency) {
    throw new NotAdopted(`${intent?.amountMinor} ${intent?.currency} are owed`);
  }
  const attempts = await attemptsOf(tx, lost);
  const isDeclined = outcome === 'declined';
  const other = attempts.find(({ state }) => state !== 'DECLINED');
  if (other && !isDeclined) throw new NotAdopted(`${other.gatewayKey} is ${other.state}`);
  const { paymentMethodId } = facts;
  const method = await findMethod(tx, merchantId, paymentMethodId);
  if (method?.gateway !== gateway) {
    throw new NotAdopted(`${paymentMethodId} is not a payment method of ${gateway}`);
  }
  const attempt = await insertAttempt(tx, {
    ...facts,
    merchantId,
    intentId,
    attemptNumber: attemptNumberOf(key),
    gatewayChargeId: lost.gatewayChargeId,
    state: isDeclined ? 'DECLINED' : 'SENDING',
    amountMinor,
    currency,
    sentAt: [lost.createdAt],
    settledAt: isDeclined ? Date.now() : null,
  });
  if (!attempt) throw new Error(`${key} exists`);
  if (!isDeclined) await setPending(tx, attempt);
  return attempt;
}

/** So an open attempt without the gateway's id is looked up and not sent. False if it has an id or is settled. */
export async function recordChargeId(
  db: Db,
  { key, gatewayChargeId }: LostCharge,
): Promise<boolean> {
  const found = await db
    .update(paymentAttempts)
    .set({ gatewayChargeId, state: 'UNKNOWN', isAccountRefused: false })
    .where(
      and(
        eq(paymentAttempts.gatewayKey, key),
        inArray(paymentAttempts.state, OPEN_STATES),
        isNull(paymentAttempts.gatewayChargeId),
      ),
    )
    .returning({ id: paymentAttempts.id });
  return found.length > 0;
}

/** Throws NotAdopted. */
export async function adoptRefund(db: Db, lost: LostRefund): Promise<void> {
  const { merchantId, refundId, gatewayRefundId, createdAt: nowAt } = lost;
  await db.transaction(async (tx) => {
    const inserted = await insertRefund(tx, { ...lost, nowAt });
    if (inserted.kind === 'refused') throw new NotAdopted(inserted.message);
    await tx
      .update(refunds)
      .set({ adoptedAt: Date.now(), firstSentAt: nowAt })
      .where(isRecord(refunds, merchantId, refundId));
    const kind = lost.status === 'succeeded' ? 'refunded' : 'pending';
    await settleRefund(tx, inserted.refund, { kind, gatewayRefundId }, nowAt);
  });
}

/** Lost steps that are taken again, and whose events are sent again, because the restored rows do not have them. */
const TAKEN_AGAIN: readonly Entry['kind'][] = [
  'cancellation_planned',
  'cancellation_withdrawn',
  'ended',
];

/** The row takes the last steps of its run, which completed. Throws NotAdopted. */
export async function adoptEnd(db: Db, { entries, version, ...ref }: KnownState): Promise<void> {
  await db.transaction(async (tx) => {
    let { state } = await lockRow(tx, ref);
    for (const entry of entries.filter((each) => each.version > state.version)) {
      const isNext = entry.version === state.version + 1 && TAKEN_AGAIN.includes(entry.kind);
      if (!isNext) throw new NotAdopted(`version ${entry.version} (${entry.kind}) is lost`);
      const change = changeBy(state, entry);
      await writeChange(tx, withoutCommand(change, entry.at));
      ({ state } = change);
    }
    if (state.version !== version) throw new NotAdopted('its last steps are unknown');
  });
}

/** The subscriptions whose next cycle has an adopted attempt that is not opened. A test clock opens it at its date. */
export async function listUnopened(db: Db): Promise<SubscriptionRef[]> {
  return db
    .select({ merchantId: subscriptions.merchantId, subscriptionId: subscriptions.id })
    .from(paymentAttempts)
    .innerJoin(
      paymentIntents,
      isRecord(paymentIntents, paymentAttempts.merchantId, paymentAttempts.intentId),
    )
    .innerJoin(
      subscriptions,
      isRecord(subscriptions, paymentIntents.merchantId, paymentIntents.subscriptionId),
    )
    .where(
      and(
        inArray(paymentAttempts.state, OPEN_STATES),
        sql`${paymentAttempts.cause} ->> 'rule' = 'adopted'`,
        sql`${paymentIntents.cycleNumber} = ${subscriptions.cyclesCharged} + 1`,
        sql`${subscriptions.state} ->> 'openAttempt' is null`,
        isNull(subscriptions.testClockId),
      ),
    );
}

/** Null for an unknown subscription. */
export async function findState(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
): Promise<SubscriptionState | null> {
  return (await findRecord(db, subscriptions, merchantId, subscriptionId))?.state ?? null;
}

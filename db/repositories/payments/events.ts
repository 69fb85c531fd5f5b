import { and, eq, inArray } from 'drizzle-orm';
import { intentEventBody } from '../../../domain/events.ts';
import type { EventCard, IntentEventDraft, IntentFacts } from '../../../domain/events.ts';
import { shownKind } from '../../../domain/payment-intent.ts';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payment-intents.ts';
import { paymentMethods } from '../../schema/payment-methods.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasUpfrontAmount } from '../subscriptions/row.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import type { EventToStore } from '../webhooks/outbox.ts';
import { isRecord } from '../is-record.ts';

/** The ids of an intent that select its event stream. */
export interface IntentStreamRef {
  merchantId: string;
  id: string;
  subscriptionId: string | null;
}

/**
 * Returns the event stream of an intent: the stream of the intent's subscription, or the intent's own stream.
 * Rule: D-52.
 */
export function streamOf(intent: IntentStreamRef) {
  return { merchantId: intent.merchantId, streamId: intent.subscriptionId ?? intent.id };
}

/**
 * Writes one event of an intent outside the billing cycles to the outbox, inside the caller's transaction.
 * The event contains data of the intent's row, so the caller must change the row first. Rules: D-51, D-52.
 */
export async function appendIntentEvent(
  tx: Db,
  intent: IntentStreamRef,
  draft: IntentEventDraft,
): Promise<void> {
  const toStore = await intentEventsToStore(tx, intent.merchantId, [draft]);
  await appendEvents(tx, streamOf(intent), [toStore(draft)]);
}

/** Reads the intents of `drafts` and returns a function that turns a draft into a storable event. */
export async function intentEventsToStore(
  tx: Db,
  merchantId: string,
  drafts: readonly IntentEventDraft[],
): Promise<(draft: IntentEventDraft) => EventToStore> {
  const intents = await intentFacts(tx, merchantId, [...new Set(drafts.map((d) => d.intentId))]);
  return (draft) => {
    const facts = intents.get(draft.intentId);
    if (!facts) throw new Error(`no intent ${draft.intentId}`);
    return {
      type: draft.type,
      occurredAt: draft.at,
      body: (envelope) => intentEventBody(draft, envelope, facts),
    };
  };
}

async function intentFacts(
  tx: Db,
  merchantId: string,
  intentIds: string[],
): Promise<Map<string, IntentFacts>> {
  if (intentIds.length === 0) return new Map();
  const rows = await tx
    .select({ intent: paymentIntents, method: paymentMethods, hasUpfrontAmount })
    .from(paymentIntents)
    .leftJoin(
      paymentMethods,
      isRecord(paymentMethods, paymentIntents.merchantId, paymentIntents.paymentMethodId),
    )
    .leftJoin(
      subscriptions,
      isRecord(subscriptions, paymentIntents.merchantId, paymentIntents.subscriptionId),
    )
    .where(and(eq(paymentIntents.merchantId, merchantId), inArray(paymentIntents.id, intentIds)));
  return new Map(
    rows.map(({ intent, method, ...order }) => [
      intent.id,
      {
        kind: shownKind(intent, order.hasUpfrontAmount),
        comments: intent.comments,
        amountMinor: intent.amountMinor,
        currency: intent.currency,
        presentmentCurrency: intent.presentmentCurrency,
        receiptId: intent.receiptId,
        subscriptionId: intent.subscriptionId,
        customerDetails: intent.customerDetails,
        metadata: intent.metadata,
        card: method && cardOf(method),
      },
    ]),
  );
}

/** Returns the card fields of an event. */
export function cardOf(method: typeof paymentMethods.$inferSelect): EventCard {
  const { brand, country, lastFourDigit, expiryMonth, expiryYear } = method;
  return { brand, country, lastFourDigit, expiryMonth, expiryYear };
}

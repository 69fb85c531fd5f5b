import { and, eq, inArray } from 'drizzle-orm';
import { intentEventBody, isIntentEvent, subscriptionEventBody } from '../../../domain/events.ts';
import type {
  EventCard,
  EventDraft,
  EventEnvelope,
  IntentEventDraft,
  IntentFacts,
} from '../../../domain/events.ts';
import { shownKind } from '../../../domain/payment-intent.ts';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasUpfrontAmount } from '../subscriptions/row.ts';
import type { Order } from '../subscriptions/row.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import type { EventCause, EventToStore } from '../webhooks/outbox.ts';
import { isRecord } from '../records.ts';
import { METHOD_OF_INTENT } from '../customers/payment-methods.ts';

export interface IntentStreamRef {
  merchantId: string;
  id: string;
  subscriptionId: string | null;
}

/** Returns the event stream of an intent: the stream of the intent's subscription, or the intent's own stream. */
export function streamOf(intent: IntentStreamRef) {
  return { merchantId: intent.merchantId, streamId: intent.subscriptionId ?? intent.id };
}

/** Writes an event of an intent in the caller's transaction. Reads the row without `facts`. */
export async function appendIntentEvent(
  tx: Db,
  intent: IntentStreamRef,
  draft: IntentEventDraft,
  facts?: IntentFacts,
): Promise<void> {
  const toStore = await intentEventsToStore(tx, intent.merchantId, [draft], facts);
  await appendEvents(tx, streamOf(intent), [toStore(draft)]);
}

/** The facts of the only intent of some events, and the charge that causes them. */
export interface EventSource {
  facts?: IntentFacts | undefined;
  cause?: EventCause;
}

/**
 * Writes a subscription's events to the outbox, in order, inside the caller's transaction. Without `facts` it reads
 * the intents' rows, so the caller must change them first.
 */
export async function appendDrafts(
  tx: Db,
  order: Pick<Order, 'merchantId' | 'subscriptionId' | 'customerId' | 'receiptId' | 'metadata'>,
  drafts: readonly EventDraft[],
  { facts, cause }: EventSource = {},
): Promise<void> {
  const { merchantId, subscriptionId: streamId } = order;
  const ofIntent = await intentEventsToStore(tx, merchantId, drafts.filter(isIntentEvent), facts);
  const events = drafts.map((draft) =>
    isIntentEvent(draft)
      ? ofIntent(draft)
      : {
          type: draft.type,
          occurredAt: draft.at,
          body: (envelope: EventEnvelope) => subscriptionEventBody(draft, envelope, order),
        },
  );
  await appendEvents(tx, { merchantId, streamId }, events, cause);
}

/** `known`: the facts of the only intent. Without them, reads the intents of `drafts`. */
async function intentEventsToStore(
  tx: Db,
  merchantId: string,
  drafts: readonly IntentEventDraft[],
  known?: IntentFacts,
): Promise<(draft: IntentEventDraft) => EventToStore> {
  const ids = known ? [] : [...new Set(drafts.map((draft) => draft.intentId))];
  const intents = await intentFacts(tx, merchantId, ids);
  return (draft) => {
    const facts = known ?? intents.get(draft.intentId);
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
    .select({ id: paymentIntents.id, intent: FACTS, method: paymentMethods, hasUpfrontAmount })
    .from(paymentIntents)
    .leftJoin(paymentMethods, METHOD_OF_INTENT)
    .leftJoin(
      subscriptions,
      isRecord(subscriptions, paymentIntents.merchantId, paymentIntents.subscriptionId),
    )
    .where(and(eq(paymentIntents.merchantId, merchantId), inArray(paymentIntents.id, intentIds)));
  return new Map(
    rows.map(({ id, intent, method, ...order }) => [
      id,
      factsOf(intent, method, order.hasUpfrontAmount),
    ]),
  );
}

export const FACTS = {
  kind: paymentIntents.kind,
  cycleNumber: paymentIntents.cycleNumber,
  comments: paymentIntents.comments,
  amountMinor: paymentIntents.amountMinor,
  currency: paymentIntents.currency,
  presentmentCurrency: paymentIntents.presentmentCurrency,
  receiptId: paymentIntents.receiptId,
  subscriptionId: paymentIntents.subscriptionId,
  customerDetails: paymentIntents.customerDetails,
  metadata: paymentIntents.metadata,
};

/** Returns the facts of an intent's events. `hasUpfrontAmount`: the subscription has one for its first cycle. */
export function factsOf(
  intent: Pick<typeof paymentIntents.$inferSelect, keyof typeof FACTS>,
  method: typeof paymentMethods.$inferSelect | null,
  hasUpfrontAmount: boolean,
): IntentFacts {
  const kind = shownKind(intent, hasUpfrontAmount);
  return { ...intent, kind, card: method && cardOf(method) };
}

function cardOf(method: typeof paymentMethods.$inferSelect): EventCard {
  const { brand, country, lastFourDigit, expiryMonth, expiryYear } = method;
  return { brand, country, lastFourDigit, expiryMonth, expiryYear };
}

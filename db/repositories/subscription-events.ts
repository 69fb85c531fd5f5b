import { and, eq, inArray } from 'drizzle-orm';
import { intentEventBody, isIntentEvent, subscriptionEventBody } from '../../domain/events.ts';
import type { EventCard, EventDraft, IntentFacts } from '../../domain/events.ts';
import type { Db } from '../client.ts';
import { paymentIntents } from '../schema/payment-intents.ts';
import { paymentMethods } from '../schema/payment-methods.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import { appendEvents } from './outbox.ts';
import type { EventToStore } from './outbox.ts';

/**
 * Writes a subscription's events to the outbox, in order, inside the caller's transaction, with the
 * facts as that transaction leaves them: change rows first, then call this. No drafts: no statement.
 * Rules: D-51, D-52.
 */
export async function appendDrafts(
  tx: Db,
  ref: { merchantId: string; subscriptionId: string },
  drafts: readonly EventDraft[],
): Promise<void> {
  if (drafts.length === 0) return;
  const intentIds = drafts.filter(isIntentEvent).map((draft) => draft.intentId);
  const intents = await intentFacts(tx, ref.merchantId, [...new Set(intentIds)]);
  const facts = await subscriptionFacts(tx, ref);
  const events = drafts.map((draft): EventToStore => {
    if (!isIntentEvent(draft)) {
      return {
        type: draft.type,
        occurredAt: draft.at,
        body: (envelope) => subscriptionEventBody(draft, envelope, facts),
      };
    }
    const intent = intents.get(draft.intentId);
    if (!intent) throw new Error(`no intent ${draft.intentId} to tell of`);
    return {
      type: draft.type,
      occurredAt: draft.at,
      body: (envelope) => intentEventBody(draft, envelope, intent),
    };
  });
  await appendEvents(tx, { merchantId: ref.merchantId, streamId: ref.subscriptionId }, events);
}

async function subscriptionFacts(tx: Db, ref: { merchantId: string; subscriptionId: string }) {
  const [row] = await tx
    .select({ customerId: subscriptions.customerId, metadata: subscriptions.metadata })
    .from(subscriptions)
    .where(
      and(eq(subscriptions.merchantId, ref.merchantId), eq(subscriptions.id, ref.subscriptionId)),
    );
  if (!row) throw new Error(`no subscription ${ref.subscriptionId} to tell of`);
  return { subscriptionId: ref.subscriptionId, ...row };
}

async function intentFacts(
  tx: Db,
  merchantId: string,
  intentIds: string[],
): Promise<Map<string, IntentFacts>> {
  if (intentIds.length === 0) return new Map();
  const rows = await tx
    .select({ intent: paymentIntents, method: paymentMethods })
    .from(paymentIntents)
    .leftJoin(
      paymentMethods,
      and(
        eq(paymentMethods.merchantId, paymentIntents.merchantId),
        eq(paymentMethods.id, paymentIntents.paymentMethodId),
      ),
    )
    .where(and(eq(paymentIntents.merchantId, merchantId), inArray(paymentIntents.id, intentIds)));
  return new Map(
    rows.map(({ intent, method }) => [
      intent.id,
      {
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

function cardOf(method: typeof paymentMethods.$inferSelect): EventCard {
  const { brand, country, lastFourDigit, expiryMonth, expiryYear } = method;
  return { brand, country, lastFourDigit, expiryMonth, expiryYear };
}

import { isIntentEvent, subscriptionEventBody } from '../../../domain/events.ts';
import type { EventDraft, SubscriptionEventDraft } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { intentEventsToStore } from '../payments/events.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import type { EventToStore } from '../webhooks/outbox.ts';
import { isRecord } from '../is-record.ts';

/**
 * Writes a subscription's events to the outbox, in order, inside the caller's transaction. The events
 * contain data of the row, so the caller must change the row first. Rules: D-51, D-52.
 */
export async function appendDrafts(
  tx: Db,
  ref: { merchantId: string; subscriptionId: string },
  drafts: readonly EventDraft[],
): Promise<void> {
  if (drafts.length === 0) return;
  const ownDrafts = drafts.filter((draft) => !isIntentEvent(draft));
  const [ofIntent, ofSubscription] = await Promise.all([
    intentEventsToStore(tx, ref.merchantId, drafts.filter(isIntentEvent)),
    subscriptionEventsToStore(tx, ref, ownDrafts),
  ]);
  const events = drafts.map((draft) =>
    isIntentEvent(draft) ? ofIntent(draft) : ofSubscription(draft),
  );
  await appendEvents(tx, { merchantId: ref.merchantId, streamId: ref.subscriptionId }, events);
}

/** Reads the subscription and returns a function that turns a draft into a storable event. */
async function subscriptionEventsToStore(
  tx: Db,
  { merchantId, subscriptionId }: { merchantId: string; subscriptionId: string },
  drafts: readonly SubscriptionEventDraft[],
): Promise<(draft: SubscriptionEventDraft) => EventToStore> {
  const [row] =
    drafts.length === 0
      ? []
      : await tx
          .select({
            customerId: subscriptions.customerId,
            receiptId: subscriptions.receiptId,
            metadata: subscriptions.metadata,
          })
          .from(subscriptions)
          .where(isRecord(subscriptions, merchantId, subscriptionId));
  return (draft) => {
    if (!row) throw new Error(`no subscription ${subscriptionId}`);
    return {
      type: draft.type,
      occurredAt: draft.at,
      body: (envelope) => subscriptionEventBody(draft, envelope, { subscriptionId, ...row }),
    };
  };
}

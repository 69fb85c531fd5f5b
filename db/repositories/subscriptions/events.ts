import { isIntentEvent, subscriptionEventBody } from '../../../domain/events.ts';
import type { EventDraft, EventEnvelope, IntentFacts } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { intentEventsToStore } from '../payments/events.ts';
import { appendEvents } from '../webhooks/outbox.ts';
import type { EventCause } from '../webhooks/outbox.ts';
import type { Order } from './row.ts';

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

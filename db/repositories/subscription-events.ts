import { and, eq } from 'drizzle-orm';
import { isIntentEvent, subscriptionEventBody } from '../../domain/events.ts';
import type { EventDraft } from '../../domain/events.ts';
import type { Db } from '../client.ts';
import { subscriptions } from '../schema/subscriptions.ts';
import { intentEventsToStore } from './intent-events.ts';
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
  const ofIntent = await intentEventsToStore(tx, ref.merchantId, drafts.filter(isIntentEvent));
  const facts = await subscriptionFacts(tx, ref);
  const events = drafts.map((draft): EventToStore =>
    isIntentEvent(draft)
      ? ofIntent(draft)
      : {
          type: draft.type,
          occurredAt: draft.at,
          body: (envelope) => subscriptionEventBody(draft, envelope, facts),
        },
  );
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

import { and, inArray, isNull, lt, or, sql } from 'drizzle-orm';
import { subjectIdOf } from '../../../domain/gateway-hint.ts';
import type { GatewayHint, GatewaySubject } from '../../../domain/gateway-hint.ts';
import type { Db } from '../../client.ts';
import { gatewayEvents } from '../../schema/gateway-events.ts';
import { areFirst, hasValues } from '../records.ts';

export type GatewayAccount = Pick<GatewaySubject, 'merchantId' | 'gateway'>;

/**
 * Stores an event once. Returns its subject while an event about it is unhandled, else null. `isHandled`: the event
 * needs no workflow.
 */
export async function storeGatewayEvent(
  db: Db,
  account: GatewayAccount,
  hint: GatewayHint,
  isHandled: boolean,
): Promise<GatewaySubject | null> {
  const { eventId, type } = hint;
  const subjectId = subjectIdOf(hint);
  const row = { ...account, eventId, type, subjectId, hint };
  const isOver = isHandled || subjectId === null;
  await db
    .insert(gatewayEvents)
    .values({ ...row, ...(isOver ? { handledAt: Date.now() } : {}) })
    .onConflictDoNothing();
  if (isOver) return null;
  const waiting = await unhandledHints(db, { ...account, subjectId });
  return waiting.length === 0 ? null : { ...account, subjectId };
}

/** Returns the hints of the unhandled events about a subject, the oldest first. */
export async function unhandledHints(db: Db, subject: GatewaySubject): Promise<GatewayHint[]> {
  const rows = await db
    .select({ hint: gatewayEvents.hint })
    .from(gatewayEvents)
    .where(and(isOf(subject), isNull(gatewayEvents.handledAt)))
    .orderBy(gatewayEvents.receivedAt);
  return rows.map(({ hint }) => hint);
}

/** Marks these events of the subject as handled. A repeat is safe. */
export async function markHandled(
  db: Db,
  subject: GatewaySubject,
  eventIds: readonly string[],
): Promise<void> {
  await db
    .update(gatewayEvents)
    .set({ handledAt: sql`now()` })
    .where(
      and(
        isOf(subject),
        inArray(gatewayEvents.eventId, [...eventIds]),
        isNull(gatewayEvents.handledAt),
      ),
    );
}

/** Takes events that were not handled within a minute, each at most once a minute. */
export async function takeUnhandled(db: Db, limit: number): Promise<GatewaySubject[]> {
  const aMinuteAgo = sql`now() - interval '1 minute'`;
  const condition = and(
    isNull(gatewayEvents.handledAt),
    lt(gatewayEvents.receivedAt, aMinuteAgo),
    or(isNull(gatewayEvents.sweptAt), lt(gatewayEvents.sweptAt, aMinuteAgo)),
  );
  const order = [sql`${gatewayEvents.sweptAt} asc nulls first`, gatewayEvents.receivedAt];
  const taken = await db
    .update(gatewayEvents)
    .set({ sweptAt: sql`now()` })
    .where(areFirst(db, gatewayEvents, { condition, order, limit }))
    .returning({
      merchantId: gatewayEvents.merchantId,
      gateway: gatewayEvents.gateway,
      subjectId: sql<string>`${gatewayEvents.subjectId}`,
    });
  return [...new Map(taken.map((subject) => [JSON.stringify(subject), subject])).values()];
}

function isOf({ merchantId, gateway, subjectId }: GatewaySubject) {
  return hasValues(gatewayEvents, { merchantId, gateway, subjectId });
}

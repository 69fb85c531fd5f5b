import { and, desc, eq, exists, gt, isNotNull, isNull, ne, or } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import { plainEventBody } from '../../../domain/events.ts';
import type { EventEnvelope, StreamRef } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import type { Locale } from '../../../domain/locales.ts';
import { PORTAL_LINK_MS } from '../../../domain/subscription/portal.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { portalSessions } from '../../schema/portal-sessions.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hashToken } from '../checkouts/sessions.ts';
import { hasValues, isRecord } from '../records.ts';
import { appendEvents } from '../webhooks/outbox.ts';

type NewSession = Omit<typeof portalSessions.$inferSelect, 'browserHash' | 'tokenHash'>;

/** False if there is a session with this id. */
export async function insertPortalSession(
  db: Db,
  token: string,
  session: NewSession,
): Promise<boolean> {
  const stored = await db
    .insert(portalSessions)
    .values({ ...session, tokenHash: hashToken(token) })
    .onConflictDoNothing({ target: [portalSessions.merchantId, portalSessions.id] })
    .returning({ id: portalSessions.id });
  return stored.length > 0;
}

/** Customers of one address who get a link. */
const CUSTOMERS_MOST = 5;
/** A customer gets at most one e-mail in this time in ms, whoever asks. */
const EACH_MS = 10 * 60_000;

export interface PortalRequest {
  readonly merchantId: string;
  readonly email: string;
  readonly locale: Locale;
  readonly nowAt: number;
}

/** Stores a link, and the event that tells of it, for each customer with this address. Returns the events' streams. */
export async function requestPortal(
  db: Db,
  request: PortalRequest,
  tokenOf: (portal: { merchantId: string; id: string }) => string,
): Promise<StreamRef[]> {
  const { merchantId, email } = request;
  const normalEmail = emailNormalForm(email) ?? '';
  const own = { merchantId: customers.merchantId, customerId: customers.id };
  const begun = db
    .select({ id: subscriptions.id })
    .from(subscriptions)
    .where(and(hasValues(subscriptions, own), ne(subscriptions.status, 'CREATED')));
  const paid = db
    .select({ id: paymentIntents.id })
    .from(paymentIntents)
    .where(and(hasValues(paymentIntents, own), isNotNull(paymentIntents.succeededAt)));
  // Anybody may open a checkout with another person's address.
  const payers = await db
    .select({ id: customers.id })
    .from(customers)
    .where(and(hasValues(customers, { merchantId, normalEmail }), or(exists(begun), exists(paid))))
    .orderBy(desc(customers.createdAt))
    .limit(CUSTOMERS_MOST);
  const streams: StreamRef[] = [];
  for (const { id } of payers) {
    const isNew = await db.transaction((tx) => storeRequest(tx, request, id, tokenOf));
    if (isNew) streams.push({ merchantId, streamId: id });
  }
  return streams;
}

/** False if the customer had an e-mail in these ten minutes. */
async function storeRequest(
  tx: Db,
  { merchantId, locale, nowAt }: PortalRequest,
  customerId: string,
  tokenOf: (portal: { merchantId: string; id: string }) => string,
): Promise<boolean> {
  const digest = hashToken(customerId);
  const roundAt = Math.floor(nowAt / EACH_MS) * EACH_MS;
  const id = newId('prt', roundAt, (count) => digest.subarray(0, count));
  const times = { createdAt: nowAt, expiresAt: nowAt + PORTAL_LINK_MS };
  const session = { merchantId, id, customerId, returnUrl: null, ...times };
  if (!(await insertPortalSession(tx, tokenOf(session), session))) return false;
  const draft = { type: 'customer.portal_requested', at: nowAt } as const;
  const facts = { customerId, portalId: id, expiresAt: times.expiresAt, language: locale };
  const body = (envelope: EventEnvelope) => plainEventBody(draft, envelope, facts);
  const stream = { merchantId, streamId: customerId };
  await appendEvents(tx, stream, [{ type: draft.type, occurredAt: nowAt, body }]);
  return true;
}

export type PortalSession = NonNullable<Awaited<ReturnType<typeof findPortalSession>>>;

export async function findPortalSession(db: Db, tokenHash: Buffer) {
  const [row] = await db
    .select({
      session: portalSessions,
      merchant: { id: merchants.id, name: merchants.name, settings: merchants.settings },
    })
    .from(portalSessions)
    .innerJoin(merchants, eq(merchants.id, portalSessions.merchantId))
    .where(eq(portalSessions.tokenHash, tokenHash));
  return row ?? null;
}

/** Gives the session to a browser, unless another one has it or it has expired. */
export async function claimPortalSession(
  db: Db,
  { merchantId, id }: Pick<NewSession, 'merchantId' | 'id'>,
  browserHash: Buffer,
  nowAt: number,
): Promise<void> {
  const { browserHash: owner, expiresAt } = portalSessions;
  await db
    .update(portalSessions)
    .set({ browserHash })
    .where(and(isRecord(portalSessions, merchantId, id), isNull(owner), gt(expiresAt, nowAt)));
}

import { and, desc, eq, gt, inArray, isNull } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import { plainEventBody } from '../../../domain/events.ts';
import type { EventEnvelope, StreamRef } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import type { Locale } from '../../../domain/locales.ts';
import { PORTAL_LINK_MS } from '../../../domain/subscription/portal.ts';
import type { Db } from '../../client.ts';
import { customers } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { portalSessions } from '../../schema/portal-sessions.ts';
import { hashToken } from '../checkouts/sessions.ts';
import { hasValues, isRecord } from '../records.ts';
import { payerConditions } from './customers.ts';
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
    .onConflictDoNothing()
    .returning({ id: portalSessions.id });
  return stored.length > 0;
}

/** Customers of one address who get a link. */
const CUSTOMERS_MOST = 5;
/** Shortest time in ms between two e-mails to one customer. */
const EACH_MS = 10 * 60_000;
/** Most e-mails to one customer in a UTC day. */
const PER_DAY = 5;
const DAY_MS = 86_400_000;

export interface PortalRequest {
  readonly merchantId: string;
  readonly email: string;
  readonly locale: Locale;
  readonly nowAt: number;
}

type TokenOf = (portal: { merchantId: string; id: string }) => string;

/**
 * Stores a link, and the event that tells of it, for each payer with this address; those with a running subscription
 * first. Yields the stream of each event.
 */
export async function* requestPortal(
  db: Db,
  request: PortalRequest,
  tokenOf: TokenOf,
): AsyncGenerator<StreamRef> {
  const { merchantId, email } = request;
  const normalEmail = emailNormalForm(email) ?? '';
  const { isSubscriber, isPayer } = payerConditions(db);
  const payers = await db
    .select({ id: customers.id })
    .from(customers)
    .where(and(hasValues(customers, { merchantId, normalEmail }), isPayer))
    .orderBy(desc(isSubscriber), desc(customers.createdAt))
    .limit(CUSTOMERS_MOST);
  for (const { id } of payers) {
    const isStored = await db.transaction((tx) => storeRequest(tx, request, id, tokenOf));
    if (isStored) yield { merchantId, streamId: id };
  }
}

/** False if the customer had an e-mail in the last ten minutes, or all of the day. */
async function storeRequest(
  tx: Db,
  { merchantId, locale, nowAt }: PortalRequest,
  customerId: string,
  tokenOf: TokenOf,
): Promise<boolean> {
  // The ids of the day follow from the customer, so that two requests at once cannot store more.
  const dayAt = Math.floor(nowAt / DAY_MS) * DAY_MS;
  const ids = Array.from({ length: PER_DAY }, (_, index) => {
    const digest = hashToken(`${customerId} ${index}`);
    return newId('prt', dayAt, (count) => digest.subarray(0, count));
  });
  const { id: portalId, createdAt } = portalSessions;
  const today = await tx
    .select({ createdAt })
    .from(portalSessions)
    .where(and(hasValues(portalSessions, { merchantId }), inArray(portalId, ids)));
  const id = ids[today.length];
  const isSoon = today.some((session) => session.createdAt > nowAt - EACH_MS);
  if (id === undefined || isSoon) return false;
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

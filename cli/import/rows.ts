import { and, eq, inArray, sql } from 'drizzle-orm';
import { emailNormalForm } from '../../domain/email.ts';
import { newId } from '../../domain/ids.ts';
import type { RandomBytes } from '../../domain/ids.ts';
import { importedSubscription } from './imported.ts';
import type { ImportedSubscription } from './imported.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import { planNotices } from '../../domain/subscription/plan-notices.ts';
import { cardExpiresAt } from '../../domain/payment-method.ts';
import { takePlace } from '../../domain/subscription/renewal-places.ts';
import type { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import { initialJitter } from '../../domain/subscription/state.ts';
import type { EventCard } from '../../domain/events.ts';
import type { Db } from '../../db/client.ts';
import { customers, paymentMethods } from '../../db/schema/customers.ts';
import { subscriptionImports, subscriptions } from '../../db/schema/subscriptions.ts';
import type { ImportedTerms } from '../../db/schema/subscriptions.ts';
import { hasValues, isRecord } from '../../db/repositories/records.ts';
import { withoutCommand, writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import type { SubscriptionOrder } from '../../db/repositories/subscriptions/write-change.ts';

export interface EarlierImport {
  readonly subscriptionId: string;
  readonly terms: ImportedTerms;
}

export async function findImports(
  db: Db,
  merchantId: string,
  importIds: readonly string[],
): Promise<Map<string, EarlierImport>> {
  if (importIds.length === 0) return new Map();
  const rows = await db
    .select({
      importId: subscriptionImports.importId,
      subscriptionId: subscriptionImports.subscriptionId,
      terms: subscriptionImports.terms,
    })
    .from(subscriptionImports)
    .where(
      and(
        eq(subscriptionImports.merchantId, merchantId),
        inArray(subscriptionImports.importId, [...importIds]),
      ),
    );
  return new Map(rows.map(({ importId, ...earlier }) => [importId, earlier]));
}

export interface SubscriptionImport {
  readonly importId: string;
  readonly terms: ImportedTerms;
  readonly gateway: string;
  readonly gatewayCustomerId: string | null;
  readonly card: EventCard & { readonly gatewayMethodId: string };
  readonly order: SubscriptionOrder;
  readonly subscription: Omit<
    ImportedSubscription,
    'subscriptionId' | 'customerId' | 'paymentMethodId' | 'jitter'
  >;
  readonly jitterWindowMs: number | null;
  readonly noticeRules: NoticeRules;
  readonly places: RenewalPlaces;
}

export type ImportOutcome =
  | { readonly kind: 'imported'; readonly subscriptionId: string }
  /** Another process has imported this id in the meantime. */
  | { readonly kind: 'repeated'; readonly earlier: EarlierImport }
  | { readonly kind: 'refused'; readonly reason: string };

/** One transaction, no event. Imports of one gateway customer share a customer. The caller starts the workflow. */
export async function importSubscription(
  db: Db,
  given: SubscriptionImport,
  random: RandomBytes,
): Promise<ImportOutcome> {
  const { merchantId } = given.subscription;
  try {
    return await db.transaction(async (tx): Promise<ImportOutcome> => {
      const payer = await payerOf(tx, given);
      if (typeof payer === 'string') return { kind: 'refused', reason: payer };
      const id = (prefix: 'cus' | 'pmt' | 'sub') =>
        newId(prefix, given.subscription.importedAt, random);
      const subscriptionId = id('sub');
      const customerId = payer.customerId ?? id('cus');
      const paymentMethodId = payer.paymentMethodId ?? id('pmt');
      const ids = { merchantId, subscriptionId, customerId, paymentMethodId };
      // The statements are pipelined: the connection executes them in this order.
      await Promise.all([
        ...(payer.customerId === null ? [insertCustomer(tx, given, customerId)] : []),
        ...(payer.paymentMethodId === null ? [insertMethod(tx, given, ids)] : []),
      ]);
      await insertSubscription(tx, given, ids);
      await insertImport(tx, given, subscriptionId);
      return { kind: 'imported', subscriptionId };
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const earlier = (await findImports(db, merchantId, [given.importId])).get(given.importId);
    if (earlier === undefined) throw error;
    return { kind: 'repeated', earlier };
  }
}

interface Payer {
  readonly customerId: string | null;
  readonly paymentMethodId: string | null;
}

/** What the merchant already has of this payer, or why not. In a transaction, serialises imports of one gateway customer. */
export async function payerOf(tx: Db, given: SubscriptionImport): Promise<Payer | string> {
  const { gateway, gatewayCustomerId, card, subscription } = given;
  const { merchantId } = subscription;
  const lock = `import ${merchantId} ${gateway} ${gatewayCustomerId ?? card.gatewayMethodId}`;
  const [, [method], [earlier]] = await Promise.all([
    tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`),
    tx
      .select()
      .from(paymentMethods)
      .where(hasValues(paymentMethods, { gateway, gatewayMethodId: card.gatewayMethodId })),
    tx
      .select({ customerId: subscriptions.customerId })
      .from(subscriptionImports)
      .innerJoin(
        subscriptions,
        isRecord(subscriptions, subscriptionImports.merchantId, subscriptionImports.subscriptionId),
      )
      .where(
        hasValues(subscriptionImports, {
          merchantId,
          gateway,
          // If it is null, this condition matches no row.
          gatewayCustomerId: sql`${gatewayCustomerId}::text`,
        }),
      )
      .limit(1),
  ]);
  if (method === undefined) {
    return { customerId: earlier?.customerId ?? null, paymentMethodId: null };
  }
  if (method.merchantId !== merchantId) return 'another merchant has this payment method';
  if (method.status !== 'LIVE') return `the payment method is ${method.status} here`;
  return { customerId: method.customerId, paymentMethodId: method.id };
}

function insertCustomer(tx: Db, { order, subscription }: SubscriptionImport, id: string) {
  const { merchantId, importedAt: createdAt } = subscription;
  const details = order.customerDetails;
  const normalEmail = emailNormalForm(details.email);
  return tx.insert(customers).values({ merchantId, id, details, normalEmail, createdAt }).execute();
}

interface Ids {
  readonly merchantId: string;
  readonly subscriptionId: string;
  readonly customerId: string;
  readonly paymentMethodId: string;
}

function insertMethod(tx: Db, { gateway, card, subscription }: SubscriptionImport, ids: Ids) {
  const { merchantId, customerId, paymentMethodId } = ids;
  return tx
    .insert(paymentMethods)
    .values({
      ...card,
      merchantId,
      customerId,
      id: paymentMethodId,
      gateway,
      kind: 'CARD',
      status: 'LIVE',
      createdAt: subscription.importedAt,
    })
    .execute();
}

function insertSubscription(tx: Db, given: SubscriptionImport, ids: Ids) {
  const { subscriptionId } = ids;
  const jitter = initialJitter({ subscriptionId, testClockId: null }, given.jitterWindowMs);
  const unplaced = importedSubscription({ ...given.subscription, ...ids, jitter });
  const place = takePlace(given.places, unplaced, unplaced.createdAt);
  const facts = { cardExpiresAt: cardExpiresAt(given.card), formerAmountMinor: null };
  const notices = planNotices(unplaced, given.noticeRules, unplaced.createdAt, facts);
  const change = { state: { ...unplaced, ...place, ...notices }, events: [], effects: {} };
  return writeChange(tx, withoutCommand(change, unplaced.createdAt), { creates: given.order });
}

function insertImport(tx: Db, given: SubscriptionImport, subscriptionId: string) {
  const { importId, terms, gateway, gatewayCustomerId } = given;
  const { merchantId, status, cyclesCharged, nextIndex, importedAt } = given.subscription;
  return tx
    .insert(subscriptionImports)
    .values({
      merchantId,
      importId,
      subscriptionId,
      gateway,
      gatewayCustomerId,
      terms,
      status,
      cyclesCharged,
      nextIndex,
      importedAt,
    })
    .execute();
}

function isUniqueViolation(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown } };
  return cause?.code === '23505';
}

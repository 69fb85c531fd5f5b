import { redeemToken } from '../../activities/charging/redeem-token.ts';
import { randomBytes } from 'node:crypto';
import { asc, eq } from 'drizzle-orm';
import { insertCustomer } from '../../db/repositories/customers/customers.ts';
import { claimKey } from '../../db/repositories/merchants/idempotency-keys.ts';
import { insertPayment } from '../../db/repositories/payments/orders.ts';
import type { NewPayment } from '../../db/repositories/payments/orders.ts';
import { insertRefund } from '../../db/repositories/payments/refunds.ts';
import type { InsertedRefund } from '../../db/repositories/payments/refunds.ts';
import { insertSetupMethod } from '../../db/repositories/setup-methods/sessions.ts';
import { outboxEvents } from '../../db/schema/webhooks.ts';
import { paymentAttempts, paymentIntents, refunds } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { newId, randomToken } from '../../domain/ids.ts';
import type { IntentRef, PaymentOrder, PaymentOutcome } from '../../domain/payment-intent.ts';
import { checkoutCommand } from './card-tokens.ts';
import type { TestEnvironment } from './test-environment.ts';
import { untilAccepted } from './until-accepted.ts';

const HOUR = 3_600_000;
const DETAILS = { name: 'Ada Example', email: 'ada@example.com' };

/** The fields of a charge in the gateway's own records that tests compare. */
interface BookedLine {
  outcome: string;
  amountMinor: number;
  refundedMinor: number;
  sentCount: number;
}

export type Payments = ReturnType<typeof paymentsIn>;

/**
 * Creates one-off payments, refunds and setup sessions as the API does, and reads them in the form that tests
 * compare.
 */
export function paymentsIn(env: TestEnvironment) {
  const { db, merchantId } = env;
  const id = (prefix: 'cus' | 'in' | 'cs' | 'sm' | 'rf') => newId(prefix, Date.now(), randomBytes);
  /** Claims an idempotency key, as a merchant's request with a key does. */
  const withKey = async (madeId: string) => {
    const key = madeId.slice(3);
    const use = { merchantId, route: 'POST /test', key, fingerprint: Buffer.alloc(32) };
    await claimKey(db, use, `cmd_${key}`, Date.now());
  };
  /** Submits a card to the tokeniser. Returns the token and session with which the payer returns. */
  const card = async (number?: string) => {
    const { paymentToken, checkoutSessionId } = checkoutCommand(await env.token(number));
    return { paymentToken, checkoutSessionId };
  };
  const customer = async () => {
    const customerId = id('cus');
    await insertCustomer(db, { merchantId, id: customerId, details: DETAILS, createdAt: 0 });
    return customerId;
  };
  const payment = async (
    kind: NewPayment['kind'],
    terms: Partial<NewPayment> = {},
  ): Promise<IntentRef> => {
    const ref = { merchantId, intentId: id('in') };
    await withKey(ref.intentId);
    const customerId = terms.customerId ?? (await customer());
    const nowAt = Date.now();
    const checkout = { id: id('cs'), token: randomToken(randomBytes), expiresAt: nowAt + HOUR };
    await db.transaction((tx) =>
      insertPayment(tx, {
        ...ref,
        kind,
        customerId,
        amountMinor: 5_000,
        currency: 'USD',
        customerDetails: DETAILS,
        nowAt,
        ...(kind === 'hosted' ? { checkout } : {}),
        ...terms,
      }),
    );
    return ref;
  };
  /** Creates a customer and saves the card behind the token. */
  const redeemed = async (token: { paymentToken: string; checkoutSessionId: string }) => {
    const customerId = await customer();
    const order = { ...token, merchantId, customerId, verify: false, nowAt: Date.now() };
    const saved = await redeemToken(env, order);
    if (saved.kind !== 'saved') throw new Error('the card was not saved');
    return { customerId, paymentMethodId: saved.paymentMethodId };
  };
  const saved = async (number?: string) => redeemed(await card(number));
  const setup = async (expiresAt = Date.now() + HOUR) => {
    const setupMethodId = id('sm');
    const customerId = await customer();
    await db.transaction((tx) =>
      insertSetupMethod(
        tx,
        {
          merchantId,
          setupMethodId,
          customerId,
          currency: 'USD',
          paymentMethods: ['CARD'],
          storeFrontId: null,
          billingDetails: DETAILS,
          callbackUrl: 'https://merchant.example/back',
          metadata: { plan: 'oolong' },
          phoneNumberRequired: false,
          createdAt: Date.now(),
          expiresAt,
        },
        { id: id('cs'), token: randomToken(randomBytes) },
      ),
    );
    return { merchantId, setupMethodId, customerId };
  };
  const refund = async (
    { intentId }: IntentRef,
    amountMinor: number | null = null,
    refundId = id('rf'),
  ): Promise<InsertedRefund & { ref: { merchantId: string; refundId: string } }> => {
    const order = { merchantId, refundId, intentId, amountMinor, nowAt: Date.now() };
    await withKey(refundId).catch(() => undefined);
    const inserted = await db.transaction((tx) => insertRefund(tx, order));
    return { ...inserted, ref: { merchantId, refundId } };
  };
  /** Pays an order. Repeats the call while no worker accepts it, and while the outcome is open, as API clients do. */
  const pay = async (order: PaymentOrder): Promise<PaymentOutcome> => {
    for (;;) {
      const outcome = await untilAccepted(() => env.orders.execute('payment', order));
      if (outcome.kind !== 'pending') return outcome;
    }
  };
  /** The body of every event of a stream, in order. */
  const told = async (streamId: string) => {
    const rows = await db
      .select({ body: outboxEvents.body })
      .from(outboxEvents)
      .where(eq(outboxEvents.streamId, streamId))
      .orderBy(asc(outboxEvents.sequence));
    return rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  };

  return {
    card,
    payment,
    saved,
    redeemed,
    setup,
    pay,
    refund,
    /** Creates the intent of a tokenised charge with a saved card. Its workflow is not started. */
    tokenised: async (number?: string) => payment('tokenised', await saved(number)),
    /** Creates a hosted payment and pays it. */
    paid: async (terms: Partial<NewPayment> = {}) => {
      const ref = await payment('hosted', terms);
      const outcome = await pay({ ...ref, token: await card() });
      if (outcome.kind !== 'succeeded') throw new Error(`not paid: ${outcome.kind}`);
      return ref;
    },
    /** The charges of an intent in the gateway's own records, such as `succeeded 5000 x1`. */
    book: async ({ intentId }: { intentId: string; merchantId?: string }) => {
      const { charges } = await env.control('GET', `/control/charges?intentId=${intentId}`);
      return (charges as unknown as BookedLine[]).map(
        ({ outcome, amountMinor, refundedMinor, sentCount }) =>
          `${outcome} ${amountMinor} x${sentCount}${refundedMinor ? ` back ${refundedMinor}` : ''}`,
      );
    },
    /** The first attempt of an intent. */
    attempt: async ({ intentId }: { intentId: string }) => {
      const [row] = await db
        .select()
        .from(paymentAttempts)
        .where(eq(paymentAttempts.intentId, intentId))
        .orderBy(asc(paymentAttempts.attemptNumber));
      if (!row) throw new Error(`no attempt of ${intentId}`);
      return row;
    },
    /** Charges an attempt's amount at the gateway directly, without its activity. Returns the charge's id. */
    chargeOutside: async (
      attempt: typeof paymentAttempts.$inferSelect,
      key = attempt.gatewayKey,
    ): Promise<string> => {
      const { intentId, paymentMethodId, gatewayMethodId, amountMinor, currency } = attempt;
      const reference = { merchantId, intentId, subscriptionId: null, paymentMethodId };
      const money = { amountMinor, currency };
      const charge = { key, gatewayChargeId: null, gatewayMethodId, ...money, reference };
      const outcome = await env.gateway.charge(charge);
      if (outcome.kind !== 'succeeded') throw new Error(`not charged: ${outcome.kind}`);
      return outcome.gatewayChargeId;
    },
    attempts: async ({ intentId }: IntentRef) => {
      const rows = await db
        .select()
        .from(paymentAttempts)
        .where(eq(paymentAttempts.intentId, intentId))
        .orderBy(asc(paymentAttempts.attemptNumber));
      return rows.map(({ attemptNumber, state }) => `${attemptNumber} ${state}`);
    },
    intent: async ({ intentId }: IntentRef) => {
      const [row] = await db.select().from(paymentIntents).where(eq(paymentIntents.id, intentId));
      if (!row) throw new Error(`no intent ${intentId}`);
      return row;
    },
    refundRow: async ({ refundId }: { refundId: string }) => {
      const [row] = await db.select().from(refunds).where(eq(refunds.id, refundId));
      if (!row) throw new Error(`no refund ${refundId}`);
      return row;
    },
    methodsOf: async (customerId: string) => {
      const rows = await db
        .select()
        .from(paymentMethods)
        .where(eq(paymentMethods.customerId, customerId));
      return rows.map(({ id: methodId, status }) => ({ id: methodId, status }));
    },
    told,
    /** `type status` of every event of a stream, in order. */
    story: async (streamId: string) =>
      (await told(streamId)).map(
        (event) => `${String(event['eventType'])} ${String(event['status'])}`,
      ),
  };
}

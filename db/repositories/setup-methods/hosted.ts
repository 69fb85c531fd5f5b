import { and, eq, isNotNull, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { checkoutSessions, checkoutTries, setupMethods } from '../../schema/checkouts.ts';
import { customers, paymentMethods } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { fillInCustomer, filledIn, opensWith } from '../checkouts/sessions.ts';
import type { GivenDetails } from '../checkouts/sessions.ts';
import { hasValues, isRecord } from '../is-record.ts';

export type HostedSetup = NonNullable<Awaited<ReturnType<typeof findHostedSetup>>>;

type SetupSessionRef = Pick<HostedSetup, 'merchantId' | 'sessionId' | 'setupMethodId'>;

/** Returns the setup session that a token opens; null if there is none. */
export async function findHostedSetup(db: Db, token: string) {
  const [row] = await db
    .select({
      merchantId: checkoutSessions.merchantId,
      sessionId: checkoutSessions.id,
      tries: checkoutSessions.tries,
      lastErrorCode: checkoutSessions.lastErrorCode,
      setupMethodId: setupMethods.id,
      customerId: setupMethods.customerId,
      status: setupMethods.status,
      expiresAt: setupMethods.expiresAt,
      completedAt: setupMethods.completedAt,
      paymentMethodId: setupMethods.paymentMethodId,
      customerDetails: setupMethods.billingDetails,
      savedDetails: customers.details,
      phoneNumberRequired: setupMethods.phoneNumberRequired,
      locale: setupMethods.locale,
      callbackUrl: setupMethods.callbackUrl,
      merchantName: merchants.name,
      merchantSettings: merchants.settings,
      mode: merchants.mode,
      card: { brand: paymentMethods.brand, lastFourDigit: paymentMethods.lastFourDigit },
    })
    .from(checkoutSessions)
    .innerJoin(
      setupMethods,
      isRecord(setupMethods, checkoutSessions.merchantId, checkoutSessions.setupMethodId),
    )
    .innerJoin(customers, isRecord(customers, setupMethods.merchantId, setupMethods.customerId))
    .innerJoin(merchants, eq(merchants.id, checkoutSessions.merchantId))
    .leftJoin(
      paymentMethods,
      isRecord(paymentMethods, setupMethods.merchantId, setupMethods.paymentMethodId),
    )
    .where(opensWith(token, 'setup_method'));
  return row ?? null;
}

/**
 * Adds the payer's details to the session and the customer. Fills in only fields that the merchant left
 * empty.
 */
export async function fillInSetupDetails(
  db: Db,
  setup: HostedSetup,
  given: GivenDetails,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx
      .select({ details: setupMethods.billingDetails })
      .from(setupMethods)
      .where(isSetup(setup))
      .for('no key update');
    if (!row) return;
    const billingDetails = filledIn(row.details, given);
    await tx.update(setupMethods).set({ billingDetails }).where(isSetup(setup));
    await fillInCustomer(tx, setup, given);
  });
}

/**
 * Sets the session to FAILED if `limit` of its cards were declined. A card with an unknown outcome does not
 * count, because it may still be saved. Changes only a session in CREATED.
 */
export async function failSpentSetup(db: Db, setup: SetupSessionRef, limit: number): Promise<void> {
  const declined = db
    .select({ count: sql`count(*)` })
    .from(checkoutTries)
    .where(
      and(
        hasValues(checkoutTries, { merchantId: setup.merchantId, sessionId: setup.sessionId }),
        isNotNull(checkoutTries.errorCode),
      ),
    );
  await db
    .update(setupMethods)
    .set({ status: 'FAILED' })
    .where(and(isSetup(setup), eq(setupMethods.status, 'CREATED'), sql`(${declined}) >= ${limit}`));
}

function isSetup(setup: Pick<HostedSetup, 'merchantId' | 'setupMethodId'>) {
  return isRecord(setupMethods, setup.merchantId, setup.setupMethodId);
}

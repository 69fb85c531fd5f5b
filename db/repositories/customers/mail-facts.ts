import { desc, eq } from 'drizzle-orm';
import { usableBranding } from '../../../domain/branding.ts';
import type { Branding } from '../../../domain/branding.ts';
import type { Locale } from '../../../domain/locales.ts';
import { nextCharge } from '../../../domain/subscription/charge-time.ts';
import { nextAmountMinor } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { consents } from '../../schema/consents.ts';
import { customers } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';

/** What an event does not say, and an e-mail about it does: as it is when the e-mail is sent. */
export interface MailFacts {
  readonly merchantName: string;
  readonly isTest: boolean;
  readonly branding: Branding;
  /** The customer's present address; null without one. */
  readonly email: string | null;
  /** The language of the payer's last page, else the merchant's choice; null if neither is known. */
  readonly locale: Locale | null;
  readonly productName: string | null;
  /** The subscription's next payment; null if none comes. */
  readonly next: { amountMinor: number; currency: string; dueAt: number; at: number } | null;
  /** The intent of the cycle that the subscription owes. */
  readonly owedIntentId: string | null;
  readonly paymentMethodId: string | null;
}

interface MailSubject {
  readonly merchantId: string;
  readonly customerId?: string | null | undefined;
  readonly subscriptionId?: string | null | undefined;
  readonly intentId?: string | null | undefined;
}

/** Null without such a merchant. */
export async function readMailFacts(db: Db, subject: MailSubject): Promise<MailFacts | null> {
  const { merchantId } = subject;
  const subscriptionId = subject.subscriptionId ?? '';
  const intentId = subject.intentId ?? '';
  const [row] = await db
    .select({
      name: merchants.name,
      mode: merchants.mode,
      settings: merchants.settings,
      subscription: subscriptions,
      intent: paymentIntents,
    })
    .from(merchants)
    .leftJoin(subscriptions, isRecord(subscriptions, merchantId, subscriptionId))
    .leftJoin(paymentIntents, isRecord(paymentIntents, merchantId, intentId))
    .where(eq(merchants.id, merchantId));
  if (!row) return null;
  const { subscription, intent, settings } = row;
  const sold = subscription ?? intent;
  const state = subscription?.state ?? null;
  const next = state && nextCharge(state);
  const customerId = sold?.customerId ?? subject.customerId ?? null;
  const payer =
    customerId === null
      ? null
      : await readPayer(db, { merchantId, customerId, subscriptionId, intentId });
  return {
    merchantName: row.name,
    isTest: row.mode === 'test',
    branding: usableBranding(settings.branding ?? {}),
    email: payer?.email ?? null,
    locale: payer?.locale ?? sold?.locale ?? null,
    productName: sold?.productPage?.name ?? sold?.description ?? null,
    next: next && {
      ...next,
      amountMinor: nextAmountMinor(state),
      currency: state.terms.currency,
    },
    owedIntentId: state?.owed?.intentId ?? null,
    paymentMethodId: state?.paymentMethodId ?? null,
  };
}

/** The payer's present address, and the language of the last page on which they gave a card for this. */
async function readPayer(
  db: Db,
  sold: { merchantId: string; customerId: string; subscriptionId: string; intentId: string },
) {
  const { merchantId, customerId, subscriptionId, intentId } = sold;
  const [row] = await db
    .select({ details: customers.details, locale: consents.locale })
    .from(customers)
    .leftJoin(
      consents,
      hasValues(consents, {
        merchantId,
        customerId,
        ...(subscriptionId === '' ? { intentId } : { subscriptionId }),
      }),
    )
    .where(isRecord(customers, merchantId, customerId))
    .orderBy(desc(consents.createdAt))
    .limit(1);
  return row && { email: row.details.email ?? null, locale: row.locale };
}

import { insertConsent } from '../../../db/repositories/customers/consents.ts';
import { newId } from '../../../domain/ids.ts';
import type { ApiDeps } from '../../deps.ts';
import { TEXT_VERSION } from '../../../domain/language/language.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { CardPages, CardSubject } from './card-page-kind.ts';
import type { SaleText } from './views.tsx';

/** Returns the whole offer as one text. The sentences come last, because a gateway may cut a long text. */
export function offerText({ say, join }: Language, sale: SaleText): string {
  const { merchantName, productName, offer, consent } = sale;
  const lines = offer.lines.map(({ label, text }) => `${label}: ${text}`);
  const zone = offer.lines.some(({ isDated }) => isDated) ? [say('datesInUtc')] : [];
  const sentences = [...zone, offer.onceEntered, ...(consent === null ? [] : [consent])];
  return [merchantName, productName, ...lines, join(...sentences)].join(' · ');
}

/** Stores what the payer agrees to by giving a card. A repeat in the same words stores nothing. */
export async function recordConsent<Subject extends CardSubject>(
  { db, now, random }: Pick<ApiDeps, 'db' | 'now' | 'random'>,
  pages: Pick<CardPages<Subject>, 'purpose' | 'subjectId' | 'dueNow'>,
  subject: Subject,
  { language, sale }: { readonly language: Language; readonly sale: SaleText },
): Promise<void> {
  const { merchantId, customerId, sessionId } = subject;
  const { purpose } = pages;
  const subjectId = pages.subjectId(subject);
  const due = pages.dueNow?.(subject) ?? null;
  const createdAt = now();
  await insertConsent(db, {
    merchantId,
    id: newId('cns', createdAt, random),
    customerId,
    sessionId,
    subscriptionId: ['subscription', 'update_method'].includes(purpose) ? subjectId : null,
    intentId: purpose === 'payment' ? subjectId : null,
    setupMethodId: purpose === 'setup_method' ? subjectId : null,
    locale: language.locale,
    textVersion: TEXT_VERSION,
    shown: offerText(language, sale),
    amountMinor: due?.amountMinor ?? null,
    currency: due?.currency ?? null,
    createdAt,
  });
}

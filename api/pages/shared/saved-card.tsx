import { findOfferedCard } from '../../../db/repositories/customers/payment-methods.ts';
import type { ApiDeps } from '../../deps.ts';
import type { CardGateway, PageRequest } from './card-page.tsx';
import type { CardPages, CardSubject } from './card-page-kind.ts';
import { formToken } from './own-requests.ts';
import { brandName } from '../../../domain/language/card-text.ts';
import { OwnForm } from './views.tsx';

type OfferedCard = NonNullable<Awaited<ReturnType<typeof findOfferedCard>>>;

/**
 * Returns the customer's saved card, which the page offers until a card is tried there; null without one. Never on the
 * page of a link, which any person may open: only a merchant's request names the customer of the page.
 */
export async function offeredCard<Subject extends CardSubject>(
  { db, now }: Pick<ApiDeps, 'db' | 'now'>,
  pages: CardPages<Subject>,
  subject: Subject,
  gateway: CardGateway | null,
): Promise<OfferedCard | null> {
  const isFresh = pages.stageOf(subject) === 'open' && pages.limitsOf(subject).tries === 0;
  if (!pages.savedAction || !isFresh || gateway === null || subject.linkId) return null;
  return findOfferedCard(db, { ...subject, gateway: gateway.name }, now());
}

export const savedCardPath = (home: string, id: string): string => `${home}/saved/${id}`;

/** The form that pays with the saved card; null if the page offers none. */
export function savedCardForm<Subject extends CardSubject>(
  pages: CardPages<Subject>,
  { home, sessionKey, language }: PageRequest,
  subject: Subject,
  card: OfferedCard | null,
) {
  if (card === null || !pages.savedAction) return null;
  const shown = { brand: brandName(card), digits: card.lastFourDigit };
  return (
    <OwnForm
      action={savedCardPath(home, card.id)}
      formToken={formToken(sessionKey, subject.sessionId)}
      button={pages.savedAction(language, subject, shown)}
    />
  );
}

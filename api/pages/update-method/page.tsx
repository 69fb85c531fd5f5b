import { formatAmount } from '../../../domain/money.ts';
import {
  chargesNewMethod,
  earliestAttemptAt,
  knownUntil,
  isDunned,
  nextPaymentAt,
} from '../../../domain/subscription/state.ts';
import { dateText } from '../checkout/offer.ts';
import {
  askCard,
  closedPage,
  lockedPage,
  processingPage,
  shownTestCards,
} from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { cardText } from '../shared/card-text.ts';
import { knownDetails } from '../shared/details-form.ts';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import type { Offer, OfferLine, Sale } from '../shared/views.tsx';
import { updateMethodPath } from '../../../runtime/update-links.ts';
import { withConfirmation } from './confirmation.tsx';
import { confirmationOf, isLatestKept, isLatestUnconfirmed, updateStageOf } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

const DECLINED_CARD =
  'Your card was declined and was not saved. Nothing was charged. Check the details and try again, ' +
  'or use another card.';

/** The page of a card change in its present stage, without a link to the merchant. Rules: D-33, D-44. */
export function updatePage(
  deps: PageDeps,
  update: MethodUpdate,
  nowAt: number,
  browser: string,
): Page {
  const back = { name: update.merchantName, url: null };
  switch (updateStageOf(update, nowAt)) {
    case 'open': {
      const page = askCard(deps, {
        home: updateMethodPath(update.token),
        browser,
        sessionId: update.sessionId,
        sale: saleOf(deps, update, nowAt),
        payerName: knownDetails(update).name,
        alert: alertOf(update),
      });
      return withConfirmation(deps, update, owedText(update), page);
    }
    case 'locked':
      return isLatestKept(update.tries) ? keptPage(update) : lockedPage(back);
    case 'processing':
      return processingPage(updateMethodPath(update.token));
    case 'saved':
      return notice(200, 'Your card was replaced', [
        `${newCardText(update)} Nothing was charged for the change.`,
        // The payment is still owed: the old card is being charged, or the next attempt has a later date.
        ...(isDunned(update.state)
          ? [`The payment of ${owedText(update)} that is due is tried with it next.`]
          : []),
      ]);
    case 'paid':
      return notice(200, 'Thank you: your payment was received', [
        `The payment that was due went through. ${newCardText(update)}`,
      ]);
    case 'expired': {
      const texts = [`Nothing was changed. Ask ${update.merchantName} for a new link.`];
      return closedPage(410, { title: 'This link has expired', texts }, back);
    }
    case 'closed':
      return closedPage(409, closedText(update), back);
  }
}

/** Returns why the subscription's status does not allow a new card. Rule: D-33. */
function closedText({ state, merchantName }: MethodUpdate): { title: string; texts: string[] } {
  const texts: Partial<Record<typeof state.status, string>> = {
    CREATED: `This subscription has not begun yet. Use the link that ${merchantName} gave you to start it.`,
    PAUSED:
      'This subscription is paused, and nothing is charged. Your card can be changed once it goes on.',
    ENDED: 'This subscription has ended. Nothing more will be charged.',
  };
  return {
    title: 'Your card cannot be changed here',
    texts: [texts[state.status] ?? 'Try again later.'],
  };
}

/** The page if the last allowed card was saved and its payment was declined. */
function keptPage(update: MethodUpdate): Page {
  return notice(403, 'Your new card was saved', [
    keptText(update),
    `This page takes no more cards. Ask ${update.merchantName} for a new link.`,
  ]);
}

function alertOf(update: MethodUpdate): string | null {
  const latest = update.tries.at(-1);
  if (isLatestKept(update.tries)) return `${keptText(update)} You can use another card.`;
  if (latest !== undefined) return latest.errorCode === null ? null : DECLINED_CARD;
  if (confirmationOf(update) !== null || !isLatestUnconfirmed(update)) return null;
  return `The payment of ${owedText(update)} was declined, and nothing was charged. Use another card.`;
}

/** A new card is kept even if the charge of the owed cycle is declined. Rule: D-30. */
function keptText(update: MethodUpdate): string {
  return `Your new card was saved, but the payment of ${owedText(update)} was declined.`;
}

function newCardText({ card }: MethodUpdate): string {
  const text = cardText(card);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} is used from now on.`;
}

function saleOf(deps: PageDeps, update: MethodUpdate, nowAt: number): Sale {
  const { productPage, description, merchantName } = update;
  return {
    merchantName,
    productName: 'Change your card',
    productDescription: productPage?.name ?? description,
    offer: offerOf(update, nowAt),
    cancelUrl: null,
    testCards: shownTestCards(deps, update.mode),
  };
}

/**
 * Returns the present card, and the amount that a new card is charged today. If the cycle has had 15
 * automatic attempts in 30 days, nothing is charged today. Rules: D-33, D-30.
 */
function offerOf(update: MethodUpdate, nowAt: number): Offer {
  const { state, card } = update;
  const now: OfferLine = { label: 'Card now', text: card === null ? 'None' : cardText(card) };
  const ownNow = state.testClockId === null ? nowAt : knownUntil(state);
  if (chargesNewMethod(state, ownNow)) {
    const owed = owedText(update);
    return {
      heading: 'New card',
      action: `Save card and pay ${owed}`,
      onceEntered: `As soon as you have entered it, ${owed} is charged.`,
      lines: [{ label: 'Charged today', text: `${owed}, which is due` }, now],
    };
  }
  const nextAt = state.status === 'UNPAID' ? earliestAttemptAt(state) : nextPaymentAt(state);
  return {
    heading: 'New card',
    action: 'Save card',
    onceEntered: 'Nothing is charged today.',
    lines: [
      { label: 'Charged today', text: 'Nothing' },
      now,
      ...(nextAt === null
        ? []
        : [{ label: 'Next payment', text: `${owedText(update)} on ${dateText(nextAt)}` }]),
    ],
  };
}

function owedText({ state }: MethodUpdate): string {
  return formatAmount(state.owed?.amountMinor ?? state.terms.amountMinor, state.terms.currency);
}

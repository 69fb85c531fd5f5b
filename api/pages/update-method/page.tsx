import { isSuperseded, needsAuthentication } from '../../../domain/subscription/authentication.ts';
import { nextChargeAt } from '../../../domain/subscription/charge-time.ts';
import {
  cancelAt,
  chargesNewMethod,
  chargesNewMethodNext,
  isBilled,
  isDunned,
  knownUntil,
  nextAmountMinor,
  nextRetryAt,
  takesNewMethod,
} from '../../../domain/subscription/state.ts';
import type {
  CyclePayment,
  UpdatableSubscription,
  UpdateTry,
} from '../../../db/repositories/subscriptions/method-updates.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import { bankLink, isAtBank, isAwaited, isUnconfirmed } from '../shared/bank.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import { validateCommand } from '../../../domain/subscription/validate-command.ts';
import type { Language } from '../../../domain/language/language.ts';
import { endPage } from '../shared/card-page.tsx';
import type { PageRequest, PageText } from '../shared/card-page.tsx';
import type { Asked, BankConfirmation, CardStage, OwnStage } from '../shared/card-page-kind.ts';
import { paymentReceipt, productText, savedCardReceipt } from '../shared/receipt.ts';
import { declineText, REASONS } from '../../../domain/language/decline-text.ts';
import type { Reason } from '../../../domain/language/decline-text.ts';
import type { Page } from '../shared/page.tsx';
import { nextPaymentLines } from '../../../domain/language/receipt-lines.ts';
import type { Purchase, Sold } from '../../../domain/language/receipt-lines.ts';
import { brandName, cardText } from '../../../domain/language/card-text.ts';
import type { ShownCard } from '../../../domain/language/card-text.ts';
import { OwnForm } from '../shared/views.tsx';
import type { ListRow, Offer, SaleText } from '../shared/views.tsx';
import { formToken } from '../shared/own-requests.ts';

/** A valid link, its subscription, and the cards tried on the page. */
export interface MethodUpdate extends UpdatableSubscription {
  readonly token: string;
  readonly sessionId: string;
  readonly expiresAt: number;
  /** Oldest first. */
  readonly tries: readonly UpdateTry[];
  readonly owedPayment: CyclePayment | null;
  /** The bank has asked for a confirmation, and the card's gateway supports it. */
  readonly canConfirm: boolean;
  /** The card that replaced the present one on this page. */
  readonly newCard: ShownCard | null;
  /** When the latest card of this page was saved, in business time; null if none was. */
  readonly changedAt: number | null;
  /** The first payment of a cycle that succeeded at `changedAt` or later; null without one. */
  readonly paid: PaidPayment | null;
}

/**
 * `saved`: the card was replaced. `paid`: and the owed payment succeeded. `closed`: the status allows no new method.
 * `kept`: as `locked`, but the latest card was saved before its charge was declined. `nowAt` is real time, like
 * `expiresAt`.
 */
export function updateStageOf(
  { tries, state, mode, expiresAt, paid, owedPayment }: MethodUpdate,
  nowAt: number,
): CardStage {
  if (nowAt >= expiresAt) return 'expired';
  const attempt = owedPayment?.attempt ?? null;
  if (isBilled(state.status) && isAwaited(attempt)) {
    if (isSuperseded(state)) return 'processing';
    // While the bank waits for the payer, the payer may give another card.
    if (isAtBank(attempt)) return 'open';
  }
  const results = tries.flatMap(({ command }) => (command ? [command.result] : []));
  for (const result of results) {
    if (result === null) return 'processing';
    if (result.kind === 'checkout' && result.outcome !== 'declined') return result.outcome;
  }
  if (!takesNewMethod(state.status)) return 'closed';
  // The first charge of the latest card failed, and a later one succeeded.
  if (isLatestKept(tries) && paid !== null && state.status !== 'UNPAID') return 'paid';
  if (tries.length < CARD_TRIES_MAX[mode]) return 'open';
  return isLatestKept(tries) ? 'kept' : 'locked';
}

/** `offered`: the payer can confirm with the bank. `begun`: the bank waits, or the outcome is unknown. */
export function confirmationOf({
  state,
  canConfirm,
  owedPayment,
}: MethodUpdate): 'offered' | 'begun' | null {
  if (!isBilled(state.status)) return null;
  if (state.openAttempt && isAwaited(owedPayment?.attempt ?? null)) return 'begun';
  return canConfirm && needsAuthentication(state) ? 'offered' : null;
}

function isLatestUnconfirmed({ owedPayment }: MethodUpdate): boolean {
  return isUnconfirmed(owedPayment?.attempt ?? null);
}

function isLatestKept(tries: readonly UpdateTry[]): boolean {
  const result = tries.at(-1)?.command?.result;
  return result?.kind === 'checkout' && result.outcome === 'declined';
}

export function askedOf(request: PageRequest, update: MethodUpdate, nowAt: number): Asked {
  const { language } = request;
  return {
    sale: saleOf(language, update, nowAt),
    alert: alertOf(language, update, nowAt),
    again: payAgain(request, update, nowAt),
    button: null,
    bank: confirmationAbove(request, update),
  };
}

export function donePage(language: Language, update: MethodUpdate, stage: OwnStage): Page {
  const { merchantName: name } = update;
  const { say, join } = language;
  const back = { name, url: null };
  switch (stage) {
    case 'saved': {
      const { state } = update;
      const isCharging = isSuperseded(state) && isBilled(state.status) && cancelAt(state) === null;
      // After the charge of the old card, which has no outcome yet, the new card is charged at `nextRetryAt`.
      const nextAt = isCharging ? (state.owed?.nextRetryAt ?? null) : nextChargeAt(state);
      const isTriedNext = isCharging || (isDunned(state) && nextAt !== null);
      const texts = [
        join(newCardText(language, update), say('nothingChargedNow')),
        ...(isTriedNext ? [say('dueIsTriedNext', { amount: owedText(language, update) })] : []),
      ];
      const { newCard: card, changedAt: at, receiptId, subscriptionId } = update;
      const saved: Sold = {
        card,
        at,
        reference: receiptId ?? subscriptionId,
        kind: 'subscription',
      };
      const next = { amount: owedText(language, update), at: nextAt };
      const receipt = savedCardReceipt(language, saved, purchaseOf(update), next);
      return endPage(language, 200, { title: say('cardReplacedTitle'), texts, receipt }, back);
    }
    case 'paid': {
      const text = join(say('duePaid'), newCardText(language, update));
      return paidPage(language, update, text, update.paid);
    }
    case 'kept': {
      const texts = [keptText(language, update), say('noMoreCards', { name })];
      return endPage(language, 403, { title: say('newCardSavedTitle'), texts }, back);
    }
    case 'closed':
    case 'done':
      return endPage(language, 409, closedText(language, update), back);
  }
}

export function paidPage(
  language: Language,
  update: MethodUpdate,
  text: string,
  paid: PaidPayment | null,
): Page {
  const receipt = paid === null ? [] : paymentReceipt(language, paid, purchaseOf(update));
  const title = language.say('paymentReceived');
  const back = { name: update.merchantName, url: null };
  return endPage(language, 200, { title, texts: [text], receipt }, back);
}

function purchaseOf(update: MethodUpdate): Purchase {
  return { ...productText(update), merchantName: update.merchantName };
}

function closedText({ say }: Language, { state, merchantName: name }: MethodUpdate): PageText {
  const texts: Partial<Record<typeof state.status, string>> = {
    CREATED: say('notBegun', { name }),
    ENDED: say('ended'),
  };
  return { title: say('cannotChangeTitle'), texts: [texts[state.status] ?? say('tryLater')] };
}

function alertOf(language: Language, update: MethodUpdate, nowAt: number): string | null {
  const { say, join } = language;
  const latest = update.tries.at(-1);
  if (isLatestKept(update.tries)) return join(keptText(language, update), say('useAnotherCard'));
  if (latest !== undefined) {
    return latest.errorCode === null
      ? null
      : declineText(language, 'cardDeclined', latest.errorCode);
  }
  const wasPaidInVain = isLatestUnconfirmed(update) || isCoolingDown(update, nowAt);
  if (confirmationOf(update) !== null || !wasPaidInVain) return null;
  return say('dueDeclined', { amount: owedText(language, update) });
}

function keptText(language: Language, update: MethodUpdate): string {
  return language.say('newCardKept', { amount: owedText(language, update) });
}

function newCardText(language: Language, { newCard: card }: MethodUpdate): string {
  return card === null
    ? language.say('yourCardUsedFromNowOn')
    : language.say('usedFromNowOn', { card: cardText(language, card) });
}

function saleOf(language: Language, update: MethodUpdate, nowAt: number): SaleText {
  const { merchantName } = update;
  const { say } = language;
  const isDue = isChargedNow(update, nowAt);
  return {
    merchantName,
    productName: isDue
      ? say('amountIsDue', { amount: owedText(language, update) })
      : say('changeCard'),
    productDescription: productText(update).productName,
    offer: offerOf(language, update, isDue),
    consent: language.say('consentSubscription', { name: merchantName }),
  };
}

/** True if a new card is charged at once, or after the open attempt has failed. */
export function isChargedNow(update: MethodUpdate, nowAt: number): boolean {
  const { state } = update;
  return chargesNewMethod(state) || chargesNewMethodNext(state, ownTime(update, nowAt));
}

/** The present time, or that of the subscription's test clock. */
function ownTime({ state }: MethodUpdate, nowAt: number): number {
  return state.testClockId === null ? nowAt : knownUntil(state);
}

/** True for four hours after a manual retry. */
function isCoolingDown(update: MethodUpdate, nowAt: number): boolean {
  const { status, openAttempt, cooldownUntilAt } = update.state;
  const isDeclined = status === 'UNPAID' && openAttempt === null;
  return isDeclined && cooldownUntilAt !== null && ownTime(update, nowAt) < cooldownUntilAt;
}

/** By the rules of a manual retry. Not after a final decline, nor after a card was tried on the page. */
export function canPayAgain(update: MethodUpdate, nowAt: number): boolean {
  const { state, card } = update;
  const retry = { kind: 'manualRetry', commandId: '' } as const;
  const isAllowed = validateCommand(state, retry, ownTime(update, nowAt)).ok;
  const isFresh = update.tries.length === 0 && state.owed?.retriesStopped === false;
  return isAllowed && isFresh && card !== null;
}

export const payAgainPath = (home: string, intentId: string): string => `${home}/again/${intentId}`;

function payAgain(request: PageRequest, update: MethodUpdate, nowAt: number) {
  const { card, state, sessionId } = update;
  if (card === null || state.owed === null || !canPayAgain(update, nowAt)) return null;
  return (
    <OwnForm
      action={payAgainPath(request.home, state.owed.intentId)}
      formToken={formToken(request.sessionKey, sessionId)}
      button={request.language.say('payAgain', {
        brand: brandName(card),
        digits: card.lastFourDigit,
      })}
    />
  );
}

/**
 * Returns the present card, and since when the amount is due that a new card is charged at once, or after the open
 * attempt has failed. Else the offer names the date of the next payment.
 */
function offerOf(language: Language, update: MethodUpdate, isDue: boolean): Offer {
  const { state, card } = update;
  const { say, money } = language;
  const amount = owedText(language, update);
  const now: ListRow[] =
    card === null
      ? []
      : [{ label: say('cardNow'), text: cardText(language, card), brand: card.brand }];
  if (isDue) {
    return {
      heading: say('newCard'),
      action: say('saveCardAndPay', { amount }),
      onceEntered: say('chargedOnceEntered', { amount }),
      lines: [
        ...now,
        ...dueRows(language, update),
        ...(isDunned(state) ? nextTryRows(language, update) : []),
      ],
    };
  }
  return {
    heading: say('newCard'),
    action: say('saveCard'),
    onceEntered: say('nothingIsChargedToday'),
    lines: [
      { label: say('chargedToday'), text: money(0, state.terms.currency), isSum: true },
      ...now,
      ...dueRows(language, update),
      ...nextRows(language, update, amount),
    ],
  };
}

function nextRows(language: Language, { state }: MethodUpdate, amount: string): ListRow[] {
  const { say } = language;
  const at = nextChargeAt(state);
  return state.status === 'PAUSED' && at === null
    ? [{ label: say('nextPayment'), text: say('paused') }]
    : nextPaymentLines(language, { amount, at });
}

/** Empty if none was declined. */
function dueRows({ say, date }: Language, update: MethodUpdate): ListRow[] {
  const { owed } = update.state;
  if (owed === null || !isDunned(update.state)) return [];
  const reason = reasonOf(update);
  return [
    { label: say('dueSince'), text: date(owed.dueAt), isDated: true },
    ...(reason === null ? [] : [{ label: say('dueReason'), text: say(reason) }]),
  ];
}

/** Null after a card was tried here: the reason would help a person who tests stolen cards. */
function reasonOf(update: MethodUpdate): Reason | null {
  const code = update.state.owed?.lastDeclineCode ?? null;
  if (update.tries.length > 0 || confirmationOf(update) !== null) return null;
  return isDeclineCode(code) ? REASONS[code] : null;
}

/** Empty if the payer can confirm with the bank. */
function nextTryRows({ say, dateTime }: Language, update: MethodUpdate): ListRow[] {
  if (confirmationOf(update) !== null) return [];
  const nextAt = nextRetryAt(update.state);
  const text =
    nextAt === null ? say('noNextTry') : say('withPresentCard', { date: dateTime(nextAt) });
  return [{ label: say('nextTry'), text }];
}

function owedText({ money }: Language, { state }: MethodUpdate): string {
  return money(nextAmountMinor(state), state.terms.currency);
}

/** The address at which a session shows its outcome. At its own address the link begins the next session. */
export const outcomePath = (home: string): string => `${home}?outcome`;

export const confirmPath = (home: string): string => `${home}/bank`;

/** Null unless the bank asks the payer to confirm the owed payment. */
function confirmationAbove(request: PageRequest, update: MethodUpdate): BankConfirmation | null {
  const confirmation = confirmationOf(update);
  const { owed } = update.state;
  const { sessionKey, language, home } = request;
  const { say } = language;
  if (confirmation === null || owed === null) return null;
  const action =
    confirmation === 'offered' ? (
      <OwnForm
        action={confirmPath(home)}
        formToken={formToken(sessionKey, update.sessionId)}
        button={say('confirmWithBank')}
      />
    ) : (
      bankLink(request, owed.intentId)
    );
  const alert = isLatestUnconfirmed(update) ? say('notConfirmed') : null;
  return { amount: owedText(language, update), alert, action };
}

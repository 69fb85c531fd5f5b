import { addTrial, cycleAt } from '../../../domain/calendar.ts';
import { nextChargeAt } from '../../../domain/subscription/charge-time.ts';
import { nextAmountMinor } from '../../../domain/subscription/state.ts';
import { cycleAmountMinor, totalAmountMinor } from '../../../domain/subscription/terms.ts';
import type { Terms } from '../../../domain/subscription/terms.ts';
import type { Sold } from '../../../domain/language/receipt-lines.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { ListRow, Offer, SaleText } from '../shared/views.tsx';
import {
  fillInDetails,
  findCheckout,
  markOpened,
} from '../../../db/repositories/checkouts/sessions.ts';
import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import { checkoutPath, readSessionToken } from '../../../runtime/payer-links.ts';
import { callbackUrl, endPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import type { Asked, CardStage, PageRoutes } from '../shared/card-page-kind.ts';
import { latestAttempt } from '../../../db/repositories/payments/shown-attempts.ts';
import { bankLink, declinedText, isAtBank } from '../shared/bank.tsx';
import type { PageRequest, PageText } from '../shared/card-page.tsx';
import type { Page } from '../shared/page.tsx';
import { paymentReceipt, productText, savedCardReceipt } from '../shared/receipt.ts';
import { intentEvent, subscriptionEvent } from '../../../domain/subscription/change.ts';
import type { EventDraft } from '../../../domain/events.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

const EVERY = {
  DAY: 'everyDay',
  WEEK: 'everyWeek',
  MONTH: 'everyMonth',
  YEAR: 'everyYear',
} as const;
const FREE = {
  DAY: 'freeDays',
  WEEK: 'freeWeeks',
  MONTH: 'freeMonths',
  YEAR: 'freeYears',
} as const;

/** Returns the charges that the payer agrees to by paying at `nowAt`, with dates in UTC. */
export function offerOf({ say, money, date }: Language, terms: Terms, nowAt: number): Offer {
  const regular = money(terms.amountMinor, terms.currency);
  const { trial, cycleCount } = terms;
  const firstAt = trial === null ? nowAt : addTrial(nowAt, trial.interval, trial.count);
  const dateOf = (index: number): string =>
    date(cycleAt(firstAt, terms.interval, terms.intervalCount, index));
  const charges = say(EVERY[terms.interval], { amount: regular, count: terms.intervalCount });
  const today = money(cycleAmountMinor(terms, 1), terms.currency);
  const total = money(totalAmountMinor(terms), terms.currency);
  const payments = say('amountInPayments', {
    amount: total,
    payments: say('payments', { count: cycleCount }),
  });
  const inAll: ListRow = {
    label: say('inAll'),
    isDated: cycleCount > 1,
    text:
      cycleCount === 1
        ? payments
        : say('lastPaymentOn', { payments, date: dateOf(cycleCount - 1) }),
  };

  if (trial !== null) {
    const free = say(FREE[trial.interval], { count: trial.count });
    const first = { amount: regular, date: dateOf(0), free };
    return {
      heading: say('yourCard'),
      action: say('startTrial'),
      onceEntered: say('trialOnceEntered'),
      lines: [
        { label: say('today'), text: money(0, terms.currency), isSum: true },
        { label: say('thereafter'), text: say('amountOnAfter', first), isDated: true },
        ...(cycleCount === 1 ? [] : [{ label: say('afterThat'), text: charges }]),
        inAll,
      ],
    };
  }
  const hasUpfrontAmount = cycleAmountMinor(terms, 1) !== terms.amountMinor;
  return {
    action: say('pay', { amount: today }),
    onceEntered: say('chargedOnceEntered', { amount: today }),
    lines: [
      { label: say(hasUpfrontAmount ? 'todayUpfront' : 'today'), text: today, isSum: true },
      ...(cycleCount === 1
        ? []
        : [{ label: say('thereafter'), text: say('fromDate', { charges, date: dateOf(1) }) }]),
      inAll,
    ],
  };
}

export function checkoutRoutes(routes: PageRoutes): void {
  const { deps } = routes;
  const { db, webhooks, workflows } = deps;
  const nowOf = (checkout: Checkout): number => businessNow(checkout, deps.now());

  cardPageRoutes<Checkout>(routes, {
    pathOf: checkoutPath,
    texts: { expired: 'paymentExpired' },
    find: (token) => findCheckout(db, readSessionToken(deps, token) ?? token),
    stageOf: (checkout) => stageOf(checkout, nowOf(checkout)),
    asked: (request, checkout) => askedOf(request, checkout, nowOf(checkout)),
    ownPage: donePage,
    dueNow: ({ state: { terms } }) => ({
      amountMinor: terms.trial === null ? cycleAmountMinor(terms, 1) : 0,
      currency: terms.currency,
    }),
    leaveUrl: (checkout) => withFacts(checkout, checkout.cancelUrl ?? checkout.callbackUrl),
    isDecided: ({ state }) => state.status !== 'CREATED',
    // `expiresAt` is real time. On a test clock `checkoutExpiresAt` is the clock's time, so it sets no limit here.
    limitsOf: ({ tries, state, clockReachedAt }) => ({
      tries,
      expiresAt: clockReachedAt === null ? state.checkoutExpiresAt : Infinity,
    }),
    savedAction: ({ say }, { state }, card) =>
      say(state.terms.trial === null ? 'payWith' : 'startTrialWith', card),
    purpose: 'subscription',
    subjectId: ({ subscriptionId }) => subscriptionId,
    bank: {
      intentOf: ({ state }) => state.owed?.intentId ?? null,
      attemptOf: async ({ merchantId, state }, intentId) =>
        state.owed?.intentId === intentId ? latestAttempt(db, { merchantId, intentId }) : null,
      lookUp: ({ merchantId, subscriptionId }) => workflows.recheck({ merchantId, subscriptionId }),
    },
    fillIn: (checkout, given) => fillInDetails(db, checkout, given),
    async opened(checkout) {
      if (checkout.openedAt !== null) return;
      const nowAt = nowOf(checkout);
      const isFirst = await markOpened(db, checkout, openedEvent(checkout, nowAt), nowAt);
      const { merchantId, subscriptionId: streamId } = checkout;
      // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
      if (isFirst) void webhooks.wakeStream({ merchantId, streamId });
    },
  });
}

/** `nowAt` is the result of `businessNow`. */
function askedOf(request: PageRequest, checkout: Checkout, nowAt: number): Asked {
  const { language } = request;
  const { attempt, lastErrorCode, state } = checkout;
  const { owed, terms } = state;
  const amount = language.money(nextAmountMinor(state), terms.currency);
  return {
    sale: saleFrom(language, checkout, terms, nowAt),
    alert: declinedText(language, attempt, lastErrorCode),
    button: terms.trial === null ? 'continueToPayment' : 'continueToYourCard',
    bank: isAtBank(attempt) ? { amount, action: bankLink(request, owed?.intentId ?? '') } : null,
  };
}

function donePage(language: Language, checkout: Checkout): Page {
  const receipt = receiptOf(language, checkout);
  const { callbackUrl: url, merchantName: name } = checkout;
  const onward = { name, url: withFacts(checkout, url) };
  return endPage(language, 200, { ...resultText(language, checkout), receipt }, onward);
}

function isPaidAtOnce({ cycleCount, trial }: Terms): boolean {
  return cycleCount === 1 && trial === null;
}

export function saleFrom(
  language: Language,
  product: Pick<Checkout, 'merchantName' | 'productPage' | 'description'>,
  terms: Terms,
  nowAt: number,
): SaleText {
  const { merchantName } = product;
  const { say } = language;
  const { productName, productDescription } = productText(product);
  return {
    merchantName,
    productName: productName ?? say('subscription'),
    productDescription,
    offer: offerOf(language, terms, nowAt),
    // The card is saved for the customer also after a single payment.
    consent: say(isPaidAtOnce(terms) ? 'consentSavedCard' : 'consentSubscription', {
      name: merchantName,
    }),
  };
}

function resultText({ say, money, date }: Language, { state }: Checkout): PageText {
  const amount = money(nextAmountMinor(state), state.terms.currency);
  const nextAt = nextChargeAt(state);
  if (state.status === 'TRIALING' && nextAt !== null) {
    const texts = [say('trialStarted', { amount, date: date(nextAt) })];
    return { title: say('trialStartedTitle'), texts };
  }
  // After a trial, a pause and an unpause lead to ACTIVE before the first payment.
  if (state.status === 'ACTIVE' && nextAt !== null && state.cyclesCharged > 0) {
    const texts = [say('nextPaymentIs', { amount, date: date(nextAt) })];
    return { title: say('paymentReceived'), texts };
  }
  if (state.endReason === 'completed') {
    return { title: say('paymentReceived'), texts: [say('lastPayment')] };
  }
  if (state.status === 'ENDED' && state.cyclesCharged > 0) {
    const texts = [say('paymentsReceived', { count: state.cyclesCharged })];
    return { title: say('subscriptionEndedTitle'), texts };
  }
  return { title: say('checkoutCompleteTitle'), texts: [say('checkoutComplete')] };
}

function receiptOf(language: Language, checkout: Checkout): ListRow[] {
  const { paid, state, card, merchantName, receiptId, subscriptionId } = checkout;
  const purchase = { ...productText(checkout), merchantName };
  if (paid !== null) return paymentReceipt(language, paid, purchase);
  if (state.status !== 'TRIALING') return [];
  const saved: Sold = {
    card,
    at: null,
    reference: receiptId ?? subscriptionId,
    kind: 'subscription',
  };
  const amount = language.money(nextAmountMinor(state), state.terms.currency);
  const next = { amount, at: nextChargeAt(state) };
  return savedCardReceipt(language, saved, purchase, next);
}

function withFacts(
  { subscriptionId, state, receiptId }: Checkout,
  url: string | null,
): string | null {
  const facts = { subscription_id: subscriptionId, status: state.status, receipt_id: receiptId };
  return url === null ? null : callbackUrl(url, facts);
}

/** Returns the subscription's business time: the time of its test clock if it has one, else real time. */
export function businessNow(checkout: Checkout, realNowAt: number): number {
  return checkout.clockReachedAt ?? realNowAt;
}

export function stageOf({ state, tries, mode, attempt }: Checkout, nowAt: number): CardStage {
  if (state.status === 'CREATED') {
    if (state.openAttempt !== null) return isAtBank(attempt) ? 'atBank' : 'processing';
    if (nowAt >= state.checkoutExpiresAt) return 'expired';
    return tries >= CARD_TRIES_MAX[mode] ? 'locked' : 'open';
  }
  if (state.status === 'ENDED') {
    // If an attempt is open, the subscription was cancelled during a payment, which may still succeed.
    if (state.openAttempt !== null) return 'processing';
    if (state.endReason === 'checkout_expired') return 'expired';
    // `anchorAt` is null until a cycle is paid or a trial begins.
    if (state.anchorAt === null) return 'cancelled';
  }
  return 'done';
}

function openedEvent({ state }: Checkout, nowAt: number): EventDraft {
  return state.owed === null
    ? { ...subscriptionEvent('subscription.checkout_opened', state, nowAt), actor: 'payer' }
    : intentEvent('intent.checkout_opened', state.owed.intentId, nowAt, 'CREATED');
}

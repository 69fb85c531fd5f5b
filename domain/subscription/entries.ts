import { LATE_MS } from './charge-time.ts';
import { formatInstant } from '../calendar.ts';
import { limitText } from '../card-limits.ts';
import type { RetryAdvice } from '../declines.ts';
import type { DisputeStatus } from '../dispute.ts';
import { formatAmount } from '../money.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import { askedForBy, ordererName } from './actor.ts';
import type { Actor } from './actor.ts';
import { ADOPTED, PAYER_REASONS } from './charge-cause.ts';
import type { Entry, OfAttempt, Terms } from './entry-schema.ts';

export type { ChargeAtGateway, Entry, OfAttempt } from './entry-schema.ts';

/** `next` gives it the version of the state that it leads to. */
export type EntryDraft = WithoutVersion<Entry>;

type WithoutVersion<Kinds> = Kinds extends Entry ? Omit<Kinds, 'version'> : never;

type Edited = Extract<Entry, { kind: 'edited' }>;

/** The text of an entry, for merchants and for the Web UI. */
export interface EntryText {
  what: string;
  why: string;
}

/** Returns the entry in words. No other code makes this text, and none is stored. `terms`: of the subscription. */
export function textOf(entry: Entry, { currency }: Pick<Terms, 'currency'>): EntryText {
  switch (entry.kind) {
    case 'created':
    case 'imported':
      return { what: entry.kind, why: orderedBy(entry) };
    case 'edited':
      return { what: `edited: ${editedTerms(entry, currency)}`, why: orderedBy(entry) };
    case 'cancellation_planned':
      return { what: `cancelled at ${formatInstant(entry.endAt)}`, why: orderedBy(entry) };
    case 'cancellation_withdrawn':
      return { what: 'cancellation withdrawn', why: orderedBy(entry) };
    case 'manual_retry':
      return { what: 'manual retry accepted', why: orderedBy(entry) };
    case 'ended':
      return { what: `ended (${entry.reason})`, why: endedBecause(entry) };
    case 'paused': {
      const until = entry.resumeAt === null ? '' : ` until ${formatInstant(entry.resumeAt)}`;
      return { what: `paused${until}`, why: orderedBy(entry) };
    }
    case 'unpaused':
      return unpausedText(entry);
    case 'trial_begun':
      return { what: `trial until ${formatInstant(entry.until)}`, why: 'the payer saved a method' };
    case 'authentication_begun':
      return { what: 'the payer began to confirm the payment', why: 'the bank asks for it' };
    case 'method_replaced':
      return { what: 'payment method replaced', why: 'the payer gave another one' };
    case 'paid': {
      const amount = formatAmount(entry.amountMinor, entry.currency);
      return { what: `cycle ${entry.cycleNumber} paid, ${amount}`, why: attemptedBecause(entry) };
    }
    case 'declined': {
      const what = `cycle ${entry.cycleNumber} declined (${codesOf(entry)})`;
      const why = attemptedBecause(entry, entry.isWithdrawn);
      return { what, why: entry.advice ? `${why}; ${adviceText(entry.advice)}` : why };
    }
    case 'limited': {
      const what = `cycle ${entry.cycleNumber} waits until ${formatInstant(entry.untilAt)}`;
      return { what, why: limitText(entry) };
    }
    case 'unanswered':
      return { what: 'payment outcome unknown', why: 'the gateway did not answer' };
    case 'payer_asked':
      return { what: 'waiting for the payer', why: 'the bank asked' };
    case 'review':
      return { what: 'a payment needs a person', why: entry.reason };
    case 'unsent':
      return { what: 'payment not sent, and still due', why: entry.reason };
    case 'disputed': {
      const amount = formatAmount(entry.amountMinor, entry.currency);
      return { what: `${DISPUTED[entry.status]}, ${amount}`, why: `reason: ${entry.reason}` };
    }
    case 'late_charge': {
      const amount = formatAmount(entry.amountMinor, entry.currency);
      const why = `${entry.gatewayKey} had been settled as not paid; it is given back`;
      return { what: `a late charge came to light, ${amount}`, why };
    }
    case 'details_updated':
      return { what: 'card details updated', why: 'the card network reported new ones' };
    case 'notice_given':
    case 'notice_missed':
      return noticeText(entry, currency);
    case 'adopted': {
      const amount = formatAmount(entry.amountMinor, entry.currency);
      return { what: `cycle ${entry.cycleNumber} adopted, ${amount}`, why: ADOPTED };
    }
  }
}

type Notice = Extract<Entry, { kind: 'notice_given' | 'notice_missed' }>;

function noticeText(entry: Notice, currency: string): EntryText {
  const { kind, notice, chargeAt, amountMinor, dueAt, missedAt = [], chargeFromAt } = entry;
  const charge = `${formatAmount(amountMinor, currency)} on ${formatInstant(chargeAt)}`;
  const late = entry.at - dueAt < LATE_MS ? [] : [dueAt];
  const dates = [...missedAt, ...late].map(formatInstant).join(' and ');
  const wasDue = dates === '' ? '' : `; it had been due on ${dates}`;
  const isLate = chargeFromAt !== undefined && chargeFromAt > chargeAt;
  const wait = isLate ? `; it waits until ${formatInstant(chargeFromAt)}` : '';
  return kind === 'notice_given'
    ? { what: `notice given: ${notice}`, why: `next charge: ${charge}${wait}${wasDue}` }
    : { what: `notice missed: ${notice}`, why: `the charge was due first: ${charge}${wasDue}` };
}

const DISPUTED: Readonly<Record<DisputeStatus, string>> = {
  OPEN: 'a payment is disputed',
  WON: 'the dispute of a payment was won',
  LOST: 'the dispute of a payment was lost',
  CLOSED: 'the dispute of a payment ended without a decision',
};

function orderedBy({ actor }: Entry): string {
  return askedForBy(actor === 'operator' || actor === 'payer' ? actor : 'merchant');
}

function endedBecause(entry: Entry & { kind: 'ended' }): string {
  switch (entry.rule) {
    case 'command':
      return orderedBy(entry);
    case 'period_end':
      return 'it was cancelled at the end of its period';
    case 'checkout_expiry':
      return 'the checkout expired without a payment';
  }
}

function unpausedText(entry: Entry & { kind: 'unpaused' }): EntryText {
  const date = formatInstant(entry.nextPaymentAt);
  const what = entry.needsMethod
    ? `unpaused, calendar from ${date}; the card must be replaced first`
    : `unpaused, next payment ${date}`;
  const isPlanned = entry.rule === 'pause_end';
  return { what, why: isPlanned ? 'the end date of the pause was reached' : orderedBy(entry) };
}

function editedTerms(edit: Edited, currency: string): string {
  const { amountMinor, cycleCount, every, nextPaymentAt } = edit;
  const terms = [
    amountMinor !== undefined && `amount ${formatAmount(amountMinor, currency)}`,
    cycleCount !== undefined && `cycles ${cycleCount}`,
    every !== undefined && `every ${every.intervalCount} ${every.interval}`,
    nextPaymentAt !== undefined && `next payment ${formatInstant(nextPaymentAt)}`,
  ];
  return terms.filter((term) => term !== false).join(', ');
}

function codesOf({ code, gatewayCode = code, networkCode }: Declined): string {
  const atGateway = gatewayCode === code ? code : `${code}, at the gateway ${gatewayCode}`;
  return networkCode === undefined ? atGateway : `${atGateway}, at the network ${networkCode}`;
}

type Declined = Extract<Entry, { kind: 'declined' }>;

/** Returns what the bank advised, as a clause. */
function adviceText(advice: RetryAdvice): string {
  switch (advice.kind) {
    case 'never':
      return 'the bank advised no other try with this payment method';
    case 'new_details_needed':
      return 'the bank advised no other try before the payer gives new details';
    case 'not_before':
      return `the bank advised no other try before ${formatInstant(advice.at)}`;
  }
}

const TRIGGERS: Readonly<Record<AttemptTrigger, [why: string, actor: Actor]>> = {
  checkout: [PAYER_REASONS.checkout, 'payer'],
  scheduled: ['its date had come', 'schedule'],
  automatic_retry: ['the retry plan said so', 'retry_plan'],
  manual_retry: ['the merchant asked for a retry', 'merchant'],
  new_method: [PAYER_REASONS.new_method, 'payer'],
  authentication: [PAYER_REASONS.authentication, 'payer'],
  one_time: ['the merchant asked for a one-time charge', 'merchant'],
  tokenised: ['the merchant charged a saved method', 'merchant'],
};

/** Returns who caused the outcome of an attempt. Manual review is the operator's. */
export function actorOf({ trigger, orderedBy: orderer, dateSetBy, byPerson }: OfAttempt): Actor {
  if (byPerson) return 'operator';
  return orderer ?? dateSetBy ?? TRIGGERS[trigger][1];
}

function attemptedBecause(attempt: OfAttempt, isWithdrawn?: true): string {
  const { attemptNumber, byPerson } = attempt;
  const why = `${openedBecause(attempt)} (attempt ${attemptNumber})`;
  if (isWithdrawn) return `${why}; it was voided before the gateway received it`;
  return byPerson ? `${why}; a person settled it` : why;
}

function openedBecause({ trigger, orderedBy: orderer, dateSetBy }: OfAttempt): string {
  if (trigger === 'manual_retry' && orderer) return `${ordererName(orderer)} asked for a retry`;
  if (dateSetBy === undefined || dateSetBy === 'retry_plan') return TRIGGERS[trigger][0];
  if (dateSetBy === 'gateway') return 'the bank had set its date';
  if (dateSetBy === 'schedule') return 'the limit of its card allowed it';
  return dateSetBy === 'payer'
    ? PAYER_REASONS.new_method
    : `${ordererName(dateSetBy)} had set its date`;
}

import type { MailFacts } from '../../db/repositories/customers/mail-facts.ts';
import { declarationKinds } from '../../domain/declaration.ts';
import type { Contract, DeclarationKind } from '../../domain/declaration.ts';
import { isDeclineCode } from '../../domain/declines.ts';
import { invariant } from '../../domain/errors.ts';
import type { ShownCard } from '../../domain/language/card-text.ts';
import { confirmationLines, confirmationTitle } from '../../domain/language/declared-lines.ts';
import { REASONS } from '../../domain/language/decline-text.ts';
import { FIXED_WORDS } from '../../domain/language/fixed-words.ts';
import type { Language } from '../../domain/language/language.ts';
import { nextPaymentLines, purchaseLines } from '../../domain/language/receipt-lines.ts';
import type { Locale } from '../../domain/locales.ts';
import type { MailEventType } from '../../domain/mails.ts';

/** The fields of stored events of which e-mails are made. Each type of event has some of them. */
export interface MailedEvent {
  readonly eventId: string;
  readonly eventType: string;
  readonly eventTime: number;
  readonly customerId?: string;
  readonly subscriptionId?: string | null;
  readonly intentId?: string | null;
  readonly amount?: number;
  readonly currency?: string;
  readonly receiptId?: string | null;
  readonly card?: ShownCard | null;
  readonly errorCode?: string | null;
  readonly nextRetryAt?: number | null;
  readonly updatePaymentMethodLink?: string;
  readonly noticeOf?: { readonly date: number; readonly amount: number; readonly currency: string };
  readonly declarationId?: string;
  readonly name?: string;
  readonly email?: string;
  readonly reference?: string;
  readonly reason?: string | null;
  readonly endDate?: string | null;
  readonly declaredAt?: number;
  readonly language?: Locale;
  readonly outcome?: string;
  readonly portalId?: string;
  readonly expiresAt?: number;
}

export interface Line {
  readonly label: string;
  readonly text: string;
}

export interface Link {
  readonly text: string;
  readonly url: string;
}

export interface MailContent {
  readonly title: string;
  readonly texts: readonly string[];
  readonly lines: readonly Line[];
  /** What the payer is asked to do. */
  readonly action: Link | null;
  /** Where the payer cancels or withdraws. */
  readonly leave: readonly Link[];
}

/** Addresses of pages on which payers act. */
export interface MailLinks {
  readonly declare: (kind: DeclarationKind, reference: string) => string;
  readonly updateMethod: () => string;
  readonly portal: (portalId: string) => string;
}

interface Composing {
  readonly event: MailedEvent;
  readonly facts: MailFacts;
  readonly language: Language;
  readonly links: MailLinks;
  readonly nowAt: number;
}

/** Null: the event is nothing to the payer, or is true no longer. */
type Composed = (Pick<MailContent, 'title'> & Partial<MailContent>) | null;

const COMPOSE: Readonly<Record<MailEventType, (mail: Composing) => Composed>> = {
  'intent.success': receipt,
  'intent.failed': declined,
  'subscription.trialing': trialStarted,
  'subscription.ended': ended,
  'subscription.renewal_upcoming': notice(({ say, date }, at) =>
    say('renewsOn', { date: date(at) }),
  ),
  'subscription.trial_ending': notice(({ say, date }, at) =>
    say('trialEndsOn', { date: date(at) }),
  ),
  'subscription.amount_changing': notice(({ say }) => say('priceChanges')),
  'payment_method.expiring': notice(({ say }) => say('cardExpiresFirst'), { asksForCard: true }),
  'cancellation.received': declared('cancellation'),
  'withdrawal.received': declared('withdrawal'),
  'customer.portal_requested': portal,
};

export function compose(type: MailEventType, mail: Composing): MailContent | null {
  const composed = COMPOSE[type](mail);
  return composed && { texts: [], lines: [], action: null, leave: leaveLinks(mail), ...composed };
}

function contractOf({ subscriptionId, intentId }: MailedEvent): Contract {
  return subscriptionId
    ? { kind: 'subscription', reference: subscriptionId }
    : { kind: 'payment', reference: intentId ?? '' };
}

function leaveLinks({ event, language, links }: Composing): Link[] {
  const contract = contractOf(event);
  const words = FIXED_WORDS[language.locale];
  return declarationKinds(contract).map((kind) => ({
    text: words[kind].link,
    url: links.declare(kind, contract.reference),
  }));
}

function receipt({ event, facts, language }: Composing): Composed {
  const { say, money } = language;
  const { amount, currency, card, receiptId, intentId, eventTime } = event;
  invariant(amount !== undefined && currency !== undefined, 'a payment has an amount');
  const next = facts.next && {
    amount: money(facts.next.amountMinor, facts.next.currency),
    at: facts.next.at,
  };
  const { kind } = contractOf(event);
  const reference = receiptId ?? intentId ?? '';
  const sold = { card: card ?? null, at: eventTime, reference, kind };
  const lines = [
    { label: say('paidAmount'), text: money(amount, currency) },
    ...purchaseLines(language, facts, sold),
    ...nextPaymentLines(language, next),
  ];
  return { title: say('paymentReceived'), lines };
}

/** The amount and the date of a payment, as texts. */
const dated = (
  { money, date }: Language,
  { amountMinor, currency, at }: NonNullable<MailFacts['next']>,
) => ({ amount: money(amountMinor, currency), date: date(at) });

function trialStarted({ facts: { next }, language }: Composing): Composed {
  const { say } = language;
  if (next === null) return null;
  return { title: say('trialStartedTitle'), texts: [say('trialStarted', dated(language, next))] };
}

function ended({ language: { say } }: Composing): Composed {
  return { title: say('subscriptionEndedTitle'), texts: [say('ended')], leave: [] };
}

/** Of a decline on a hosted page, which the payer saw, the event has no link. */
function declined({ event, facts, language }: Composing): Composed {
  const { say, money, date } = language;
  const {
    amount,
    currency,
    intentId,
    errorCode = null,
    nextRetryAt,
    updatePaymentMethodLink,
  } = event;
  if (updatePaymentMethodLink === undefined || facts.owedIntentId !== intentId) return null;
  invariant(amount !== undefined && currency !== undefined, 'a declined payment has an amount');
  const what = isDeclineCode(errorCode) ? REASONS[errorCode] : 'reasonDeclined';
  const next = nextRetryAt ? say('withPresentCard', { date: date(nextRetryAt) }) : say('noNextTry');
  return {
    title: say('amountIsDue', { amount: money(amount, currency) }),
    lines: [
      { label: say('dueReason'), text: say(what) },
      { label: say('nextTry'), text: next },
    ],
    action: { text: say('changeCard'), url: updatePaymentMethodLink },
  };
}

function notice(
  title: (language: Language, chargeAt: number) => string,
  { asksForCard = false } = {},
) {
  return ({ event: { noticeOf }, facts: { next }, language, links }: Composing): Composed => {
    if (noticeOf === undefined || next?.dueAt !== noticeOf.date) return null;
    const { say } = language;
    return {
      title: title(language, next.at),
      texts: [say('nextPaymentIs', dated(language, next))],
      action: asksForCard ? { text: say('changeCard'), url: links.updateMethod() } : null,
    };
  };
}

function declared(kind: DeclarationKind) {
  return ({ event, facts, language }: Composing): Composed => {
    const { declarationId: id, name, email, reference, declaredAt: createdAt } = event;
    const isWhole = id !== undefined && name !== undefined && email !== undefined;
    invariant(
      isWhole && reference !== undefined && createdAt !== undefined,
      'a declaration has an id, name, address, reference and instant',
    );
    const { reason = null, endDate: endOn = null } = event;
    const told = { kind, id, name, email, reference, reason, endOn, createdAt };
    return {
      title: confirmationTitle(language, kind),
      texts: [language.say('keepMail', { name: facts.merchantName })],
      lines: confirmationLines(language, told),
      leave: [],
    };
  };
}

/** Null if the e-mail is so late that its link has expired. */
function portal({ event, facts, language, links, nowAt }: Composing): Composed {
  const { portalId, expiresAt } = event;
  invariant(portalId !== undefined && expiresAt !== undefined, 'a link expires');
  if (expiresAt <= nowAt) return null;
  const { say, time } = language;
  return {
    title: say('portalTitle', { name: facts.merchantName }),
    texts: [say('portalMail', { time: time(expiresAt) })],
    action: { text: say('continue'), url: links.portal(portalId) },
    leave: [],
  };
}

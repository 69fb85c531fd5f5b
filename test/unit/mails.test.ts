import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compose } from '../../activities/mails/compose.ts';
import type { MailedEvent } from '../../activities/mails/compose.ts';
import { renderMail } from '../../activities/mails/render.tsx';
import type { MailFacts } from '../../db/repositories/customers/mail-facts.ts';
import { languageOf } from '../../domain/language/language.ts';
import { LOCALES } from '../../domain/locales.ts';
import type { Locale } from '../../domain/locales.ts';
import { MAIL_EVENT_TYPES } from '../../domain/mails.ts';
import type { MailEventType } from '../../domain/mails.ts';

const EVENTS = JSON.parse(readFileSync('api/openapi/event-examples.json', 'utf8')) as Record<
  MailEventType,
  MailedEvent
>;

const FACTS: MailFacts = {
  merchantName: 'Tea House',
  isTest: false,
  branding: { termsUrl: 'https://tea.example/terms', colour: '#ffcc00' },
  email: 'ada@example.com',
  locale: null,
  productName: 'Oolong',
  next: {
    amountMinor: 1_999,
    currency: 'USD',
    dueAt: Date.UTC(2027, 0, 20),
    at: Date.UTC(2027, 0, 20),
  },
  owedIntentId: 'in_0002sSOLu0000000000002',
  paymentMethodId: null,
};

const LINKS = {
  declare: (kind: string, reference: string) => `https://pay.example/${kind}/${reference}`,
  updateMethod: () => 'https://pay.example/update',
  portal: (id: string) => `https://pay.example/portal/${id}`,
};

/** The facts at the time of the event: the next payment is the one that a notice tells of. */
function factsOf({ noticeOf }: MailedEvent): MailFacts {
  if (noticeOf === undefined) return FACTS;
  const { amount: amountMinor, currency, date: at } = noticeOf;
  return { ...FACTS, next: { amountMinor, currency, dueAt: at, at } };
}

function mailOf(
  type: MailEventType,
  locale: Locale = 'en',
  facts: MailFacts = factsOf(EVENTS[type]),
) {
  const language = languageOf(locale);
  const event = EVENTS[type];
  const nowAt = event.eventTime;
  const content = compose(type, { event, facts, language, links: LINKS, nowAt });
  if (content === null) return null;
  const { merchantName, branding, isTest } = facts;
  return { ...renderMail({ language, merchantName, branding, isTest, content }), content };
}

/** The lines before the links to leave and the footer. */
const wordsOf = (type: MailEventType) =>
  mailOf(type)
    ?.text.replaceAll('\u00A0', ' ')
    .split('\n')
    .filter((line) => line !== '')
    .filter((_, index, lines) => index < lines.findIndex((line) => /^(Cancel c|Terms)/.test(line)));

const DUE = (nextTry: string) => [
  'US$19.99 is due',
  'What happened: There was not enough money in the account',
  `Next try: ${nextTry}`,
  'Change your card:',
  'https://pay.example/update-method/eyJ2IjoxfQ.c2lnbmF0dXJl',
];

const IN_A_MONTH = '20 December 2026, with the present card';
const LATER = 'The next payment is US$24.99 on 20 November 2035.';

describe('the e-mail of an event', () => {
  it.each<[MailEventType, string[]]>([
    [
      'intent.success',
      [
        'Thank you: your payment was received',
        'Paid: US$19.99',
        'Product: Oolong',
        'Merchant: Tea House',
        'Card: Visa ending in 4242',
        'Date: 20 November 2026',
        'Reference: in_0002sSOLu0000000000001',
        'Next payment: US$19.99 on 20 January 2027',
      ],
    ],
    ['intent.failed', DUE(IN_A_MONTH)],
    [
      'subscription.ended',
      ['This subscription has ended', 'This subscription has ended. Nothing more will be charged.'],
    ],
    [
      'subscription.trialing',
      [
        'Your free trial has started',
        'Nothing was charged today. The first payment is US$19.99 on 20 January 2027.',
      ],
    ],
    ['subscription.renewal_upcoming', ['Your subscription renews on 20 November 2035', LATER]],
    ['subscription.amount_changing', ['The price of your subscription changes', LATER]],
    [
      'subscription.trial_ending',
      [
        'Your free trial ends on 4 December 2026',
        'The next payment is US$29.99 on 4 December 2026.',
      ],
    ],
    [
      'payment_method.expiring',
      [
        'Your card expires before the next payment',
        LATER,
        'Change your card:',
        'https://pay.example/update',
      ],
    ],
    [
      'withdrawal.received',
      [
        'Your withdrawal was received',
        'Tea House received this declaration. Keep this e-mail as your confirmation.',
        'Declaration: I withdraw from this contract.',
        'Number of the contract: sub_0002sSOLu0000000000002',
        'Name: Ada Example',
        'E-mail address: ada@example.com',
        'Received on: 20 November 2026 at 12:00',
        'Number of this confirmation: dcl_0002sSOLu0000000000002',
      ],
    ],
    [
      'customer.portal_requested',
      [
        'Your subscriptions with Tea House',
        'The link opens your page in one browser only, until 13:00 (UTC). If you did not ask for it, ignore this e-mail.',
        'Continue:',
        'https://pay.example/portal/prt_0002sSOLu0000000000001',
      ],
    ],
  ])('of %s says what the payer needs to know', (type, words) => {
    expect(wordsOf(type)).toEqual(words);
  });

  it('ends with where to cancel and to withdraw, the merchant’s terms, and why it came', () => {
    expect(mailOf('subscription.trialing')?.text.split('\n\n').slice(2)).toEqual([
      'Cancel contract here:\nhttps://pay.example/cancellation/sub_0002sSOLu0000000000002\n' +
        'Withdraw from contract here:\nhttps://pay.example/withdrawal/sub_0002sSOLu0000000000002',
      'Terms and conditions:\nhttps://tea.example/terms',
      'Dates are in UTC.\nYou receive this e-mail because you paid Tea House or subscribed with them.\n',
    ]);
  });

  it.each(LOCALES)('has every text in %s, and the same words in text and in HTML', (locale) => {
    for (const type of MAIL_EVENT_TYPES) {
      const mail = mailOf(type, locale);
      if (mail === null) throw new Error(`no e-mail of ${type}`);
      const { text, html, content } = mail;
      expect(text).not.toMatch(/[{}]|\b(undefined|null|NaN)\b/);
      expect(html).toContain(`<html lang="${locale}" dir="${locale === 'ar' ? 'rtl' : 'ltr'}">`);
      for (const link of [...content.leave, ...(content.action ? [content.action] : [])]) {
        expect(text).toContain(link.url);
        expect(html).toContain(`href="${link.url}"`);
      }
      const words = [content.title, ...content.texts, ...content.lines.map((line) => line.text)];
      for (const word of words) {
        expect(text).toContain(word);
        expect(html).toContain(word.replaceAll('&', '&amp;').replaceAll('"', '&quot;'));
      }
    }
  });

  it('has the merchant’s colour with a text that can be read on it', () => {
    expect(mailOf('payment_method.expiring')?.html).toContain('background:#ffcc00;color:#0d1526');
  });

  it('is none for a decline that the payer saw on a hosted page', () => {
    const { updatePaymentMethodLink: _, ...event } = EVENTS['intent.failed'];
    const language = languageOf('en');
    const mail = { event, facts: FACTS, language, links: LINKS, nowAt: event.eventTime };
    expect(compose('intent.failed', mail)).toBeNull();
  });

  it('is none if it is no longer true when it is sent: the amount was paid, the date has moved, the link has expired', () => {
    expect(mailOf('intent.failed', 'en', { ...FACTS, owedIntentId: null })).toBeNull();
    expect(mailOf('subscription.renewal_upcoming', 'en', FACTS)).toBeNull();
    expect(mailOf('payment_method.expiring', 'en', { ...FACTS, next: null })).toBeNull();
    expect(mailOf('subscription.trialing', 'en', { ...FACTS, next: null })).toBeNull();
    const event = EVENTS['customer.portal_requested'];
    const nowAt = event.expiresAt ?? 0;
    const late = { event, facts: FACTS, language: languageOf('en'), links: LINKS, nowAt };
    expect(compose('customer.portal_requested', late)).toBeNull();
  });

  it('of a payment without a subscription offers to withdraw, and not to cancel', () => {
    const event = { ...EVENTS['intent.success'], subscriptionId: null };
    const language = languageOf('en');
    const told = { event, facts: FACTS, language, links: LINKS, nowAt: event.eventTime };
    const mail = compose('intent.success', told);
    expect(mail?.leave).toEqual([
      {
        text: 'Withdraw from contract here',
        url: 'https://pay.example/withdrawal/in_0002sSOLu0000000000001',
      },
    ]);
  });

  it('of a payment has no line for a product or a next payment that is not known', () => {
    const facts = { ...FACTS, productName: null, next: null };
    expect(mailOf('intent.success', 'en', facts)?.content.lines.map(({ label }) => label)).toEqual([
      'Paid',
      'Merchant',
      'Card',
      'Date',
      'Reference',
    ]);
  });
});

import { z } from 'zod';
import type { Consent } from '../../../db/repositories/customers/consents.ts';
import { listConsents } from '../../../db/repositories/lists.ts';
import { LOCALES } from '../../../domain/locales.ts';
import {
  currencyCode,
  epochMs,
  EXTENSION,
  id,
  minorAmount,
  pageAnswer,
} from '../../answer-fields.ts';
import { answerPage, FILTERS, listQuery } from '../../lists.ts';
import { route } from '../../http/route.ts';

const ConsentAnswer = z
  .object({
    consentId: id('cns', 'consent'),
    customerId: id('cus', 'customer'),
    subscriptionId: id('sub', 'subscription').nullable(),
    intentId: id('in', 'payment intent').nullable(),
    setupMethodId: id('sm', 'setup session').nullable(),
    agreedAt: epochMs('When the payer gave a card, or went on to enter one, in real time.'),
    language: z.enum(LOCALES),
    textVersion: z.string().meta({ description: 'Version of the texts of the pages.' }),
    text: z.string().meta({
      description:
        'What the page showed: merchant, product, terms, amounts, dates and the sentence about later charges.',
    }),
    digest: z.string().meta({ description: 'SHA-256 of `text`, in hexadecimal digits.' }),
    amount: minorAmount(
      'Amount that is charged as soon as the card is given: 0 for a trial, null for a card that is only saved.',
    ).nullable(),
    currency: currencyCode.nullable(),
  })
  .meta({ id: 'Consent', ...EXTENSION });

const { customerId, subscriptionId } = FILTERS;

export const getConsents = route({
  operationId: 'listConsents',
  method: 'get',
  path: '/consents',
  tag: 'Declarations',
  summary: 'List what payers agreed to',
  description:
    'One record for each offer to which a payer agreed by giving a card on a page, newest first, in pages. None is ever deleted.',
  isExtension: true,
  query: { ...listQuery('cns'), customerId, subscriptionId },
  answer: pageAnswer('A page of consents.', ConsentAnswer, {
    consentId: 'cns_0002sSOLuU9wX8yZ7aB6cDeF',
    customerId: 'cus_0002sSOLuP1oB9bUeVtYw3cA',
    subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
    intentId: null,
    setupMethodId: null,
    agreedAt: 1_795_262_400_000,
    language: 'en',
    textVersion: '1',
    text: 'Tea club · Oolong · Today: US$19.99 · In all: US$239.88 in 12 payments · By continuing, …',
    digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    amount: 1_999,
    currency: 'USD',
  }),
  handle: async (call, { db }) =>
    answerPage(call, (query) => listConsents(db, query, call.query), presentConsent),
});

function presentConsent(consent: Consent) {
  const { id: consentId, customerId: customer, digest, amountMinor, currency } = consent;
  return {
    consentId,
    customerId: customer,
    subscriptionId: consent.subscriptionId,
    intentId: consent.intentId,
    setupMethodId: consent.setupMethodId,
    agreedAt: consent.createdAt,
    language: consent.locale,
    textVersion: consent.textVersion,
    text: consent.shown,
    digest: digest.toString('hex'),
    amount: amountMinor,
    currency,
  };
}

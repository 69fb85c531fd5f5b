import { z } from 'zod';
import { DECLARATION_KINDS, DECLARATION_OUTCOMES } from '../domain/declaration.ts';
import { LOCALES } from '../domain/locales.ts';
import { DISPUTE_STATUSES } from '../domain/dispute.ts';
import { PAYMENT_METHOD_KINDS } from '../domain/payment-method.ts';
import { DECLINES } from '../domain/declines.ts';
import { INTENT_STATUSES, SHOWN_INTENT_KINDS } from '../domain/payment-intent.ts';
import { EVENT_TYPES } from '../domain/events.ts';
import type { EventCard } from '../domain/events.ts';
import { ACTORS } from '../domain/subscription/actor.ts';
import { END_REASONS } from '../domain/subscription/end-reason.ts';
import { SUBSCRIPTION_STATUSES } from '../domain/subscription/status.ts';
import type { PaymentMethodKind } from '../domain/payment-method.ts';

/** Schemas for the fields of answers and events. Only tests validate answers with these schemas. */

/** Marks a field of an answer as an extension, an addition to version 1.0.0 of the API's interface. */
export const EXTENSION = { 'x-extension': true } as const;

/** A field that an answer or an event may have, in addition to version 1.0.0 of the interface. */
export function added<T extends z.ZodType>(type: T, description?: string) {
  return type.optional().meta({ ...(description !== undefined && { description }), ...EXTENSION });
}

export function id(prefix: string, of: string) {
  return z.string().meta({ description: `Id of the ${of}.`, pattern: `^${prefix}_[0-9A-Za-z]+$` });
}

export function epochMs(description: string) {
  return z
    .int()
    .min(0)
    .meta({ description: `${description} Epoch milliseconds.`, format: 'int64' });
}

export function dateTime(description: string) {
  return z.string().meta({ description, format: 'date-time' });
}

export function minorAmount(description: string) {
  return z
    .int()
    .min(0)
    .meta({ description: `${description} In the smallest currency unit.`, format: 'int64' });
}

export function count(description: string) {
  return z.int().min(0).meta({ description, format: 'int64' });
}

export function url(description: string) {
  return z.string().meta({ description, format: 'uri' });
}

export const currencyCode = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .meta({ description: 'ISO 4217 code.' });

export const pairs = z
  .record(z.string(), z.string())
  .meta({ description: 'As given in the request.' });

export const intentKind = z.enum(SHOWN_INTENT_KINDS).meta({
  id: 'IntentKind',
  description:
    'What is paid: a billing cycle; the first cycle with an `upfrontAmount`; a one-time charge of a ' +
    'subscription; a charge of a saved method; a payment on a hosted page.',
});

export const intentComments = z
  .string()
  .meta({ description: 'Your note on a one-time charge or on a link to pay once.' });

export const paymentMethodKind = z.enum(PAYMENT_METHOD_KINDS).meta({ id: 'PaymentMethodKind' });

/** Values in several answers. Their ids give a generated client one type for each. */
export const actor = z.enum(ACTORS).meta({ id: 'Actor' });
export const endReason = z.enum(END_REASONS).meta({ id: 'EndReason' });
export const eventType = z.enum(EVENT_TYPES).meta({ id: 'EventType' });
/** Without a schema of its own: in Go, its constants would have the names of those of other statuses. */
export const intentStatus = z.enum(INTENT_STATUSES);
export const subscriptionStatus = z.enum(SUBSCRIPTION_STATUSES).meta({ id: 'SubscriptionStatus' });

export const unavailablePaymentMethods = added(
  z.array(z.string()),
  'The requested payment methods that are not available. Absent when all are available.',
);

export const declineCode = z
  .enum(Object.keys(DECLINES))
  .meta({ id: 'DeclineCode', description: 'Why the payment was declined.' });

export const declineMessage = z
  .string()
  .meta({ description: 'Human-readable reason for the decline.' });

const pageMetadata = z
  .object({
    offset: z
      .string()
      .optional()
      .meta({ description: 'The `offset` of the next page. Absent on the last page.' }),
  })
  .meta({ id: 'PageMetadata' });

/** The answer of a list. `example`: the only record of the page that the document shows. */
export function pageAnswer<Row extends z.ZodType>(
  description: string,
  row: Row,
  example: NoInfer<z.input<Row>>,
  { summary = 'The last page', order = 'Newest first.' } = {},
) {
  const schema = z.object({
    data: z.array(row).meta({ description: order }),
    metadata: pageMetadata,
  });
  return { description, schema, examples: { [summary]: { data: [example], metadata: {} } } };
}

const nothing = z.object({}).meta({ id: 'Nothing', description: 'An empty object.' });

/** The answer of a request after which there is nothing to tell. */
export function doneAnswer(description: string) {
  return { description, schema: nothing, examples: { Done: {} } };
}

export const disputeStatus = z.enum(DISPUTE_STATUSES).meta({
  id: 'DisputeStatus',
  description:
    'OPEN: the payer’s bank has not decided. WON: you keep the money. LOST: the payer keeps the money. CLOSED: the ' +
    'dispute ended without a decision about the money.',
});

/** In the list of declarations and in their events. */
export const declarationFields = {
  declarationId: id('dcl', 'declaration'),
  kind: z.enum(DECLARATION_KINDS),
  name: z.string().meta({ description: 'As the payer typed it, like the next two fields.' }),
  email: z.string(),
  reference: z.string().meta({
    description: 'Names the contract: the id of a subscription or a payment, or your `receiptId`.',
  }),
  reason: z.string().nullable().meta({
    description: 'The good cause of a cancellation; null for an ordinary one and for a withdrawal.',
  }),
  endDate: z.string().nullable().meta({
    description: 'Day on which the payer wants the contract to end; null: as early as possible.',
  }),
  language: z.enum(LOCALES).meta({ description: 'Language of the page.' }),
  declaredAt: epochMs('When it was declared, in real time.'),
  outcome: z.enum([...DECLARATION_OUTCOMES, 'pending']).meta({
    description:
      'executed: the subscription ends, with its paid period after a cancellation. told: you decide. unmatched: no ' +
      'contract has this reference and this e-mail address, or several have; you decide. pending: not looked at yet.',
  }),
  subscriptionId: id('sub', 'subscription that it names').nullable(),
  intentId: id('in', 'payment intent that it names').nullable(),
  isInWithdrawalPeriod: z.boolean().nullable().meta({
    description: 'Whether a withdrawal came in time. Null if not known, and for a cancellation.',
  }),
  refunds: z
    .array(
      z.object({
        xIntentId: id('in', 'payment intent'),
        amount: minorAmount('Amount that can still be refunded.'),
      }),
    )
    .meta({
      description:
        'The payments that can be refunded after a withdrawal. Each is a body of `POST /payments/merchant/refund`.',
    }),
};

export const DeclarationAnswer = z
  .object(declarationFields)
  .meta({ id: 'Declaration', ...EXTENSION });

const cardMetadata = z
  .object({
    brand: z.string(),
    country: z.string().optional().meta({ description: 'ISO 3166 alpha-2. Absent when unknown.' }),
    lastFourDigit: z.string().regex(/^\d{4}$/),
    expiryMonth: z.int().min(1).max(12),
    expiryYear: z.int().min(2000),
  })
  .meta({ id: 'CardMetadata', description: 'Details of a card.' });

export const cardFields = { paymentMethod: paymentMethodKind, cardMetadata };

export function presentCard({ kind, ...card }: EventCard & { kind: PaymentMethodKind }) {
  const { brand, country, lastFourDigit, expiryMonth, expiryYear } = card;
  return {
    paymentMethod: kind,
    cardMetadata: {
      brand,
      ...(country === null ? {} : { country }),
      lastFourDigit,
      expiryMonth,
      expiryYear,
    },
  };
}

/** The subscription of the examples. */
export const SUBSCRIPTION_ID = 'sub_0002sSOLuQx1oB9bUeVtYw3c';

export const exampleCard = {
  paymentMethod: 'CARD' as const,
  cardMetadata: {
    brand: 'visa',
    country: 'US',
    lastFourDigit: '4242',
    expiryMonth: 12,
    expiryYear: 2030,
  },
};

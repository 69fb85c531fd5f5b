import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import { insertLink } from '../../../db/repositories/subscriptions/links.ts';
import type { NewLink } from '../../../db/repositories/subscriptions/links.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { fallbackDisclaimer, offeredMethods } from '../../../domain/payment-method.ts';
import { url } from '../../answer-fields.ts';
import { notFound, ok } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  chargeProblems,
  comments,
  gatewayChargeProblems,
  httpUrl,
  instant,
  optional,
  wholeNumber,
} from '../../fields.ts';
import { isPlainObject } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import { hostedFields } from '../payments/create-intent.ts';
import {
  datedProblems,
  termsAndOrder,
  termsFields,
  termsFieldsProblems,
} from '../subscriptions/create.ts';

const CODE_LENGTH = 12;

const usesFields = {
  expiryDate: instant.describe('When the link expires. Epoch milliseconds in the future.'),
  multiUseLimit: optional(wholeNumber(1)).describe('How often the link can be used. Default: 1.'),
};

const linkAnswer = {
  description: 'The link was created.',
  schema: z.object({
    shortUrl: url('The link to share.'),
    disclaimer: z.string().meta({
      description:
        'Names the payment methods that are not available in the currency, and the fallback. Empty when ' +
        'all are available.',
    }),
  }),
  examples: {
    'Cards only': {
      shortUrl: 'https://pay.example/l/Ab3dEf6hIj9k',
      disclaimer:
        'GOOGLE_PAY with USD and APPLE_PAY with USD are not available; the checkout falls back to CARD.',
    },
  },
};

interface LinkRequest {
  link: Omit<NewLink, 'id' | 'code' | 'createdAt'>;
  currency: string;
  wanted?: readonly string[] | undefined;
}

/** Writes a link inside the caller's transaction. Throws `resource_not_found` for an unknown customer. */
async function writeLink(
  tx: Db,
  { now, random, publicUrl }: Pick<ApiDeps, 'now' | 'random' | 'publicUrl'>,
  { link, currency, wanted }: LinkRequest,
) {
  const createdAt = now();
  const { merchantId, customerId } = link;
  if (customerId && !(await findCustomer(tx, merchantId, customerId))) throw notFound('customer');
  const settings = await loadSettings(tx, merchantId);
  const code = randomToken(random, CODE_LENGTH);
  await insertLink(tx, { ...link, id: newId('lnk', createdAt, random), code, createdAt });
  const disclaimer = fallbackDisclaimer(wanted ?? settings.paymentMethods ?? [], currency);
  return { answer: ok({ shortUrl: `${publicUrl}/l/${code}`, disclaimer }) };
}

function expiryProblems(expiryDate: number, nowAt: number): Problem[] {
  return expiryDate <= nowAt ? [{ field: 'expiryDate', message: 'must lie in the future' }] : [];
}

export const generatePaymentLink = route({
  operationId: 'generatePaymentLink',
  method: 'post',
  path: '/link/merchant/generate-link',
  tag: 'Links',
  summary: 'Generate a link to pay once',
  description:
    'A payer who submits the first form of the linked page takes one use of the link and gets a hosted ' +
    'payment on these terms. Opening the link takes no use. If the payment is cancelled, or is not made ' +
    'within an hour, its use can be taken again. One IP address can take at most 5 uses in 10 minutes.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      ...hostedFields,
      callbackUrl: optional(httpUrl()).describe(
        'Where the payer’s browser goes afterwards, with `xpay_intent_id` and `status` added. ' +
          'Without a URL the payer stays on the result page.',
      ),
      comments: optional(comments).describe('Your own note, which every payment of the link gets.'),
      ...usesFields,
    },
    problems: chargeProblems,
    examples: {
      'A link for 100 payers': {
        amount: 4_900,
        currency: 'USD',
        description: 'A teapot',
        expiryDate: 1_798_761_600_000,
        multiUseLimit: 100,
      },
    },
  },
  answer: linkAnswer,
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: async (call, deps) => [
    ...(await gatewayChargeProblems(call, deps)),
    ...expiryProblems(call.body.expiryDate, deps.now()),
  ],
  handle: async (call, deps) => {
    const {
      amount,
      currency,
      comments: note,
      metadata,
      storeFrontId,
      tokenise,
      ...rest
    } = call.body;
    const { paymentMethods: wanted, expiryDate, multiUseLimit = 1, ...page } = rest;
    const { merchant } = call;
    const paymentMethods = wanted === undefined ? null : offeredMethods(wanted, currency).offered;
    const order = { currency, comments: note, metadata, paymentMethods, storeFrontId, tokenise };
    return writeOnce(call, deps, async (tx) =>
      writeLink(tx, deps, {
        link: {
          merchantId: merchant.id,
          payment: { amountMinor: amount, ...order },
          ...page,
          customerDetails: page.customerDetails ?? {},
          multiUseLimit,
          expiresAt: expiryDate,
        },
        currency,
        wanted,
      }),
    );
  },
});

const fields = {
  ...termsFields,
  callbackUrl: optional(httpUrl()).describe(
    'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
      'Without a URL the payer stays on the result page.',
  ),
  // A generator of clients makes no type of `null`, so the document shows an object without members.
  metadata: optional(
    z
      .custom<object>((value) => isPlainObject(value) && Object.keys(value).length === 0, {
        error: 'is not accepted on a link',
      })
      .meta({ type: 'object', maxProperties: 0 }),
  ).describe('Not accepted on a link.'),
  ...usesFields,
};

export const generateLink = route({
  operationId: 'generateSubscriptionLink',
  method: 'post',
  path: '/subscription/link/merchant/generate-link',
  tag: 'Links',
  summary: 'Generate a link to subscribe',
  description:
    'A payer who submits the first form of the linked page takes one use of the link and gets a ' +
    'subscription on these terms. Opening the link takes no use. An unpaid checkout expires after an hour, ' +
    'and its use can then be taken again. One IP address can take at most 5 uses in 10 minutes.',
  idempotencyKey: 'listed',
  body: {
    fields,
    problems: termsFieldsProblems,
    examples: {
      'A link for 100 payers': {
        amount: 1_999,
        currency: 'USD',
        interval: 'MONTH',
        intervalCount: 1,
        cycleCount: 12,
        customerDetails: {},
        expiryDate: 1_798_761_600_000,
        multiUseLimit: 100,
      },
    },
  },
  answer: linkAnswer,
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: async (call, deps) => {
    const nowAt = deps.now();
    return [
      ...(await gatewayChargeProblems(call, deps)),
      ...datedProblems(call.body, nowAt),
      ...expiryProblems(call.body.expiryDate, nowAt),
      ...horizonProblems(call.body, nowAt),
    ];
  },
  handle: async (call, deps) => {
    const { merchant, body } = call;
    const { terms, customerId, order: fieldsOfLink } = termsAndOrder(body);
    const { expiryDate, multiUseLimit = 1, metadata: _never, ...order } = fieldsOfLink;
    return writeOnce(call, deps, async (tx) =>
      writeLink(tx, deps, {
        link: {
          merchantId: merchant.id,
          terms,
          customerId,
          ...order,
          multiUseLimit,
          expiresAt: expiryDate,
        },
        currency: body.currency,
      }),
    );
  },
});

/**
 * Returns a problem if a subscription that begins when the link expires would have a billing date in 2200 or later. A
 * subscription may begin at any instant before the expiry.
 */
function horizonProblems(body: Fields<typeof fields>, nowAt: number): Problem[] {
  const { expiryDate } = body;
  const isChecked = expiryDate > nowAt && datedProblems(body, nowAt).length === 0;
  if (!isChecked || datedProblems(body, expiryDate).length === 0) return [];
  const message = 'must leave every billing date of the subscription before the year 2200';
  return [{ field: 'expiryDate', message }];
}

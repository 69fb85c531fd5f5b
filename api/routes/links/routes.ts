import { z } from 'zod';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import { insertLink } from '../../../db/repositories/subscriptions/links.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { fallbackDisclaimer, PAYMENT_METHOD_KINDS } from '../../../domain/payment-method.ts';
import { url } from '../../answer-fields.ts';
import { notFound, ok } from '../../answers.ts';
import { httpUrl, instant, optional, problemsError, wholeNumber } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { inTransaction } from '../../idempotency.ts';
import { route } from '../../route.ts';
import {
  datedProblems,
  termsFields,
  termsFieldsProblems,
  termsAndOrder,
} from '../subscriptions/fields.ts';

/** Rule: D-37. */
const CODE_LENGTH = 12;

/** No link is expected to need more uses. */
const MULTI_USE_LIMIT_MAX = 1_000_000;

/** Rules: IF-4.4, D-14. */
const fields = {
  ...termsFields,
  callbackUrl: optional(httpUrl()).describe(
    'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
      'Without a URL the payer stays on the result page.',
  ),
  metadata: z
    .unknown()
    .refine((value) => value === null, { error: 'is not accepted on a link' })
    .meta({ type: 'null' })
    .optional()
    .describe('Not accepted on a link.'),
  expiryDate: instant.describe('When the link expires. Epoch milliseconds in the future.'),
  multiUseLimit: optional(
    wholeNumber(1)
      .refine((value) => value <= MULTI_USE_LIMIT_MAX, {
        error: `must be at most ${MULTI_USE_LIMIT_MAX}`,
      })
      .meta({ maximum: MULTI_USE_LIMIT_MAX }),
  ).describe('How often the link can be used. Default: 1.'),
};

/** Rules: IF-2.7, IF-4.4. */
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
    examples: [
      {
        summary: 'A link for 100 payers',
        value: {
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
    ],
  },
  answer: {
    description: 'The link was created.',
    schema: z.object({
      shortUrl: url('The link to share.'),
      disclaimer: z.string().meta({
        description:
          'Names the payment methods that are not available in the currency, and the fallback. Empty when ' +
          'all are available.',
      }),
    }),
    examples: [
      {
        summary: 'Cards only',
        value: {
          shortUrl: 'https://pay.example/l/Ab3dEf6hIj9k',
          disclaimer:
            'GOOGLE_PAY with USD and APPLE_PAY with USD are not available; the checkout falls back to CARD.',
        },
      },
    ],
  },
  refusals: ['resource_not_found'],
  handle: async (call, deps) => {
    const { merchant, body } = call;
    const { terms, customerId, order: fieldsOfLink } = termsAndOrder(body);
    const { expiryDate, multiUseLimit = 1, metadata: _never, ...order } = fieldsOfLink;
    return inTransaction(call, deps, async (tx) => {
      const createdAt = deps.now();
      // Check the dates after the claim, so that a repeat gets the stored answer even after `expiryDate`.
      checkDates(body, createdAt);
      if (customerId !== undefined && !(await findCustomer(tx, merchant.id, customerId))) {
        throw notFound('customer');
      }
      const { paymentMethods = PAYMENT_METHOD_KINDS } = await loadSettings(tx, merchant.id);
      const code = randomToken(deps.random, CODE_LENGTH);
      await insertLink(tx, {
        merchantId: merchant.id,
        id: newId('lnk', createdAt, deps.random),
        code,
        terms,
        customerId,
        ...order,
        multiUseLimit,
        createdAt,
        expiresAt: expiryDate,
      });
      const disclaimer = fallbackDisclaimer(paymentMethods, body.currency);
      return { answer: ok({ shortUrl: `${deps.publicUrl}/l/${code}`, disclaimer }) };
    });
  },
});

/** Throws `bad_request` for dates that are not valid for a link created at `nowAt`. */
function checkDates(body: Fields<typeof fields>, nowAt: number): void {
  const problems = [...datedProblems(body, nowAt), ...expiryProblems(body, nowAt)];
  if (problems.length > 0) throw problemsError(problems);
}

/**
 * Returns the problems of the expiry. A subscription may begin at any instant before the link expires, so the
 * last billing date is checked for that latest begin. Rules: D-06, D-37.
 */
function expiryProblems(body: Fields<typeof fields>, nowAt: number): Problem[] {
  const { expiryDate } = body;
  if (expiryDate <= nowAt) return [{ field: 'expiryDate', message: 'must lie in the future' }];
  if (datedProblems(body, nowAt).length > 0 || datedProblems(body, expiryDate).length === 0) {
    return [];
  }
  const message = 'must leave every billing date of the subscription before the year 2200';
  return [{ field: 'expiryDate', message }];
}

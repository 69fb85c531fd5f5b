import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import { insertLink } from '../../../db/repositories/subscriptions/links.ts';
import type { NewLink } from '../../../db/repositories/subscriptions/links.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { fallbackDisclaimer, PAYMENT_METHOD_KINDS } from '../../../domain/payment-method.ts';
import { url } from '../../answer-fields.ts';
import { notFound, ok } from '../../answers.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, optional, refuseProblems, wholeNumber } from '../../fields.ts';
import type { Problem } from '../../fields.ts';

/** Fields and functions that links to subscribe and links to pay once share. */

const CODE_LENGTH = 12;

/** Maximum number of uses of a link. No link is expected to need more uses. */
const MULTI_USE_LIMIT_MAX = 1_000_000;

export const usesFields = {
  expiryDate: instant.describe('When the link expires. Epoch milliseconds in the future.'),
  multiUseLimit: optional(
    wholeNumber(1)
      .refine((value) => value <= MULTI_USE_LIMIT_MAX, {
        error: `must be at most ${MULTI_USE_LIMIT_MAX}`,
      })
      .meta({ maximum: MULTI_USE_LIMIT_MAX }),
  ).describe('How often the link can be used. Default: 1.'),
};

export const linkAnswer = {
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
};

export interface LinkRequest {
  /** The link without the fields that {@link writeLink} computes. */
  link: Omit<NewLink, 'id' | 'code' | 'createdAt'>;
  currency: string;
  /** The names of the payment methods in the request. Undefined: the merchant's payment methods. */
  wanted?: readonly string[] | undefined;
  amountProblems: readonly Problem[];
  dateProblems: (nowAt: number) => Problem[];
}

/**
 * Writes a link inside the caller's transaction, and checks the problems after the claim of the key, so that a repeat
 * gets its answer even after `expiryDate`.
 * @throws DomainError `bad_request`, `resource_not_found`.
 */
export async function writeLink(
  tx: Db,
  { now, random, publicUrl }: Pick<ApiDeps, 'now' | 'random' | 'publicUrl'>,
  { link, currency, wanted, amountProblems, dateProblems }: LinkRequest,
) {
  const createdAt = now();
  refuseProblems([...amountProblems, ...dateProblems(createdAt)]);
  const { merchantId, customerId } = link;
  if (customerId && !(await findCustomer(tx, merchantId, customerId))) throw notFound('customer');
  const settings = await loadSettings(tx, merchantId);
  const code = randomToken(random, CODE_LENGTH);
  await insertLink(tx, { ...link, id: newId('lnk', createdAt, random), code, createdAt });
  const methods = wanted ?? settings.paymentMethods ?? PAYMENT_METHOD_KINDS;
  const disclaimer = fallbackDisclaimer(methods, currency);
  return { answer: ok({ shortUrl: `${publicUrl}/l/${code}`, disclaimer }) };
}

export function expiryProblems(expiryDate: number, nowAt: number): Problem[] {
  return expiryDate <= nowAt ? [{ field: 'expiryDate', message: 'must lie in the future' }] : [];
}

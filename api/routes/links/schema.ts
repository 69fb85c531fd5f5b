import { z } from 'zod';
import {
  httpUrl,
  instant,
  optional,
  problemsError,
  readFields,
  wholeNumber,
} from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import {
  CreateSubscriptionShape,
  datedProblems,
  subscriptionProblems,
} from '../subscriptions/schema.ts';

/** More uses than any link needs. */
const MULTI_USE_LIMIT_MAX = 1_000_000;

const { testClockId: _realTimeOnly, ...SharedShape } = CreateSubscriptionShape;

/** The fields of a create request with the changes that IF-4.4 lists. Rules: IF-4.4, D-14. */
export const GenerateLinkShape = {
  ...SharedShape,
  callbackUrl: optional(httpUrl()),
  metadata: z
    .unknown()
    .refine((value) => value === null, { error: 'is not accepted on a link' })
    .meta({ type: 'null' })
    .optional(),
  expiryDate: instant,
  multiUseLimit: optional(
    wholeNumber(1)
      .refine((value) => value <= MULTI_USE_LIMIT_MAX, {
        error: `must be at most ${MULTI_USE_LIMIT_MAX}`,
      })
      .meta({ maximum: MULTI_USE_LIMIT_MAX }),
  ),
};

export type GenerateLinkBody = Fields<typeof GenerateLinkShape>;

/**
 * Reads the fields of a request for a link. {@link checkDates} checks the rules that depend on the time.
 *
 * @throws DomainError `bad_request` naming every invalid field.
 */
export function readGenerateLink(body: unknown): GenerateLinkBody {
  return readFields(GenerateLinkShape, body, subscriptionProblems);
}

/** Checks the dates of a link that is created at `nowAt`. Throws like {@link readGenerateLink}. */
export function checkDates(fields: GenerateLinkBody, nowAt: number): void {
  const problems = [...datedProblems(fields, nowAt), ...expiryProblems(fields, nowAt)];
  if (problems.length > 0) throw problemsError(problems);
}

/**
 * A subscription may begin at any instant before the link expires, so its last billing date is checked
 * for the latest begin. Rules: D-06, D-37.
 */
function expiryProblems(fields: GenerateLinkBody, nowAt: number): Problem[] {
  const { expiryDate } = fields;
  if (expiryDate <= nowAt) return [{ field: 'expiryDate', message: 'must lie in the future' }];
  if (datedProblems(fields, nowAt).length > 0 || datedProblems(fields, expiryDate).length === 0) {
    return [];
  }
  const message = 'must leave every billing date of the subscription before the year 2200';
  return [{ field: 'expiryDate', message }];
}

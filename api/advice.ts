import { z } from 'zod';
import { formatInstant } from '../domain/calendar.ts';
import { STOPPING_ADVICE } from '../domain/declines.ts';
import type { RetryAdvice, StatedAdvice } from '../domain/declines.ts';
import { dateTime } from './answer-fields.ts';
import { optional, wholeNumber } from './fields.ts';
import type { Fields, Problem } from './http/body.ts';

const KINDS = [...STOPPING_ADVICE, 'not_before'] as const;

const MEANING =
  '`never`: no other try with this payment method. `new_details_needed`: none before the payer gives new details. ' +
  '`not_before`: none before an instant.';

const WAIT_HOURS_MAX = 30 * 24;

/** What the bank advises in a decline that a test or a simulation asks for. */
export const adviceFields = {
  advice: optional(z.enum(KINDS)).describe(
    `What the bank advises about another try. ${MEANING} Default: nothing.`,
  ),
  waitHours: optional(
    wholeNumber(1)
      .refine((hours) => hours <= WAIT_HOURS_MAX, { error: `must be at most ${WAIT_HOURS_MAX}` })
      .meta({ maximum: WAIT_HOURS_MAX }),
  ).describe('Hours from the decline to that instant. Only with `not_before`.'),
};

type Given = Partial<Fields<typeof adviceFields>>;

export function adviceProblems({ advice, waitHours }: Given): Problem[] {
  if ((advice === 'not_before') === (waitHours !== undefined)) return [];
  const message =
    waitHours === undefined ? 'is required with advice not_before' : 'needs advice not_before';
  return [{ field: 'waitHours', message }];
}

export function statedAdvice({ advice, waitHours = 0 }: Given): StatedAdvice | null {
  if (advice === undefined) return null;
  return advice === 'not_before'
    ? { kind: advice, waitMs: waitHours * 3_600_000 }
    : { kind: advice };
}

export const AdviceAnswer = z
  .object({
    kind: z.enum(KINDS).meta({ description: MEANING }),
    notBefore: dateTime('The instant of `not_before`.').optional(),
  })
  .meta({ id: 'RetryAdvice', description: 'What the bank advised about another try.' });

export function presentAdvice(advice: RetryAdvice | null) {
  if (advice === null) return null;
  return advice.kind === 'not_before'
    ? { kind: advice.kind, notBefore: formatInstant(advice.at) }
    : advice;
}

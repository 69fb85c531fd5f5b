import { z } from 'zod';
import {
  INTERVAL_UNITS,
  cycleCountProblem,
  intervalCountProblem,
} from '../../../domain/calendar.ts';
import type { EditCommand } from '../../../domain/subscription/commands.ts';
import { instant, optional, problemsError, readFields } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { amount } from '../../payment-fields.ts';
import { cycleCountField, intervalCountField, SubscriptionIdBody } from './schema.ts';

/** Rule: IF-4.6. */
export const EditSubscriptionShape = {
  ...SubscriptionIdBody,
  newAmount: optional(amount),
  newCycleCount: optional(cycleCountField),
  newNextPaymentDate: optional(instant),
  interval: optional(z.enum(INTERVAL_UNITS)),
  intervalCount: optional(intervalCountField),
};

type Given = Partial<Fields<typeof EditSubscriptionShape>>;

/** The changes of an edit, with the field names of the command. */
type EditChanges = Omit<EditCommand, 'kind' | 'commandId'> & { subscriptionId: string };

/**
 * Reads the fields of an edit. The workflow checks the rules that depend on the subscription: its status,
 * currency, time and charged cycles.
 *
 * @throws DomainError `bad_request` naming every invalid field. Rules: IF-4.6, D-15, D-10a.
 */
export function readEditSubscription(body: unknown): EditChanges {
  const fields = readFields(EditSubscriptionShape, body, (given) => [
    ...boundsProblems(given),
    ...intervalRuleProblems(given),
  ]);
  const { subscriptionId, newAmount, newCycleCount, newNextPaymentDate } = fields;
  const { interval, intervalCount } = fields;
  const editable = [newAmount, newCycleCount, newNextPaymentDate, interval];
  if (editable.every((value) => value === undefined)) throw problemsError([NOTHING_TO_EDIT]);
  return {
    subscriptionId,
    newAmountMinor: newAmount,
    newCycleCount,
    newNextPaymentAt: newNextPaymentDate,
    interval,
    intervalCount,
  };
}

const NOTHING_TO_EDIT: Problem = {
  field: 'body',
  message: 'must have newAmount, newCycleCount, newNextPaymentDate or interval',
};

/** The workflow checks the currency's minimum, which depends on the subscription. Rules: D-01, D-06. */
function boundsProblems({ newAmount, newCycleCount, interval, intervalCount }: Given): Problem[] {
  const problems = {
    newAmount: newAmount === undefined || newAmount > 0 ? null : 'must be greater than 0',
    newCycleCount: newCycleCount === undefined ? null : cycleCountProblem(newCycleCount),
    intervalCount:
      interval === undefined || intervalCount === undefined
        ? null
        : intervalCountProblem(interval, intervalCount),
  };
  return Object.entries(problems).flatMap(([field, message]) =>
    message === null ? [] : [{ field, message }],
  );
}

/** All three fields must be given together. Rule: IF-4.6 rule 1. */
function intervalRuleProblems({ newNextPaymentDate, interval, intervalCount }: Given): Problem[] {
  if (interval === undefined && intervalCount === undefined) return [];
  return Object.entries({ newNextPaymentDate, interval, intervalCount }).flatMap(([field, value]) =>
    value === undefined ? [{ field, message: 'is required to edit the interval' }] : [],
  );
}

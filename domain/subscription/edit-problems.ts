import { cycleCountProblem, intervalCountProblem } from '../calendar.ts';
import type { EditCommand } from './commands.ts';

/** The fields of an edit. An absent field is not edited. */
export type EditFields = Omit<EditCommand, 'kind' | 'commandId' | 'actor' | 'currencyRow'>;

/** Why one field of a command is not valid. The message continues a sentence that begins with `field`. */
export interface FieldProblem<Field extends string = string> {
  readonly field: Field;
  readonly message: string;
}

export function editsNothing(edit: EditFields): boolean {
  const { newAmountMinor, newCycleCount, newNextPaymentAt, interval, intervalCount } = edit;
  return [newAmountMinor, newCycleCount, newNextPaymentAt, interval, intervalCount].every(
    (value) => value === undefined,
  );
}

/** Returns the problems of an edit that do not depend on the subscription. The types were checked. */
export function editProblems(edit: EditFields): FieldProblem<keyof EditFields>[] {
  const { newAmountMinor, newCycleCount } = edit;
  const isTooSmall = newAmountMinor !== undefined && newAmountMinor <= 0;
  const cycles = newCycleCount === undefined ? null : cycleCountProblem(newCycleCount);
  return [
    ...(isTooSmall
      ? [{ field: 'newAmountMinor', message: 'must be greater than 0' } as const]
      : []),
    ...(cycles === null ? [] : [{ field: 'newCycleCount', message: cycles } as const]),
    ...intervalProblems(edit),
  ];
}

/** `interval`, `intervalCount` and `newNextPaymentAt` are required together. */
function intervalProblems(
  edit: EditFields,
): FieldProblem<'newNextPaymentAt' | 'interval' | 'intervalCount'>[] {
  const { newNextPaymentAt, interval, intervalCount } = edit;
  if (interval === undefined && intervalCount === undefined) return [];
  const together = { newNextPaymentAt, interval, intervalCount };
  const missing = (Object.keys(together) as (keyof typeof together)[])
    .filter((field) => together[field] === undefined)
    .map((field) => ({ field, message: 'is required to edit the interval' }));
  if (interval === undefined || intervalCount === undefined) return missing;
  const message = intervalCountProblem(interval, intervalCount);
  return message === null ? missing : [...missing, { field: 'intervalCount', message }];
}

import { instantProblem, INTERVAL_UNITS, isIntervalUnit } from '../calendar.ts';
import { isCurrencyRow } from '../currencies.ts';
import { hasAtMost, isStorable } from '../storable-text.ts';
import type { Command, CommandKind } from './commands.ts';
import { editProblems, editsNothing } from './edit-problems.ts';
import type { EditFields, FieldProblem } from './edit-problems.ts';
import type { Refusal } from './validate-command.ts';

const TEXT_MAX = 255;

interface FieldRule {
  readonly isValid: (value: unknown) => boolean;
  readonly otherwise: string | ((value: unknown) => string);
  readonly isRequired?: true;
}

const wholeNumber: FieldRule = {
  isValid: (value) => Number.isSafeInteger(value) && Number(value) >= 1,
  otherwise: 'must be an integer of at least 1',
};
const instant: FieldRule = {
  isValid: (value) => instantProblem(value) === null,
  otherwise: (value) => instantProblem(value) ?? '',
};
const requiredText: FieldRule = {
  isValid: isShortText,
  otherwise: `must be text of 1 to ${TEXT_MAX} characters without NUL characters`,
  isRequired: true,
};
/** Absent: the merchant. A signal's actor is always the operator. */
const payer = {
  actor: { isValid: (value: unknown) => value === 'payer', otherwise: 'must be payer' },
} satisfies Record<string, FieldRule>;
const card = { paymentToken: requiredText, checkoutSessionId: requiredText };

/** The fields of each command. Other fields are ignored, as in a request to the API. */
const FIELDS: Readonly<Record<CommandKind, Readonly<Record<string, FieldRule>>>> = {
  edit: {
    newAmountMinor: {
      isValid: Number.isSafeInteger,
      otherwise: 'must be an integer in the smallest currency unit',
    },
    currencyRow: {
      isValid: isCurrencyRow,
      otherwise: 'must be a row of the currency table',
    },
    newCycleCount: wholeNumber,
    newNextPaymentAt: instant,
    interval: {
      isValid: isIntervalUnit,
      otherwise: `must be one of ${INTERVAL_UNITS.join(', ')}`,
    },
    intervalCount: wholeNumber,
  },
  cancel: {
    ...payer,
    reason: {
      isValid: (value) => value === 'cancelled' || value === 'checkout_cancelled',
      otherwise: 'must be one of cancelled, checkout_cancelled',
    },
    atPeriodEnd: {
      isValid: (value) => typeof value === 'boolean',
      otherwise: 'must be true or false',
    },
  },
  pause: { ...payer, resumeAt: instant },
  resume: payer,
  unpause: { ...payer, newNextPaymentAt: { ...instant, isRequired: true } },
  manualRetry: payer,
  authenticatePayment: { checkoutSessionId: requiredText },
  completeCheckout: card,
  replacePaymentMethod: card,
};

/** Reads any JSON value as a command. A refusal names every invalid field. `validateCommand` checks the rest. */
export function readCommand(
  kind: CommandKind,
  argument: unknown,
  commandId: unknown,
): { ok: true; command: Command } | Refusal {
  const given = argument ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) {
    return refuse([{ field: 'the argument', message: 'must be a JSON object' }]);
  }
  const problems: FieldProblem[] = [];
  const fields: Record<string, unknown> = {};
  const all = Object.entries({ ...FIELDS[kind], commandId: requiredText });
  for (const [field, { isValid, otherwise, isRequired }] of all) {
    const value = field === 'commandId' ? commandId : memberOf(given, field);
    if (value === undefined) {
      if (isRequired) problems.push({ field, message: 'is required' });
    } else if (isValid(value)) fields[field] = value;
    else {
      const message = typeof otherwise === 'string' ? otherwise : otherwise(value);
      problems.push({ field, message });
    }
  }
  if (kind === 'cancel') fields['reason'] ??= 'cancelled';
  if (kind === 'edit' && problems.length === 0) problems.push(...problemsOfEdit(fields));
  if (problems.length > 0) return refuse(problems);
  // The cast is safe, because the loop above checked every field of this kind.
  return { ok: true, command: { ...fields, kind } as Command };
}

function problemsOfEdit(edit: EditFields): FieldProblem[] {
  const message = 'must have newAmountMinor, newCycleCount, newNextPaymentAt or interval';
  return editsNothing(edit) ? [{ field: 'the argument', message }] : editProblems(edit);
}

/** Returns an own member. An inherited member, such as `constructor`, does not count as a field. */
export function memberOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, field)
    ? (value as Record<string, unknown>)[field]
    : undefined;
}

function isShortText(value: unknown): boolean {
  return (
    typeof value === 'string' && value !== '' && hasAtMost(value, TEXT_MAX) && isStorable(value)
  );
}

function refuse(problems: readonly FieldProblem[]): Refusal {
  const message = problems.map(({ field, message: text }) => `${field} ${text}`).join('; ');
  return { ok: false, code: 'bad_request', message };
}

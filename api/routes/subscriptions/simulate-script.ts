import { z } from 'zod';
import { DECLINES } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { invariant } from '../../../domain/errors.ts';
import { editsNothing } from '../../../domain/subscription/edit-problems.ts';
import type { Command } from '../../../domain/subscription/commands.ts';
import type { Script, ScriptedOutcome } from '../../../domain/subscription/simulate.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import { adviceFields, adviceProblems, statedAdvice } from '../../advice.ts';
import { amount, changedCurrency, instant, optional, wholeNumber } from '../../fields.ts';
import { withoutEmpty } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { editOf, editRequestProblems, NOTHING_TO_EDIT } from './command-routes.ts';
import { cycleCount, interval, intervalCount } from './create.ts';

export const SCRIPT_MAX = 100;

const editFields = {
  newAmount: optional(amount),
  newCycleCount: optional(cycleCount),
  newNextPaymentDate: optional(instant),
  interval: optional(interval),
  intervalCount: optional(intervalCount),
};
const commandFields = {
  ...editFields,
  resumeAt: optional(instant),
  atPeriodEnd: optional(z.boolean()),
};

/** The commands of a script, each with the fields of its request. */
const COMMANDS = {
  edit: Object.keys(editFields) as (keyof typeof editFields)[],
  pause: ['resumeAt'],
  unpause: ['newNextPaymentDate'],
  cancel: ['atPeriodEnd'],
  resume: [],
  retry: [],
  new_card: [],
} satisfies Record<string, readonly (keyof typeof commandFields)[]>;
type CommandName = keyof typeof COMMANDS;

const OUTCOMES = ['paid', ...(Object.keys(DECLINES) as DeclineCode[])] as const;

const entryFields = {
  at: optional(instant).describe(
    'When the command is executed, after the steps that are due by then; or the earliest attempt with the outcome.',
  ),
  cycle: optional(wholeNumber(1)).describe('The cycle whose attempts have the outcome, from 1.'),
  outcome: optional(z.enum(OUTCOMES)).describe(
    'Outcome of the next attempts. With `at` or `cycle`.',
  ),
  times: optional(wholeNumber(1)).describe('Number of attempts with the outcome. Default: 1.'),
  ...adviceFields,
  command: optional(z.enum(Object.keys(COMMANDS) as [CommandName])).describe(
    'A command, with the fields of its request. With `at`.',
  ),
  ...commandFields,
};

export const scriptEntry = z.preprocess(
  (given) => withoutEmpty(entryFields, given),
  z.object(entryFields).meta({ id: 'ScriptEntry' }),
);

type Entry = Fields<typeof entryFields>;

export function scriptProblems(script: readonly Entry[]): Problem[] {
  return script.flatMap((entry, index) => {
    const problems = entryProblems(entry);
    return problems.map(({ field, message }) => ({
      field: field === '' ? `script[${index}]` : `script[${index}].${field}`,
      message,
    }));
  });
}

/** The path of each problem is inside the entry; empty: it is about the entry. */
function entryProblems(entry: Entry): Problem[] {
  const { at, cycle, outcome, command } = entry;
  const hasOne = (outcome === undefined) !== (command === undefined);
  const hasPlace =
    command === undefined ? (at === undefined) !== (cycle === undefined) : at !== undefined;
  if (!hasOne || !hasPlace) {
    return [{ field: '', message: 'must have outcome with at or cycle, or command with at' }];
  }
  const isDecline = outcome !== undefined && outcome !== 'paid';
  const used: readonly string[] =
    command === undefined
      ? ['at', 'cycle', 'outcome', 'times', ...(isDecline ? Object.keys(adviceFields) : [])]
      : ['at', 'command', ...COMMANDS[command]];
  const unused = Object.entries(entry)
    .filter(([field, value]) => value !== undefined && !used.includes(field))
    .map(([field]) => ({ field, message: `is not a field of ${command ?? 'an outcome'}` }));
  return [...unused, ...(isDecline ? adviceProblems(entry) : []), ...commandProblems(entry)];
}

function commandProblems(entry: Entry): Problem[] {
  const { command, newNextPaymentDate } = entry;
  if (command === 'unpause' && newNextPaymentDate === undefined) {
    return [{ field: 'newNextPaymentDate', message: 'is required' }];
  }
  if (command !== 'edit') return [];
  const isNothing = editsNothing(editOf(entry));
  return isNothing ? [{ ...NOTHING_TO_EDIT, field: '' }] : editRequestProblems(entry);
}

/** The new amounts of a script, by their paths. */
export function newAmountsOf(script: readonly Entry[] = []): Record<string, number | undefined> {
  return Object.fromEntries(
    script.map(({ newAmount }, index) => [`script[${index}].newAmount`, newAmount]),
  );
}

export function outcomesOf(script: readonly Entry[] = []): ScriptedOutcome[] {
  return script.flatMap(({ at: fromAt = 0, cycle, outcome, times = 1, ...given }) => {
    if (outcome === undefined) return [];
    const code = outcome === 'paid' ? null : outcome;
    const place = cycle === undefined ? { fromAt } : { cycleNumber: cycle };
    return [{ for: place, code, times, advice: statedAdvice(given) }];
  });
}

/** The payer of a subscription in CREATED enters a card at once, if the outcome of no earlier one is open. */
export function checkoutOf(
  { status, openAttempt }: SubscriptionState,
  at: number,
): Script['commands'] {
  return status === 'CREATED' && openAttempt === null
    ? [{ at, name: 'checkout', command: cardCommand('completeCheckout', 'checkout') }]
    : [];
}

/** In the order of their instants. `currency`: that of the subscription. */
export function commandsOf(script: readonly Entry[] = [], currency: string): Script['commands'] {
  return script
    .flatMap((entry, index) => {
      const { at, command: name } = entry;
      if (name === undefined || at === undefined) return [];
      return [{ at, name, command: commandOf(name, entry, `script[${index}]`, currency) }];
    })
    .toSorted((a, b) => a.at - b.at);
}

function commandOf(name: CommandName, entry: Entry, commandId: string, currency: string): Command {
  const { newAmount, newNextPaymentDate, resumeAt, atPeriodEnd } = entry;
  switch (name) {
    case 'edit': {
      const currencyRow = newAmount === undefined ? undefined : changedCurrency(currency);
      return { kind: 'edit', commandId, ...editOf(entry), ...(currencyRow && { currencyRow }) };
    }
    case 'pause':
      return { kind: 'pause', commandId, ...(resumeAt !== undefined && { resumeAt }) };
    case 'unpause':
      invariant(newNextPaymentDate !== undefined, '`scriptProblems` refuses it without a date');
      return { kind: 'unpause', commandId, newNextPaymentAt: newNextPaymentDate };
    case 'cancel': {
      const cancel = { kind: 'cancel', commandId, reason: 'cancelled' } as const;
      return { ...cancel, ...(atPeriodEnd === true && { atPeriodEnd }) };
    }
    case 'resume':
      return { kind: 'resume', commandId };
    case 'retry':
      return { kind: 'manualRetry', commandId };
    case 'new_card':
      return cardCommand('replacePaymentMethod', commandId);
  }
}

const cardCommand = (
  kind: 'completeCheckout' | 'replacePaymentMethod',
  commandId: string,
): Command => ({
  kind,
  commandId,
  paymentToken: commandId,
  checkoutSessionId: commandId,
});

import { cycleCountProblem, formatInstant, horizonProblem, isInstant } from '../calendar.ts';
import { amountProblem } from '../currencies.ts';
import type { Currency, CurrencyTable } from '../currencies.ts';
import { assertNever } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { AUTOMATIC_ATTEMPTS_MAX } from '../retry-plan.ts';
import type { CancelCommand, Command, EditCommand, PauseCommand } from './commands.ts';
import { editsNothing, intervalProblems } from './edit-problems.ts';
import type { EditFields } from './edit-problems.ts';
import { needsAuthentication } from './authentication.ts';
import { calendarDate, cancelAt, earliestAttemptAt, sumProblem } from './state.ts';
import type { SubscriptionState, SubscriptionStatus } from './state.ts';

export type Decision = { ok: true } | Refusal;

export interface Refusal {
  ok: false;
  code: ErrorCode;
  message: string;
}

const ALLOWED: Decision = { ok: true };

/**
 * Decides whether `command` may be executed at `now`. Called before a command is accepted and again before it is
 * executed. `readCommand` has checked the types.
 */
export function validateCommand(state: SubscriptionState, command: Command, now: number): Decision {
  switch (command.kind) {
    case 'cancel':
      return validateCancel(state, command, now);
    case 'resume':
      return ifAllowed(allowedIn(state, ['TRIALING', 'ACTIVE'], 'resumed'), () =>
        cancelAt(state) === null
          ? refuse('operation_not_allowed', 'The subscription is not cancelled.')
          : ALLOWED,
      );
    case 'pause':
      return ifAllowed(allowedIn(state, pausable(command), 'paused'), () =>
        ifAllowed(notCancelled(state), () =>
          command.resumeAt === undefined
            ? ALLOWED
            : chargeDate(state, 'resumeAt', command.resumeAt, now),
        ),
      );
    case 'unpause':
      return ifAllowed(allowedIn(state, ['PAUSED'], 'unpaused'), () =>
        chargeDate(state, 'newNextPaymentDate', command.newNextPaymentAt, now),
      );
    case 'edit':
      return ifAllowed(allowedIn(state, ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'edited'), () =>
        validateEdit(state, command, now),
      );
    case 'manualRetry':
      return validateManualRetry(state, now);
    case 'authenticatePayment':
      return ifAllowed(allowedIn(state, ['UNPAID'], 'paid with a confirmation'), () =>
        ifAllowed(noOpenAttempt(state), () =>
          needsAuthentication(state)
            ? ALLOWED
            : refuse('operation_not_allowed', 'The payment needs no confirmation by the payer.'),
        ),
      );
    case 'completeCheckout':
      return ifAllowed(allowedIn(state, ['CREATED'], 'paid in its checkout'), () =>
        now >= state.checkoutExpiresAt && !state.openAttempt
          ? refuse('operation_not_allowed', 'The checkout has expired.')
          : noOpenAttempt(state),
      );
    case 'replacePaymentMethod':
      return allowedIn(state, ['TRIALING', 'ACTIVE', 'UNPAID'], 'given another payment method');
    default:
      return assertNever(command);
  }
}

/** Decides whether the saved payment method may be charged outside the cycles. */
export function validateOneTimeCharge(state: SubscriptionState): Decision {
  return ifAllowed(allowedIn(state, ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'charged'), () =>
    state.paymentMethodId === null
      ? refuse('operation_not_allowed', 'The subscription has no saved payment method.')
      : ALLOWED,
  );
}

function validateCancel(
  state: SubscriptionState,
  { reason, atPeriodEnd }: CancelCommand,
  now: number,
): Decision {
  if (reason === 'checkout_cancelled') return validateCheckoutCancel(state, now);
  if (atPeriodEnd !== true) {
    return allowedIn(state, ['CREATED', 'TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'cancelled');
  }
  const what = 'cancelled at the end of its period';
  return ifAllowed(allowedIn(state, ['TRIALING', 'ACTIVE'], what), () => notCancelled(state));
}

function notCancelled(state: SubscriptionState): Decision {
  const at = cancelAt(state);
  return at === null
    ? ALLOWED
    : refuse(
        'operation_not_allowed',
        `The subscription is cancelled and ends at ${formatInstant(at)}. It can be resumed until then.`,
      );
}

/** Returns the statuses in which the pause is allowed. In PAUSED it only changes the date at which the pause ends. */
function pausable({ resumeAt }: PauseCommand): SubscriptionStatus[] {
  return ['TRIALING', 'ACTIVE', 'UNPAID', ...(resumeAt === undefined ? [] : ['PAUSED' as const])];
}

/** Decides whether a pause may end at `at`, when the next charge is due. */
function chargeDate(state: SubscriptionState, field: string, at: number, now: number): Decision {
  return ifAllowed(futureDate(field, at, now), () =>
    ifAllowed(withinAttemptCap(state, field, at), () =>
      withinHorizon(state, { newNextPaymentAt: at }),
    ),
  );
}

/** Allows the cancellation only while the checkout is open and no attempt is open. */
function validateCheckoutCancel(state: SubscriptionState, now: number): Decision {
  if (state.status !== 'CREATED' || now >= state.checkoutExpiresAt) {
    return refuse('operation_not_allowed', 'The checkout of this payment intent is not open.');
  }
  return state.openAttempt
    ? refuse('operation_not_allowed', 'A payment of this intent is in progress.')
    : ALLOWED;
}

function validateManualRetry(state: SubscriptionState, now: number): Decision {
  return ifAllowed(allowedIn(state, ['UNPAID'], 'retried'), () =>
    ifAllowed(noOpenAttempt(state), () =>
      state.cooldownUntilAt !== null && now < state.cooldownUntilAt
        ? refuse(
            'bad_request',
            `Another manual retry is possible from ${formatInstant(state.cooldownUntilAt)}.`,
          )
        : ALLOWED,
    ),
  );
}

/**
 * Returns a table with only this row. Without a row, returns undefined, which stands for the checked-in
 * table.
 */
function tableOf(row: Currency | undefined): CurrencyTable | undefined {
  return row && new Map([[row.code, row]]);
}

function validateEdit(state: SubscriptionState, edit: EditCommand, now: number): Decision {
  const { newAmountMinor, newCycleCount, newNextPaymentAt, currencyRow } = edit;
  if (editsNothing(edit)) {
    return badRequest('One of newAmount, newCycleCount, newNextPaymentDate, interval is required.');
  }
  const sum = sumProblem({
    ...state.terms,
    ...(newAmountMinor !== undefined && { amountMinor: newAmountMinor }),
    ...(newCycleCount !== undefined && { cycleCount: newCycleCount }),
  });
  const problems = [
    newAmountMinor === undefined
      ? null
      : withField(
          'newAmount',
          amountProblem(newAmountMinor, state.terms.currency, 'cycle', tableOf(currencyRow)) ?? sum,
        ),
    newCycleCount === undefined
      ? null
      : withField('newCycleCount', cycleProblem(state, newCycleCount) ?? sum),
    ...intervalProblems(edit).map(({ field, message }) =>
      withField(field === 'newNextPaymentAt' ? 'newNextPaymentDate' : field, message),
    ),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) return badRequest(problems.join('; '));
  const dateDecision: Decision =
    newNextPaymentAt === undefined
      ? ALLOWED
      : ifAllowed(futureDate('newNextPaymentDate', newNextPaymentAt, now), () =>
          attemptOnDate(state, newNextPaymentAt),
        );
  return ifAllowed(dateDecision, () => withinHorizon(state, edit));
}

/**
 * Decides whether the owed cycle, if any, may be attempted at the edited date. Always allowed in PAUSED,
 * because no attempt starts while a subscription is paused.
 */
function attemptOnDate(state: SubscriptionState, at: number): Decision {
  const { owed, status } = state;
  if (status === 'PAUSED') return ALLOWED;
  if (status === 'UNPAID' && owed?.retriesStopped) {
    return refuse(
      'operation_not_allowed',
      `The payment method was declined (${owed.lastDeclineCode}) and is not charged again. The payer has to replace it.`,
    );
  }
  return withinAttemptCap(state, 'newNextPaymentDate', at);
}

/** Allows a date `at` only if an attempt on the owed cycle at `at` is at most the 15th in 30 days. */
function withinAttemptCap(state: SubscriptionState, field: string, at: number): Decision {
  const earliestAt = earliestAttemptAt(state);
  return at >= earliestAt
    ? ALLOWED
    : badRequest(
        `${field} must not be before ${formatInstant(earliestAt)}: a billing cycle gets at most ${AUTOMATIC_ATTEMPTS_MAX} automatic attempts in 30 days.`,
      );
}

function cycleProblem(state: SubscriptionState, cycleCount: number): string | null {
  if (cycleCount <= state.cyclesCharged) {
    return `must exceed the ${state.cyclesCharged} cycles already charged`;
  }
  return cycleCountProblem(cycleCount);
}

/** Allows the change only if the last billing date is then before the year 2200. */
function withinHorizon(state: SubscriptionState, edit: EditFields): Decision {
  const startAt =
    edit.newNextPaymentAt ??
    (state.anchorAt === null ? state.createdAt : calendarDate(state, state.nextIndex));
  const cycles = (edit.newCycleCount ?? state.terms.cycleCount) - state.cyclesCharged;
  const problem = horizonProblem(
    startAt,
    edit.interval ?? state.terms.interval,
    edit.intervalCount ?? state.terms.intervalCount,
    cycles,
  );
  return problem === null ? ALLOWED : badRequest(problem);
}

function futureDate(field: string, at: unknown, now: number): Decision {
  if (!isInstant(at)) {
    return badRequest(`${field} must be epoch milliseconds before the year 2200.`);
  }
  return at > now ? ALLOWED : badRequest(`${field} must lie in the future.`);
}

function noOpenAttempt(state: SubscriptionState): Decision {
  return state.openAttempt
    ? refuse('payment_outcome_pending', 'The outcome of a payment is not known yet.')
    : ALLOWED;
}

function allowedIn(
  state: SubscriptionState,
  statuses: readonly SubscriptionStatus[],
  participle: string,
): Decision {
  return statuses.includes(state.status)
    ? ALLOWED
    : refuse(
        'operation_not_allowed',
        `A subscription that is ${state.status} cannot be ${participle}.`,
      );
}

function ifAllowed(decision: Decision, then: () => Decision): Decision {
  return decision.ok ? then() : decision;
}

function withField(field: string, problem: string | null): string | null {
  return problem === null ? null : `${field} ${problem}`;
}

function badRequest(message: string): Refusal {
  return refuse('bad_request', message);
}

function refuse(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}

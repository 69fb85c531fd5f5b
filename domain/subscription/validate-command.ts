import { formatInstant, horizonProblem } from '../calendar.ts';
import { amountProblem } from '../currencies.ts';
import type { CurrencyTable } from '../currencies.ts';
import { assertNever } from '../errors.ts';
import type { ErrorCode, RefusalReason } from '../errors.ts';
import type { CancelCommand, Command, EditCommand, PauseCommand } from './commands.ts';
import type { EditFields } from './edit-problems.ts';
import { needsAuthentication } from './authentication.ts';
import { calendarDate, cancelAt } from './state.ts';
import { sumProblem } from './terms.ts';
import type { SubscriptionState } from './state.ts';
import type { SubscriptionStatus } from './status.ts';

export type Decision = { ok: true } | Refusal;

export interface Refusal extends RefusalReason {
  ok: false;
}

/** Called before a command is accepted and again before it is executed. `readCommand` has checked the types. */
export function validateCommand(state: SubscriptionState, command: Command, now: number): Decision {
  return refusalOf(state, command, now) ?? { ok: true };
}

export function validateOneTimeCharge(state: SubscriptionState): Decision {
  const refusal =
    notIn(state, ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'charged') ??
    unless(state.paymentMethodId !== null, 'The subscription has no saved payment method.');
  return refusal ?? { ok: true };
}

function refusalOf(state: SubscriptionState, command: Command, now: number): Refusal | null {
  switch (command.kind) {
    case 'cancel':
      return cancelRefusal(state, command, now);
    case 'resume':
      return notIn(state, ['TRIALING', 'ACTIVE', 'PAUSED'], 'resumed') ?? resumeRefusal(state, now);
    case 'pause':
      return (
        notIn(state, pausable(command), 'paused') ??
        ifCancelled(state) ??
        (command.resumeAt === undefined
          ? null
          : chargeDateRefusal(state, 'resumeAt', command.resumeAt, now))
      );
    case 'unpause':
      return (
        notPaused(state) ??
        ifCancelled(state) ??
        chargeDateRefusal(state, 'newNextPaymentDate', command.newNextPaymentAt, now)
      );
    case 'edit':
      return (
        notIn(state, ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'edited') ??
        editRefusal(state, command, now)
      );
    case 'manualRetry':
      return (
        notIn(state, ['UNPAID'], 'retried') ?? ifAttemptOpen(state) ?? ifCoolingDown(state, now)
      );
    case 'authenticatePayment':
      return (
        notIn(state, ['UNPAID'], 'paid with a confirmation') ??
        ifAttemptOpen(state) ??
        unless(needsAuthentication(state), 'The payment needs no confirmation by the payer.')
      );
    case 'completeCheckout':
      return (
        notIn(state, ['CREATED'], 'paid in its checkout') ??
        ifAttemptOpen(state) ??
        unless(now < state.checkoutExpiresAt, 'The checkout has expired.')
      );
    case 'replacePaymentMethod':
      return notIn(
        state,
        ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'],
        'given another payment method',
      );
    default:
      return assertNever(command);
  }
}

function cancelRefusal(
  state: SubscriptionState,
  { reason, atPeriodEnd }: CancelCommand,
  now: number,
): Refusal | null {
  if (reason === 'checkout_cancelled') {
    const isOpen = state.status === 'CREATED' && now < state.checkoutExpiresAt;
    return (
      unless(isOpen, 'The checkout of this payment intent is not open.') ??
      unless(state.openAttempt === null, 'A payment of this intent is in progress.')
    );
  }
  return atPeriodEnd === true
    ? (notIn(state, ['TRIALING', 'ACTIVE', 'PAUSED'], 'cancelled at the end of its period') ??
        ifCancelled(state))
    : notIn(state, ['CREATED', 'TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'], 'cancelled');
}

/** While the outcome of a charge is unknown, the subscription has not ended yet. */
function resumeRefusal(state: SubscriptionState, now: number): Refusal | null {
  const at = cancelAt(state);
  if (at === null) {
    const advice = state.status === 'PAUSED' ? ' To end its pause, unpause it.' : '';
    return refuse('operation_not_allowed', `The subscription is not cancelled.${advice}`);
  }
  const isRunning = now < at || state.openAttempt !== null;
  return unless(isRunning, `The subscription ended at ${formatInstant(at)}.`);
}

function notPaused(state: SubscriptionState): Refusal | null {
  if (state.status === 'PAUSED') return null;
  const advice = cancelAt(state) === null ? '' : ' To withdraw its cancellation, resume it.';
  const message = `A subscription that is ${state.status} cannot be unpaused.${advice}`;
  return refuse('operation_not_allowed', message);
}

function ifCancelled(state: SubscriptionState): Refusal | null {
  const at = cancelAt(state);
  if (at === null) return null;
  const until = `ends at ${formatInstant(at)}. It can be resumed until then.`;
  return refuse('operation_not_allowed', `The subscription is cancelled and ${until}`);
}

/** Returns the statuses in which the pause is allowed. In PAUSED it only changes the date at which the pause ends. */
function pausable({ resumeAt }: PauseCommand): SubscriptionStatus[] {
  return ['TRIALING', 'ACTIVE', 'UNPAID', ...(resumeAt === undefined ? [] : ['PAUSED' as const])];
}

function chargeDateRefusal(state: SubscriptionState, field: string, at: number, now: number) {
  return unlessFuture(field, at, now) ?? beyondHorizon(state, { newNextPaymentAt: at });
}

function ifCoolingDown({ cooldownUntilAt }: SubscriptionState, now: number): Refusal | null {
  if (cooldownUntilAt === null || now >= cooldownUntilAt) return null;
  const message = `Another manual retry is possible from ${formatInstant(cooldownUntilAt)}.`;
  return { ...badRequest(message), retryAt: cooldownUntilAt };
}

function editRefusal(state: SubscriptionState, edit: EditCommand, now: number): Refusal | null {
  const { newAmountMinor, newCycleCount, newNextPaymentAt, currencyRow } = edit;
  const sum = sumProblem({
    ...state.terms,
    ...(newAmountMinor !== undefined && { amountMinor: newAmountMinor }),
    ...(newCycleCount !== undefined && { cycleCount: newCycleCount }),
  });
  // Without a row, the checked-in table applies.
  const table: CurrencyTable | undefined =
    currencyRow && new Map([[currencyRow.code, currencyRow]]);
  const amount =
    newAmountMinor === undefined
      ? null
      : (amountProblem(newAmountMinor, state.terms.currency, 'cycle', table) ?? sum);
  const cycles = newCycleCount === undefined ? null : (cycleProblem(state, newCycleCount) ?? sum);
  const problems = [
    ...(amount === null ? [] : [`newAmount ${amount}`]),
    ...(cycles === null ? [] : [`newCycleCount ${cycles}`]),
  ];
  if (problems.length > 0) return badRequest(problems.join('; '));
  const refusal =
    newNextPaymentAt === undefined
      ? null
      : (unlessFuture('newNextPaymentDate', newNextPaymentAt, now) ?? afterStoppedRetries(state));
  return refusal ?? beyondHorizon(state, edit);
}

/** Refuses an edited date on which the owed cycle would not be attempted. */
function afterStoppedRetries({ owed, status }: SubscriptionState): Refusal | null {
  if (status !== 'UNPAID' || !owed?.retriesStopped) return null;
  return refuse(
    'operation_not_allowed',
    `The payment method was declined (${owed.lastDeclineCode}) and is not charged again. The payer has to replace it.`,
  );
}

function cycleProblem(state: SubscriptionState, cycleCount: number): string | null {
  return cycleCount <= state.cyclesCharged
    ? `must exceed the ${state.cyclesCharged} cycles already charged`
    : null;
}

/** Refuses the change if the last billing date would then be in the year 2200 or later. */
function beyondHorizon(state: SubscriptionState, edit: EditFields): Refusal | null {
  const startAt =
    edit.newNextPaymentAt ??
    (state.anchorAt === null ? state.createdAt : calendarDate(state, state.nextIndex));
  const problem = horizonProblem(
    startAt,
    edit.interval ?? state.terms.interval,
    edit.intervalCount ?? state.terms.intervalCount,
    (edit.newCycleCount ?? state.terms.cycleCount) - state.cyclesCharged,
  );
  return problem === null ? null : badRequest(problem);
}

function unlessFuture(field: string, at: number, now: number): Refusal | null {
  return at > now ? null : badRequest(`${field} must lie in the future.`);
}

function ifAttemptOpen({ openAttempt }: SubscriptionState): Refusal | null {
  return openAttempt
    ? refuse('payment_outcome_pending', 'The outcome of a payment is not known yet.')
    : null;
}

function notIn(
  { status }: SubscriptionState,
  statuses: readonly SubscriptionStatus[],
  participle: string,
): Refusal | null {
  const message = `A subscription that is ${status} cannot be ${participle}.`;
  return unless(statuses.includes(status), message);
}

function unless(isAllowed: boolean, message: string): Refusal | null {
  return isAllowed ? null : refuse('operation_not_allowed', message);
}

function badRequest(message: string): Refusal {
  return refuse('bad_request', message);
}

function refuse(code: ErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}

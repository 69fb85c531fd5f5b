import { assertNever } from '../errors.ts';
import { openAttempt, owe, settleNow } from './apply-attempt.ts';
import {
  applyAuthentication,
  applyCancel,
  applyCheckoutExpiry,
  applyEdit,
  applyManualRetry,
  applyNewPaymentMethod,
  applyPause,
  applyPeriodEnd,
  applyResume,
  applyTrialStart,
  applyUnpause,
} from './apply-command.ts';
import { awaitsPayer, isSuperseded } from './authentication.ts';
import { orderOf } from './cause.ts';
import type { Change } from './change.ts';
import type {
  Command,
  CommandResult,
  CompleteCheckoutCommand,
  ReplacePaymentMethodCommand,
} from './commands.ts';
import type { Step } from './decide.ts';
import { chargesNewMethod } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** The work of the workflow for an accepted command or a due step. */
export type Action =
  /** Record the change. `result` is the command's result; null for a due step. */
  | { do: 'record'; change: Change; result: CommandResult | null }
  /** Record the change, which opens an attempt, and charge the attempt. */
  | { do: 'charge'; change: Change };

/** Epoch ms. `now` is the subscription's own time, which differs from `realNow` on a test clock. */
export interface ActionTime {
  now: number;
  realNow: number;
}

/** Commands with a payment token. An activity redeems the token for a payment method before the action. */
export type TokenCommand = CompleteCheckoutCommand | ReplacePaymentMethodCommand;

const DONE: CommandResult = { kind: 'done' };
const SAVED: CommandResult = { kind: 'checkout', outcome: 'saved', errorCode: null };

export function carriesToken(command: Command): command is TokenCommand {
  return command.kind === 'completeCheckout' || command.kind === 'replacePaymentMethod';
}

/**
 * True if the gateway must verify the card when it saves the card, because no charge follows the command at
 * once.
 */
export function needsVerification(
  state: SubscriptionState,
  command: TokenCommand,
  { now }: ActionTime,
): boolean {
  return command.kind === 'completeCheckout'
    ? state.terms.trial !== null
    : !chargesNewMethod(state, now);
}

/**
 * Returns the action for a command that `validateCommand` has allowed. Pure. `paymentMethodId` is the method
 * that the token of a {@link TokenCommand} was redeemed for. Other commands ignore it.
 */
export function actionForCommand(
  state: SubscriptionState,
  command: Command,
  { now, realNow }: ActionTime,
  paymentMethodId: string | null,
): Action {
  const action = actionOf(state, command, { now, realNow }, paymentMethodId);
  const { change } = action;
  const isOver =
    (change.state.openAttempt?.voidedBy ?? null) !== null || isSuperseded(change.state);
  if (!awaitsPayer(state) || !isOver) return action;
  // The payer must not be able to confirm the charge any more, so the look-up that withdraws the charge is due at once.
  return { ...action, change: { ...change, state: settleNow(change.state, realNow) } };
}

function actionOf(
  state: SubscriptionState,
  command: Command,
  { now, realNow }: ActionTime,
  paymentMethodId: string | null,
): Action {
  switch (command.kind) {
    case 'edit':
      return { do: 'record', change: applyEdit(state, command, now), result: DONE };
    case 'cancel':
      return { do: 'record', change: applyCancel(state, command, now), result: DONE };
    case 'pause':
      return { do: 'record', change: applyPause(state, command, now), result: DONE };
    case 'resume':
      return { do: 'record', change: applyResume(state, command, now), result: DONE };
    case 'unpause':
      return {
        do: 'record',
        change: applyUnpause(state, command, now, orderOf(command)),
        result: DONE,
      };
    case 'manualRetry':
      return { do: 'charge', change: applyManualRetry(state, command, now, realNow) };
    case 'authenticatePayment':
      return { do: 'charge', change: applyAuthentication(state, command, now, realNow) };
    case 'completeCheckout':
    case 'replacePaymentMethod':
      if (paymentMethodId === null) throw new Error(`${command.kind} without a payment method`);
      return actionForMethod(state, command, { now, realNow }, paymentMethodId);
    default:
      return assertNever(command);
  }
}

function actionForMethod(
  state: SubscriptionState,
  { kind, commandId, checkoutSessionId: sessionId }: TokenCommand,
  { now, realNow }: ActionTime,
  paymentMethodId: string,
): Action {
  if (kind === 'replacePaymentMethod') {
    const order = { paymentMethodId, commandId, sessionId };
    const change = applyNewPaymentMethod(state, order, now, realNow);
    const charges = state.openAttempt === null && change.state.openAttempt !== null;
    return charges ? { do: 'charge', change } : { do: 'record', change, result: SAVED };
  }
  if (state.terms.trial) {
    return { do: 'record', change: applyTrialStart(state, paymentMethodId, now), result: SAVED };
  }
  const start = {
    trigger: 'checkout',
    commandId,
    sessionId,
    now,
    realNow,
    paymentMethodId,
  } as const;
  return { do: 'charge', change: openAttempt(state, start) };
}

type RecordedStep =
  | 'expireCheckout'
  | 'endPeriod'
  | 'endPause'
  | 'chargeCycle'
  | 'retryAutomatically';

export function actionForStep(
  state: SubscriptionState,
  step: Extract<Step, { do: RecordedStep }>,
  { now, realNow }: ActionTime,
): Action {
  const start = { commandId: null, now, realNow };
  switch (step.do) {
    case 'expireCheckout':
      return { do: 'record', change: applyCheckoutExpiry(state, now), result: null };
    case 'endPeriod':
      return { do: 'record', change: applyPeriodEnd(state, now), result: null };
    case 'endPause': {
      const until = { newNextPaymentAt: step.at };
      const why = 'the end date of the pause was reached';
      const change = applyUnpause(state, until, now, { why, actor: 'schedule' });
      return { do: 'record', change, result: null };
    }
    case 'chargeCycle': {
      const withOwedCycle = owe(state, step.dueAt);
      return {
        do: 'charge',
        change: openAttempt(withOwedCycle, { ...start, trigger: 'scheduled' }),
      };
    }
    case 'retryAutomatically':
      return { do: 'charge', change: openAttempt(state, { ...start, trigger: 'automatic_retry' }) };
    default:
      return assertNever(step);
  }
}

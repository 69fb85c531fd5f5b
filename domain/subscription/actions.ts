import { assertNever } from '../errors.ts';
import { openAttempt, owe } from './apply-attempt.ts';
import {
  applyCancel,
  applyCheckoutExpiry,
  applyEdit,
  applyManualRetry,
  applyNewPaymentMethod,
  applyPause,
  applyTrialStart,
  applyUnpause,
} from './apply-command.ts';
import type { Change } from './change.ts';
import type {
  Command,
  CommandResult,
  CompleteCheckoutCommand,
  ReplacePaymentMethodCommand,
} from './commands.ts';
import type { Step } from './decide.ts';
import type { SubscriptionState } from './state.ts';

/** What a command or a due step leads to. */
export type Action =
  /** Record the change. `result` is the command's answer; null for a step that no command caused. */
  | { do: 'record'; change: Change; result: CommandResult | null }
  /** Record the change, which opens an attempt, and charge that attempt. Its outcome is the answer. */
  | { do: 'charge'; change: Change };

/** Both in epoch ms. `now` is the subscription's own time: the test clock's, if it has one. */
export interface ActionTime {
  now: number;
  realNow: number;
}

/** Commands that carry a payment token, which is redeemed for a payment method first. */
export type TokenCommand = CompleteCheckoutCommand | ReplacePaymentMethodCommand;

const DONE: CommandResult = { kind: 'done' };
const SAVED: CommandResult = { kind: 'checkout', outcome: 'saved', errorCode: null };

export function carriesToken(command: Command): command is TokenCommand {
  return command.kind === 'completeCheckout' || command.kind === 'replacePaymentMethod';
}

/** True if the gateway verifies the method when it is saved, because no charge follows at once. */
export function needsVerification(state: SubscriptionState, command: TokenCommand): boolean {
  return command.kind === 'completeCheckout'
    ? state.terms.trial !== null
    : state.status !== 'UNPAID';
}

/**
 * What a command leads to that `validateCommand` allowed. Pure. `paymentMethodId` is the method that the
 * token of a {@link TokenCommand} was redeemed for; other commands ignore it. Rules: D-§4, D-15, D-31.
 */
export function actionForCommand(
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
      return { do: 'record', change: applyPause(state, now), result: DONE };
    case 'unpause':
      return { do: 'record', change: applyUnpause(state, command, now), result: DONE };
    case 'manualRetry':
      return { do: 'charge', change: applyManualRetry(state, command.commandId, now, realNow) };
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
  { kind, commandId }: TokenCommand,
  { now, realNow }: ActionTime,
  paymentMethodId: string,
): Action {
  if (kind === 'replacePaymentMethod') {
    const change = applyNewPaymentMethod(state, paymentMethodId, commandId, now, realNow);
    const charges = state.openAttempt === null && change.state.openAttempt !== null;
    return charges ? { do: 'charge', change } : { do: 'record', change, result: SAVED };
  }
  if (state.terms.trial) {
    return { do: 'record', change: applyTrialStart(state, paymentMethodId, now), result: SAVED };
  }
  const start = { trigger: 'checkout', commandId, now, realNow, paymentMethodId } as const;
  return { do: 'charge', change: openAttempt(state, start) };
}

/**
 * What a due step leads to that charges or expires something. Pure but for `newIntentId`, which is called
 * for a new cycle only. Rules: D-05, D-30.
 */
export function actionForStep(
  state: SubscriptionState,
  step: Extract<Step, { do: 'expireCheckout' | 'chargeCycle' | 'retryAutomatically' }>,
  { now, realNow }: ActionTime,
  newIntentId: () => string,
): Action {
  const start = { commandId: null, now, realNow };
  switch (step.do) {
    case 'expireCheckout':
      return { do: 'record', change: applyCheckoutExpiry(state, now), result: null };
    case 'chargeCycle': {
      const owing = owe(state, step.dueAt, newIntentId());
      return { do: 'charge', change: openAttempt(owing, { ...start, trigger: 'scheduled' }) };
    }
    case 'retryAutomatically':
      return { do: 'charge', change: openAttempt(state, { ...start, trigger: 'automatic_retry' }) };
    default:
      return assertNever(step);
  }
}

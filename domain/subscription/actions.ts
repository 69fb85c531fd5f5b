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
import type { Change } from './change.ts';
import type { Command, CommandResult, TokenCommand } from './commands.ts';
import type { Step } from './decide.ts';
import { applyNotice, dueNotice } from './notices.ts';
import { chargesNewMethod } from './state.ts';
import type { SubscriptionState } from './state.ts';

export type Action =
  | { do: 'record'; change: Change; result: CommandResult | null }
  | { do: 'charge'; change: Change };

/** Epoch ms. `now` is the subscription's own time, which differs from `realNow` on a test clock. */
export interface ActionTime {
  now: number;
  realNow: number;
}

const DONE: CommandResult = { kind: 'done' };
const SAVED: CommandResult = { kind: 'checkout', outcome: 'saved', errorCode: null };

export function carriesToken(command: Command): command is TokenCommand {
  return command.kind === 'completeCheckout' || command.kind === 'replacePaymentMethod';
}

/** True if the gateway must verify the card, because no charge follows the command at once. */
export function needsVerification(state: SubscriptionState, command: TokenCommand): boolean {
  return command.kind === 'completeCheckout'
    ? state.terms.trial !== null
    : !chargesNewMethod(state);
}

/** For a command that `validateCommand` has allowed. `paymentMethodId`: the method of the redeemed token. */
export function actionForCommand(
  state: SubscriptionState,
  command: Command,
  { now, realNow }: ActionTime,
  paymentMethodId: string | null,
): Action {
  const change = changeByCommand(state, command, { now, realNow }, paymentMethodId);
  const isOver =
    (change.state.openAttempt?.voidedBy ?? null) !== null || isSuperseded(change.state);
  // The payer must not be able to confirm the charge any more, so the look-up that withdraws the charge is due at once.
  const settled = awaitsPayer(state) && isOver ? settleNow(change.state, realNow) : change.state;
  const result = carriesToken(command) ? SAVED : DONE;
  return actionOf(state, { ...change, state: settled }, result);
}

/** A change that opens an attempt charges it. */
function actionOf(state: SubscriptionState, change: Change, result: CommandResult | null): Action {
  const opensAttempt = state.openAttempt === null && change.state.openAttempt !== null;
  return opensAttempt ? { do: 'charge', change } : { do: 'record', change, result };
}

function changeByCommand(
  state: SubscriptionState,
  command: Command,
  { now, realNow }: ActionTime,
  paymentMethodId: string | null,
): Change {
  switch (command.kind) {
    case 'edit':
      return applyEdit(state, command, now);
    case 'cancel':
      return applyCancel(state, command, now);
    case 'pause':
      return applyPause(state, command, now);
    case 'resume':
      return applyResume(state, command, now);
    case 'unpause':
      return applyUnpause(state, command.newNextPaymentAt, now, command);
    case 'manualRetry':
      return applyManualRetry(state, command, now, realNow);
    case 'authenticatePayment':
      return applyAuthentication(state, command, now, realNow);
    case 'completeCheckout':
    case 'replacePaymentMethod': {
      if (paymentMethodId === null) throw new Error(`${command.kind} without a payment method`);
      const { kind, commandId, checkoutSessionId: sessionId } = command;
      const order = { paymentMethodId, commandId, sessionId };
      if (kind === 'replacePaymentMethod') return applyNewPaymentMethod(state, order, now, realNow);
      if (state.terms.trial) return applyTrialStart(state, paymentMethodId, now);
      return openAttempt(state, { ...order, trigger: 'checkout', now, realNow });
    }
    default:
      return assertNever(command);
  }
}

type RecordedStep =
  | 'expireCheckout'
  | 'endPeriod'
  | 'endPause'
  | 'giveNotice'
  | 'chargeCycle'
  | 'retryAutomatically';

export type DueStep = Extract<Step, { do: RecordedStep }>;

export function actionForStep(state: SubscriptionState, step: DueStep, time: ActionTime): Action {
  return actionOf(state, changeByStep(state, step, time), null);
}

function changeByStep(
  state: SubscriptionState,
  step: DueStep,
  { now, realNow }: ActionTime,
): Change {
  const start = { commandId: null, now, realNow };
  switch (step.do) {
    case 'expireCheckout':
      return applyCheckoutExpiry(state, now);
    case 'endPeriod':
      return applyPeriodEnd(state, now);
    case 'endPause':
      return applyUnpause(state, step.at, now, null);
    case 'giveNotice':
      return applyNotice(state, dueNotice(state, now), now);
    case 'chargeCycle':
      return openAttempt(owe(state, step.dueAt), { ...start, trigger: 'scheduled' });
    case 'retryAutomatically':
      return openAttempt(state, { ...start, trigger: 'automatic_retry' });
    default:
      return assertNever(step);
  }
}

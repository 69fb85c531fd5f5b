import { assertNever, ERRORS } from '../../domain/errors.ts';
import { openAttempt } from '../../domain/subscription/apply-attempt.ts';
import {
  applyCancel,
  applyEdit,
  applyManualRetry,
  applyNewPaymentMethod,
  applyPause,
  applyTrialStart,
  applyUnpause,
} from '../../domain/subscription/apply-command.ts';
import type {
  Command,
  CompleteCheckoutCommand,
  ReplacePaymentMethodCommand,
} from '../../domain/subscription/commands.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import type { RedeemTokenResult } from '../../activities/redeem-token.ts';
import type { Answer } from './inbox.ts';
import type { Run } from './run.ts';
import type { Outcome, Steps } from './steps.ts';

const DONE = { kind: 'done' } as const;

/** Done or not, nobody knows: the same command, sent again, finds out. */
export const UNAVAILABLE: Answer = {
  ok: false,
  code: 'service_unavailable',
  message: ERRORS.service_unavailable.message,
};

/**
 * Takes the oldest command of the inbox: judges it again (what stood before it may have changed the
 * decision), does it, and answers it. One whose subscription turned out to have moved on stays first
 * in line and is judged anew; so does an unawaited one whose activity gave up.
 */
export async function takeFirstCommand(run: Run, steps: Steps): Promise<void> {
  const command = run.inbox.first;
  if (!command) return;
  const decision = validateCommand(run.state, command, run.clock.now);
  if (!decision.ok) {
    run.inbox.answerFirst(decision);
    return;
  }
  const outcome = await carryOut(run, steps, command);
  switch (outcome.kind) {
    case 'stale':
      return;
    case 'unavailable':
      run.inbox.answerAwaited(UNAVAILABLE);
      run.hasAnsweredUnavailable = true;
      return;
    case 'done':
      run.inbox.answerFirst(
        outcome.result
          ? { ok: true, result: outcome.result }
          : {
              ok: false,
              code: 'payment_outcome_pending',
              message: 'The outcome of the payment is not known yet.',
            },
      );
      return;
    default:
      assertNever(outcome);
  }
}

function carryOut(run: Run, steps: Steps, command: Command): Promise<Outcome> {
  const { state, clock } = run;
  switch (command.kind) {
    case 'edit':
      return steps.record(applyEdit(state, command, clock.now), { command, result: DONE });
    case 'cancel':
      return steps.record(applyCancel(state, command, clock.now), { command, result: DONE });
    case 'pause':
      return steps.record(applyPause(state, clock.now), { command, result: DONE });
    case 'unpause':
      return steps.record(applyUnpause(state, command, clock.now), { command, result: DONE });
    case 'manualRetry':
      return steps.openAndCharge(
        applyManualRetry(state, command.commandId, clock.now, clock.realNow),
        command,
      );
    case 'completeCheckout':
      return completeCheckout(run, steps, command);
    case 'replacePaymentMethod':
      return replacePaymentMethod(run, steps, command);
    default:
      return assertNever(command);
  }
}

async function completeCheckout(
  run: Run,
  steps: Steps,
  command: CompleteCheckoutCommand,
): Promise<Outcome> {
  const redeemed = await redeem(run, steps, command, run.state.terms.trial !== null);
  if (redeemed.kind !== 'saved') return redeemed;
  const { paymentMethodId } = redeemed;
  const { state, clock } = run;
  if (state.terms.trial) {
    return steps.record(applyTrialStart(state, paymentMethodId, clock.now), {
      command,
      result: { kind: 'checkout', outcome: 'saved', errorCode: null },
    });
  }
  const { commandId } = command;
  const { now, realNow } = clock;
  return steps.openAndCharge(
    openAttempt(state, { trigger: 'checkout', commandId, now, realNow, paymentMethodId }),
    command,
  );
}

async function replacePaymentMethod(
  run: Run,
  steps: Steps,
  command: ReplacePaymentMethodCommand,
): Promise<Outcome> {
  const redeemed = await redeem(run, steps, command, run.state.status !== 'UNPAID');
  if (redeemed.kind !== 'saved') return redeemed;
  const { state, clock } = run;
  const change = applyNewPaymentMethod(
    state,
    redeemed.paymentMethodId,
    command.commandId,
    clock.now,
    clock.realNow,
  );
  const chargesNow = state.openAttempt === null && change.state.openAttempt !== null;
  return chargesNow
    ? steps.openAndCharge(change, command)
    : steps.record(change, {
        command,
        result: { kind: 'checkout', outcome: 'saved', errorCode: null },
      });
}

/** A refused card is an answer, not a failure: the payer tries another. */
async function redeem(
  run: Run,
  steps: Steps,
  command: CompleteCheckoutCommand | ReplacePaymentMethodCommand,
  verify: boolean,
): Promise<Extract<RedeemTokenResult, { kind: 'saved' }> | Outcome> {
  const { merchantId, customerId } = run.state;
  try {
    const redeemed = await run.activities.redeemToken('save the payment method', {
      merchantId,
      customerId,
      paymentToken: command.paymentToken,
      checkoutSessionId: command.checkoutSessionId,
      verify,
      nowAt: run.clock.now,
    });
    if (redeemed.kind === 'saved') return redeemed;
    const { errorCode } = redeemed;
    return { kind: 'done', result: { kind: 'checkout', outcome: 'declined', errorCode } };
  } catch (error) {
    steps.backOffAfter(error);
    return { kind: 'unavailable' };
  }
}

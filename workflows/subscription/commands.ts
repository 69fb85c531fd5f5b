import { assertNever } from '../../domain/errors.ts';
import {
  actionForCommand,
  carriesToken,
  needsVerification,
} from '../../domain/subscription/actions.ts';
import type { Command, TokenCommand } from '../../domain/subscription/commands.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import type { RedeemTokenResult } from '../../activities/charging/redeem-token.ts';
import type { Answer } from './inbox.ts';
import type { Run } from './run.ts';
import type { Outcome, Steps } from './steps.ts';

const PENDING: Answer = {
  ok: false,
  code: 'payment_outcome_pending',
  message: 'The outcome of the payment is not known yet.',
};

/**
 * Validates the oldest command again, because an earlier one may have changed the state, executes it and answers its
 * caller. It stays in the inbox if the row was newer or the activity failed.
 */
export async function takeFirstCommand(run: Run, steps: Steps): Promise<void> {
  const command = run.inbox.first;
  if (!command) return;
  const isSignal = !run.inbox.isFirstAwaited;
  const decision = validateCommand(run.state, command, run.clock.now);
  if (!decision.ok) {
    run.inbox.answerFirst(decision);
    if (isSignal) run.refuseSignal(command.kind, decision.message);
    return;
  }
  const outcome = await carryOut(run, steps, command);
  switch (outcome.kind) {
    case 'stale':
      return;
    case 'unavailable':
      run.answerUnavailable();
      return;
    case 'done':
      run.inbox.answerFirst(outcome.result ? { ok: true, result: outcome.result } : PENDING);
      return;
    default:
      assertNever(outcome);
  }
}

async function carryOut(run: Run, steps: Steps, command: Command): Promise<Outcome> {
  let paymentMethodId: string | null = null;
  if (carriesToken(command)) {
    const redeemed = await redeem(run, steps, command);
    if (redeemed.kind !== 'saved') return redeemed;
    paymentMethodId = redeemed.paymentMethodId;
  }
  const action = actionForCommand(run.state, command, run.clock, paymentMethodId);
  return steps.act(action, command);
}

/** Redeems the command's token. A refused card is a result, not an error: the payer may try another card. */
async function redeem(
  run: Run,
  steps: Steps,
  command: TokenCommand,
): Promise<Extract<RedeemTokenResult, { kind: 'saved' }> | Outcome> {
  const { merchantId, subscriptionId, version, customerId } = run.state;
  try {
    const redeemed = await run.activities.redeemToken('save the payment method', {
      at: { merchantId, subscriptionId, version },
      merchantId,
      customerId,
      paymentToken: command.paymentToken,
      checkoutSessionId: command.checkoutSessionId,
      verify: needsVerification(run.state, command, run.clock),
      nowAt: run.clock.now,
    });
    run.noteProgress();
    if (redeemed.kind === 'saved') return redeemed;
    if (redeemed.kind === 'adopt') {
      return { kind: steps.adoptRow(redeemed.state) ? 'stale' : 'unavailable' };
    }
    const { errorCode } = redeemed;
    return { kind: 'done', result: { kind: 'checkout', outcome: 'declined', errorCode } };
  } catch (error) {
    steps.backOffAfter(error);
    return { kind: 'unavailable' };
  }
}

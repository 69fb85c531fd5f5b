import { assertNever } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import type { PaymentOutcome } from './payment-intent.ts';
import type { SetupOutcome } from './setup-method.ts';
import type { CommandResult } from './subscription/commands.ts';

export type CardOutcome =
  /** The outcome is in the database. */
  | { kind: 'decided' }
  | { kind: 'declined'; errorCode: string }
  /** The card was submitted and its outcome is unknown. */
  | { kind: 'pending' }
  /** The card was not submitted, because the outcome of another card is unknown. A repeat may submit the card. */
  | { kind: 'waiting' };

type CommandAnswer =
  | { readonly kind: 'result'; readonly result: CommandResult }
  | { readonly kind: 'pending' }
  | { readonly kind: 'refused'; readonly code: ErrorCode };

export function outcomeOfPayment(outcome: PaymentOutcome): CardOutcome {
  switch (outcome.kind) {
    case 'succeeded':
      return { kind: 'decided' };
    case 'declined':
      return outcome;
    case 'pending':
      return { kind: 'pending' };
    case 'refused':
      return outcomeOfRefusal(outcome.code);
    default:
      return assertNever(outcome);
  }
}

export function outcomeOfSetup(outcome: SetupOutcome): CardOutcome {
  switch (outcome.kind) {
    case 'saved':
      return { kind: 'decided' };
    case 'declined':
    case 'pending':
      return outcome;
    case 'refused':
      return outcomeOfRefusal(outcome.code);
    default:
      return assertNever(outcome);
  }
}

export function outcomeOfCommand(answer: CommandAnswer): CardOutcome {
  switch (answer.kind) {
    case 'result': {
      const { result } = answer;
      return result.kind === 'checkout' && result.errorCode !== null
        ? { kind: 'declined', errorCode: result.errorCode }
        : { kind: 'decided' };
    }
    case 'pending':
      return answer;
    case 'refused':
      return outcomeOfRefusal(answer.code);
    default:
      return assertNever(answer);
  }
}

/**
 * Returns `waiting` if the outcome of another card is unknown. For every other refusal returns `decided`: the
 * status of the payment, session or subscription says why.
 */
function outcomeOfRefusal(code: ErrorCode): CardOutcome {
  return { kind: code === 'payment_outcome_pending' ? 'waiting' : 'decided' };
}

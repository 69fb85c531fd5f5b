import type { AttemptTrigger } from '../payment-intent.ts';
import { askedForBy } from './actor.ts';
import type { Actor } from './actor.ts';
import type { Command } from './commands.ts';
import type { LogEntry, OpenAttempt } from './state.ts';

export type Cause = Required<Pick<LogEntry, 'why' | 'actor'>>;

/**
 * Returns why a command was sent and its actor, for the timeline. A command without an actor counts as the
 * merchant's.
 */
export function orderOf({ actor = 'merchant' }: Command): Cause {
  return { why: askedForBy(actor), actor };
}

/**
 * Returns why an attempt was made and its actor, for the timeline. The reason says if the attempt was voided, or
 * settled by manual review, whose actor is the operator.
 */
export function causeOf(
  attempt: OpenAttempt,
  { byPerson, isWithdrawn }: { byPerson?: true; isWithdrawn?: true },
): Cause {
  const isOperators = attempt.actor === 'operator';
  const causes: Record<AttemptTrigger, [why: string, actor: Actor]> = {
    checkout: ['the payer paid in the checkout', 'payer'],
    scheduled: ['its date had come', 'schedule'],
    automatic_retry: ['the retry plan said so', 'retry_plan'],
    manual_retry: isOperators
      ? ['an operator asked for a retry', 'operator']
      : ['the merchant asked for a retry', 'merchant'],
    new_method: ['the payer gave another method', 'payer'],
    authentication: ['the bank asked the payer to confirm it', 'payer'],
    one_time: ['the merchant asked for a one-time charge', 'merchant'],
    tokenised: ['the merchant charged a saved method', 'merchant'],
  };
  const [reason, actor] = causes[attempt.trigger];
  const why = `${reason} (attempt ${attempt.attemptNumber})`;
  if (isWithdrawn) return { why: `${why}; it was voided before the gateway received it`, actor };
  return byPerson ? { why: `${why}; a person settled it`, actor: 'operator' } : { why, actor };
}

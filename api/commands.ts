import { DomainError } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../runtime/subscription-workflows.ts';

/**
 * Carries out a command and gives its result; sent again with the same command id it gives the same
 * result, also when the workflow has ended since. The caller made sure that the subscription is the
 * merchant's.
 *
 * @throws DomainError with the reason of a refusal; `payment_outcome_pending` when the command was
 * accepted and is not decided yet; `service_unavailable` when nothing is known: then a repeat finds
 * out. Rule: D-32.
 */
export async function executeCommand(
  workflows: SubscriptionWorkflows,
  ref: SubscriptionRef,
  command: Command,
): Promise<CommandResult> {
  const { merchantId, subscriptionId } = ref;
  const answer = await workflows.execute({ merchantId, subscriptionId }, command);
  switch (answer.kind) {
    case 'result':
      return answer.result;
    case 'pending':
      throw new DomainError('payment_outcome_pending');
    case 'refused':
      throw new DomainError(answer.code, answer.message);
  }
}

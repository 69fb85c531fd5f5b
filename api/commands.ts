import { DomainError } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../temporal/subscription-workflows.ts';

/**
 * Sends a command to the subscription's workflow and returns the command's result. A repeat with the same
 * command id returns the same result, even after the workflow has ended. The caller must have checked that
 * the merchant has this subscription.
 *
 * @throws DomainError with the code and reason of a refusal; `payment_outcome_pending` if the command was
 * accepted and has no result yet; `service_unavailable` if it is unknown whether the command was executed.
 * After `payment_outcome_pending` and `service_unavailable`, a later repeat executes the command if it was not
 * executed, and returns its result as soon as it has one.
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

import { DomainError } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../temporal/subscriptions/workflows.ts';

/**
 * Sends a command to the subscription's workflow. A repeat with the same command id returns the same result.
 * @throws DomainError with the refusal, `payment_outcome_pending`, or `service_unavailable` if it is unknown whether
 * the command was executed.
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
      throw new DomainError(answer.code, answer.message, { retryAt: answer.retryAt });
  }
}

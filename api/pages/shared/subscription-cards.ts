import { outcomeOfCommand } from '../../../domain/card-outcome.ts';
import type { CardOutcome } from '../../../domain/card-outcome.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../temporal/subscription-workflows.ts';

/**
 * Sends a first or new card to a subscription. The token is the command's id, so a reload
 * repeats the command.
 * @throws DomainError `service_unavailable` if it is unknown whether it was executed.
 */
export async function submitCard(
  workflows: SubscriptionWorkflows,
  subject: SubscriptionRef & { readonly sessionId: string },
  kind: 'completeCheckout' | 'replacePaymentMethod',
  paymentToken: string,
): Promise<CardOutcome> {
  const { merchantId, subscriptionId, sessionId: checkoutSessionId } = subject;
  const command = { kind, commandId: paymentToken, paymentToken, checkoutSessionId };
  const ref = { merchantId, subscriptionId };
  return outcomeOfCommand(await workflows.execute(ref, command));
}

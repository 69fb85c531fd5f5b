import { outcomeOfCommand } from '../../../domain/card-outcome.ts';
import type { CardOutcome } from '../../../domain/card-outcome.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../temporal/subscription-workflows.ts';

/**
 * Sends a card to a subscription as its first card or as a replacement. The command's id is the card token,
 * so a reload repeats the same command. Throws `service_unavailable` if it is unknown whether the command
 * was executed.
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

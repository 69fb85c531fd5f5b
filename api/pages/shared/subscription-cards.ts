import { DomainError } from '../../../domain/errors.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../temporal/subscription-workflows.ts';
import { executeCommand } from '../../commands.ts';
import type { CardOutcome } from './card-page-kind.ts';

/**
 * Sends a card to a subscription as its first card or as a replacement. The command's id is the card token,
 * so a reload repeats the same command. Throws `service_unavailable` if it is unknown whether the command
 * was executed. Rule: D-32.
 */
export async function submitCard(
  workflows: SubscriptionWorkflows,
  subject: SubscriptionRef & { readonly sessionId: string },
  kind: 'completeCheckout' | 'replacePaymentMethod',
  paymentToken: string,
): Promise<CardOutcome> {
  const { sessionId: checkoutSessionId } = subject;
  const command = { kind, commandId: paymentToken, paymentToken, checkoutSessionId };
  try {
    const result = await executeCommand(workflows, subject, command);
    return result.kind === 'checkout' && result.errorCode !== null
      ? { kind: 'declined', errorCode: result.errorCode }
      : { kind: 'decided' };
  } catch (error) {
    if (!(error instanceof DomainError) || error.code === 'service_unavailable') throw error;
    // `payment_outcome_pending`: the outcome is unknown. Any other refusal: the page shows the status.
    return { kind: error.code === 'payment_outcome_pending' ? 'pending' : 'decided' };
  }
}

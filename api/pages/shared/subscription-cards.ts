import { DomainError } from '../../../domain/errors.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../runtime/subscription-workflows.ts';
import { executeCommand } from '../../commands.ts';
import type { CardOutcome } from './card-pages.ts';

/**
 * Hands a card to a subscription: its first, or another one. One token is one command, however often
 * its address is loaded. Throws `service_unavailable` when nothing is known. Rule: D-32.
 */
export async function giveCard(
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
    // Any other refusal is for the page to tell, from the row.
    return { kind: error.code === 'payment_outcome_pending' ? 'pending' : 'decided' };
  }
}

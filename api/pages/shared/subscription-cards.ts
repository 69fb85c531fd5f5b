import { DomainError } from '../../../domain/errors.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../temporal/subscription-workflows.ts';
import { executeCommand } from '../../commands.ts';
import type { CardOutcome } from './card-pages.ts';

/**
 * Submits a card to a subscription: its first card or a replacement. The token is the command id, so a
 * reload repeats the same command. Throws `service_unavailable` when it is unknown whether the command
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
    // The page shows any other refusal from the subscription's row.
    return { kind: error.code === 'payment_outcome_pending' ? 'pending' : 'decided' };
  }
}

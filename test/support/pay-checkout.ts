import { DomainError } from '../../domain/errors.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { CommandAnswer } from '../../temporal/subscription-workflows.ts';
import { checkoutCommand } from './card-tokens.ts';
import type { TestEnvironment } from './test-environment.ts';

/** Five calls of up to 17 s fit into a test's limit of 120 s. */
const CALLS_MAX = 5;

/**
 * Pays the checkout with a card that is not declined, or with the card behind `token`. On a busy machine a
 * worker may accept the command too late, and the call fails with `service_unavailable`. Then the same
 * command is sent again, as the API's callers do.
 */
export async function payCheckout(
  env: TestEnvironment,
  ref: SubscriptionRef,
  token?: string,
): Promise<CommandAnswer> {
  const command = checkoutCommand(token ?? (await env.token()));
  for (let call = 1; ; call += 1) {
    try {
      return await env.workflows.execute(ref, command);
    } catch (error) {
      const isBusy = error instanceof DomainError && error.code === 'service_unavailable';
      if (!isBusy || call === CALLS_MAX) throw error;
    }
  }
}

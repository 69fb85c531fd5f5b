import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { CommandAnswer } from '../../temporal/subscriptions/workflows.ts';
import { checkoutCommand } from './card-tokens.ts';
import type { TestEnvironment } from './test-environment.ts';

/** Pays the checkout with a card that is not declined, or with the card behind `token`. */
export async function payCheckout(
  env: TestEnvironment,
  ref: SubscriptionRef,
  token?: string,
): Promise<CommandAnswer> {
  return env.execute(ref, checkoutCommand(token ?? (await env.token())));
}

import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
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

/** Creates a subscription on its own test clock, and pays its first cycle. */
export async function paidOnClock(
  env: TestEnvironment,
  at: string | number,
  terms: Partial<Terms> = {},
) {
  const createdAt = typeof at === 'number' ? at : Date.parse(at);
  const clock = await env.createClock(createdAt);
  const ref = await env.create({ createdAt, testClockId: clock, terms });
  await payCheckout(env, ref);
  return { ref, clock, createdAt };
}

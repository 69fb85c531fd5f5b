import { expect } from 'vitest';
import type { SubscriptionStatus } from '../../domain/subscription/state.ts';
import { subscriptionBody } from './api-world.ts';
import type { Answer, ApiWorld } from './api-world.ts';

/** The ids of a subscription that was created over HTTP. */
export interface CreatedSubscription {
  readonly subscriptionId: string;
  readonly ref: { merchantId: string; subscriptionId: string };
}

/** Creates a subscription. `changes` to the request are those of `subscriptionBody`. */
export async function createSubscription(
  world: ApiWorld,
  changes: Record<string, unknown> = {},
): Promise<CreatedSubscription & { fwdUrl: string }> {
  const made = await world.call('POST', '/subscription/create', {
    body: subscriptionBody(changes),
  });
  expect(made.status).toBe(200);
  const { subscriptionId, fwdUrl } = made.json as { subscriptionId: string; fwdUrl: string };
  const ref = { merchantId: world.merchant.merchantId, subscriptionId };
  return { subscriptionId, ref, fwdUrl };
}

let tokens = 0;

/** Pays the checkout with a card that is not declined. */
async function pay(world: ApiWorld, { fwdUrl }: { fwdUrl: string }): Promise<void> {
  tokens += 1;
  const path = `${new URL(fwdUrl).pathname}/return?payment_token=tok_good_${tokens}`;
  expect((await world.call('GET', path, { as: null })).status).toBe(303);
}

/** Makes the next cycle due and declines it with `code`. */
export async function declineNext(
  world: ApiWorld,
  subscription: CreatedSubscription,
  code: string,
): Promise<void> {
  const { workflows } = world;
  workflows.faults.card = code;
  await workflows.fallDue(subscription.ref).finally(() => {
    workflows.faults.card = null;
  });
}

/** Creates a subscription and brings it to `status` by calls of a merchant and a payer. */
export async function subscriptionIn(
  world: ApiWorld,
  status: SubscriptionStatus,
  changes: Record<string, unknown> = {},
): Promise<CreatedSubscription> {
  const trial = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
  const created = await createSubscription(world, status === 'TRIALING' ? trial : changes);
  const { subscriptionId } = created;
  if (status !== 'CREATED') await pay(world, created);
  if (status === 'UNPAID') await declineNext(world, created, 'card_declined');
  if (status === 'PAUSED' || status === 'ENDED') {
    const command = status === 'PAUSED' ? 'pause' : 'cancel';
    await obey(world, `/subscription/merchant/${command}`, { subscriptionId });
  }
  expect(await readSubscription(world, created)).toMatchObject({ status });
  return created;
}

async function obey(world: ApiWorld, path: string, body: object): Promise<void> {
  expect((await world.call('POST', path, { body })).status).toBe(200);
}

export async function readSubscription(
  world: ApiWorld,
  { subscriptionId }: CreatedSubscription,
): Promise<Record<string, unknown>> {
  const answer = await world.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  expect(answer.status).toBe(200);
  return answer.json as Record<string, unknown>;
}

/** The parts of an answer that must be equal for an unknown and a foreign id. */
export function comparable({ status, text, headers }: Answer) {
  const { 'request-id': _id, date: _date, ...rest } = headers;
  return { status, text, headers: rest };
}

import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import type { PaymentMethodStatus } from '../../db/schema/payment-methods.ts';
import { newId } from '../../domain/ids.ts';
import type { Answer, ApiWorld } from './api-world.ts';

/** Payment records for tests, created over HTTP where the API allows it. */

export const UNKNOWN_IDS = {
  customer: 'cus_0000000000000000000000',
  method: 'pmt_0000000000000000000000',
  intent: 'in_0000000000000000000000',
  setup: 'sm_0000000000000000000000',
  subscription: 'sub_0000000000000000000000',
};

/** The answer to an id that the merchant does not have. */
export function notFoundAnswer(what: string): [number, object] {
  return [400, { errorCode: 'resource_not_found', errorDescription: `There is no such ${what}.` }];
}

export function refusal(errorDescription: string): [number, object] {
  return [400, { errorCode: 'operation_not_allowed', errorDescription }];
}

export const UNAVAILABLE: [number, object] = [
  503,
  {
    errorCode: 'service_unavailable',
    errorDescription:
      'The service is not available at the moment. It is safe to repeat with the same key.',
  },
];

export const outcome = ({ status, json }: Answer): [number, unknown] => [status, json];

type Owner = 'merchant' | 'other';

/** Creates a customer of one of the two merchants. */
export async function makeCustomer(world: ApiWorld, owner: Owner = 'merchant'): Promise<string> {
  const made = await world.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Ada Example', email: 'ada@example.com' } },
    as: world[owner],
  });
  expect(made.status).toBe(200);
  return (made.json as { customerId: string }).customerId;
}

export interface SavedMethod {
  readonly customerId: string;
  readonly pmId: string;
}

/** A customer with a saved card that no charge declines. Its row is written to the database. */
export async function saveCard(
  world: ApiWorld,
  card: { status?: PaymentMethodStatus; owner?: Owner; customerId?: string; at?: number } = {},
): Promise<SavedMethod> {
  const { status = 'LIVE', owner = 'merchant', at = Date.now() } = card;
  const customerId = card.customerId ?? (await makeCustomer(world, owner));
  const pmId = newId('pmt', at, randomBytes);
  await world.db.insert(paymentMethods).values({
    merchantId: world[owner].merchantId,
    id: pmId,
    customerId,
    kind: 'CARD',
    gateway: 'fake',
    gatewayMethodId: `tok_good_${pmId}`,
    brand: 'visa',
    country: null,
    lastFourDigit: '4242',
    expiryMonth: 7,
    expiryYear: 2031,
    status,
    createdAt: at,
  });
  return { customerId, pmId };
}

/** The body of a valid tokenised charge. */
export function tokenisedBody(method: SavedMethod, changes: object = {}): Record<string, unknown> {
  return { ...method, currency: 'USD', amount: 2_500, ...changes };
}

/** Creates a paid intent of 25.00 USD and returns its id. */
export async function makePaid(world: ApiWorld, owner: Owner = 'merchant'): Promise<string> {
  const method = await saveCard(world, { owner });
  const paid = await world.call('POST', '/payments/charge-tokenised-pm', {
    body: tokenisedBody(method),
    as: world[owner],
  });
  expect(paid.json).toMatchObject({ status: 'SUCCESS' });
  return (paid.json as { intentId: string }).intentId;
}

/** The body of a valid hosted payment. */
export function intentBody(changes: object = {}): Record<string, unknown> {
  return {
    amount: 2_500,
    currency: 'USD',
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: 'https://merchant.example/back?order=7',
    ...changes,
  };
}

/** Creates a hosted payment that is not paid yet. */
export async function makeHosted(
  world: ApiWorld,
  owner: Owner = 'merchant',
): Promise<{ xIntentId: string; fwdUrl: string }> {
  const made = await world.call('POST', '/payments/create-intent', {
    body: intentBody(),
    as: world[owner],
  });
  expect(made.status).toBe(200);
  return made.json as { xIntentId: string; fwdUrl: string };
}

/** The body of a valid setup session. */
export function setupBody(changes: object = {}): Record<string, unknown> {
  return {
    currency: 'USD',
    billingDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: 'https://merchant.example/saved',
    ...changes,
  };
}

export async function readIntent(world: ApiWorld, id: string): Promise<Record<string, unknown>> {
  const answer = await world.call('GET', `/payments/v2/get-intent/${id}`);
  expect(answer.status).toBe(200);
  return answer.json as Record<string, unknown>;
}

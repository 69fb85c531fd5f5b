import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import {
  makeCustomer,
  UNKNOWN_IDS,
  notFoundAnswer,
  outcome,
  saveCard,
} from './payment-fixtures.ts';
import { comparable } from './subscription-fixtures.ts';

/** GET /customer/{customerId}/payment-method-tokens. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const read = (customerId: string) =>
  world.call('GET', `/customer/${customerId}/payment-method-tokens`);

test('the list of saved methods has live and deleted ones, newest first [D-§7]', async () => {
  const at = Date.UTC(2026, 10, 1);
  const first = await saveCard(world, { at });
  const { customerId } = first;
  const last = await saveCard(world, { customerId, at: at + 2_000 });
  const deleted = await saveCard(world, { customerId, at: at + 1_000, status: 'DELETED' });
  await saveCard(world, { customerId, at: at + 3_000, status: 'PENDING' });
  await saveCard(world);

  const card = { brand: 'visa', lastFourDigit: '4242', expiryMonth: 7, expiryYear: 2031 };
  const shown = (pmId: string, status: string, createdAt: number) => ({
    paymentMethodId: pmId,
    paymentMethod: 'CARD',
    cardMetadata: card,
    customerId,
    status,
    createdAt,
  });
  expect(outcome(await read(customerId))).toEqual([
    200,
    {
      data: [
        shown(last.pmId, 'LIVE', 1_793_491_202_000),
        shown(deleted.pmId, 'DELETED', 1_793_491_201_000),
        shown(first.pmId, 'LIVE', 1_793_491_200_000),
      ],
    },
  ]);
});

test('the list of saved methods is empty for a customer without one [D-§7]', async () => {
  expect((await read(await makeCustomer(world))).text).toBe('{"data":[]}');
});

test('the list of saved methods answers a foreign customer exactly as an unknown one [D-21]', async () => {
  const foreign = await read((await saveCard(world, { owner: 'other' })).customerId);
  expect(comparable(foreign)).toEqual(comparable(await read(UNKNOWN_IDS.customer)));
  expect(outcome(foreign)).toEqual(notFoundAnswer('customer'));
});

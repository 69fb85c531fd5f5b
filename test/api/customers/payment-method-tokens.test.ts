import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { makeCustomer, outcome, saveCard } from '../../support/fixtures/payments.ts';

/** GET /customer/{customerId}/payment-method-tokens: the list of a customer's saved payment methods. */

const read = (api: ApiEnvironment, customerId: string) =>
  api.call('GET', `/customer/${customerId}/payment-method-tokens`);

test('the list of saved methods has only the customer’s LIVE and DELETED methods, newest first [D-§7]', async ({
  api,
}) => {
  const at = Date.UTC(2026, 10, 1);
  const first = await saveCard(api, { at });
  const { customerId } = first;
  const last = await saveCard(api, { customerId, at: at + 2_000 });
  const deleted = await saveCard(api, { customerId, at: at + 1_000, status: 'DELETED' });
  await saveCard(api, { customerId, at: at + 3_000, status: 'PENDING' });
  await saveCard(api);

  const card = { brand: 'visa', lastFourDigit: '4242', expiryMonth: 7, expiryYear: 2031 };
  const shown = (pmId: string, status: string, createdAt: number) => ({
    paymentMethodId: pmId,
    paymentMethod: 'CARD',
    cardMetadata: card,
    customerId,
    status,
    createdAt,
  });
  expect(outcome(await read(api, customerId))).toEqual([
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

test('the list of saved methods is empty for a customer without a saved method [D-§7]', async ({
  api,
}) => {
  expect((await read(api, await makeCustomer(api))).text).toBe('{"data":[]}');
});

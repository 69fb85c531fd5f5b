import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentMethods } from '../../../db/schema/customers.ts';
import { expectError } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { saveCard } from '../../support/fixtures/payments.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';

const declineNext = (api: ApiEnvironment, body: object, options: object = {}) =>
  api.call('POST', '/test-helpers/decline-next', { body, ...options });

test('a request orders declines for a subscription or a payment method, and a repeat with the same key orders no more [D-61]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api);
  const { pmId } = await saveCard(api);
  for (let call = 0; call < 2; call += 1) {
    const answer = await declineNext(
      api,
      { subscriptionId, code: 'stolen_card', count: 3 },
      { key: 'decline-1' },
    );
    expect([answer.status, answer.text]).toEqual([200, '{}']);
  }
  const advised = { pmId, code: 'expired_card', advice: 'not_before', waitHours: 48 };
  expect((await declineNext(api, advised)).status).toBe(200);
  expect(api.forcedDeclines).toEqual([
    { subscriptionId, paymentMethodId: null, code: 'stolen_card', count: 3, advice: null },
    {
      subscriptionId: null,
      paymentMethodId: pmId,
      code: 'expired_card',
      count: 1,
      advice: { kind: 'not_before', waitMs: 172_800_000 },
    },
  ]);
});

test('a request for declines is refused without exactly one target, for an unknown code and for another merchant’s record [D-21, D-61]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api);
  const before = api.forcedDeclines.length;
  const code = 'card_declined';
  const target = 'body: must have either subscriptionId or pmId';
  expectError(await declineNext(api, { code }), 400, 'bad_request', target);
  const both = await declineNext(api, { subscriptionId, pmId: 'pmt_1', code });
  expectError(both, 400, 'bad_request', target);
  const wait = { subscriptionId, code, waitHours: 1 };
  expectError(
    await declineNext(api, wait),
    400,
    'bad_request',
    'waitHours: needs advice not_before',
  );
  const unlimited = { subscriptionId, code, advice: 'not_before' };
  expectError(
    await declineNext(api, unlimited),
    400,
    'bad_request',
    'waitHours: is required with advice not_before',
  );
  expect((await declineNext(api, { subscriptionId, code: 'sunspots' })).text).toContain(
    'code: must be one of card_declined, ',
  );
  const foreign = await declineNext(api, { subscriptionId, code }, { as: api.other });
  expectError(foreign, 400, 'resource_not_found', 'There is no such subscription.');
  const unknown = await declineNext(api, { pmId: 'pmt_1', code });
  expectError(unknown, 400, 'resource_not_found', 'There is no such payment method.');
  expect(api.forcedDeclines).toHaveLength(before);
});

test('a request for declines is refused when the payment method is at another gateway [D-61]', async ({
  api,
}) => {
  const { pmId } = await saveCard(api);
  const before = api.forcedDeclines.length;
  await api.db
    .update(paymentMethods)
    .set({ gateway: 'stripe:acct_1' })
    .where(eq(paymentMethods.id, pmId));
  const answer = await declineNext(api, { pmId, code: 'card_declined' });
  const reason =
    'Only the sandbox gateway declines charges on request, and these charges are made at another gateway. ' +
    'Use a test card of that gateway.';
  expectError(answer, 400, 'operation_not_allowed', reason);
  expect(api.forcedDeclines).toHaveLength(before);
});

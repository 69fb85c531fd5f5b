import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { idempotencyKeys } from '../../../db/schema/merchants.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { subscriptionIn, readSubscription } from '../../support/fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';
import { expectError } from '../../support/answers.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

const NOON = Date.UTC(2027, 0, 31, 12);
const FOUR_PM = '2027-01-31T16:00:00.000Z';

/** An UNPAID subscription on a test clock at noon of 31 January 2027. */
async function unpaidAtNoon(
  api: ApiEnvironment,
  changes: Record<string, unknown> = {},
): Promise<CreatedSubscription> {
  const testClockId = await createClock(api, NOON);
  return subscriptionIn(api, 'UNPAID', { testClockId, ...changes });
}

async function retry(
  api: ApiEnvironment,
  { subscriptionId }: CreatedSubscription,
  options: { card?: string; key?: string } = {},
) {
  const { card = null, key } = options;
  api.workflows.faults.card = card;
  const body = { subscriptionId };
  return api
    .call('POST', '/subscription/manual-retry', { body, ...(key === undefined ? {} : { key }) })
    .finally(() => {
      api.workflows.faults.card = null;
    });
}

test('a paid manual retry answers exactly five fields [IF-4.9, D-31, D-10a, IF-3]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api);
  const answer = await retry(api, subscription);
  expect([answer.status, answer.text]).toEqual([
    200,
    `{"success":true,"minManualRetryDate":"${FOUR_PM}","status":"ACTIVE","errorCode":null,"errorMessage":null}`,
  ]);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 10,
  });
});

test('a declined manual retry answers 200 with the decline code and its text [IF-4.9, D-42, IF-3]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api);
  const answer = await retry(api, subscription, { card: 'insufficient_funds' });
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      success: false,
      minManualRetryDate: FOUR_PM,
      status: 'UNPAID',
      errorCode: 'insufficient_funds',
      errorMessage: 'The account does not hold enough money for this payment.',
    },
  ]);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'UNPAID',
    remainingCycleCount: 11,
  });
});

test('the answer to a declined manual retry is stored under its idempotency key and replayed [IF-4.9, D-17]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api);
  const first = await retry(api, subscription, { card: 'stolen_card', key: 'declined' });
  const second = await retry(api, subscription, { key: 'declined' });
  expect(first.json).toMatchObject({ success: false, errorCode: 'stolen_card' });
  expect([second.status, second.text]).toEqual([200, first.text]);
  expect(second.headers['idempotent-replayed']).toBe('true');
});

test('a manual retry is refused until 4 h after the last one [IF-4.9, D-31, IF-7]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api);
  await retry(api, subscription, { card: 'card_declined' });
  const again = await retry(api, subscription);
  expect([again.status, again.json]).toEqual([
    400,
    {
      errorCode: 'bad_request',
      errorDescription: `Another manual retry is possible from ${FOUR_PM}.`,
      retryAt: FOUR_PM,
    },
  ]);
});

test('a manual retry that pays the last cycle answers ENDED [IF-4.9, D-31, D-10a, D-§4]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api, { cycleCount: 2 });
  const answer = await retry(api, subscription);
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      success: true,
      minManualRetryDate: null,
      status: 'ENDED',
      errorCode: null,
      errorMessage: null,
    },
  ]);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ENDED',
    endReason: 'completed',
  });
});

test('a manual retry of unknown outcome is pending until a repeat with the same key returns the result [D-31, D-17]', async ({
  api,
}) => {
  const subscription = await unpaidAtNoon(api);
  const pending = {
    errorCode: 'payment_outcome_pending',
    errorDescription: 'The outcome of a payment is not known yet. Try again shortly.',
  };
  const first = await retry(api, subscription, { card: 'unknown', key: 'undecided' });
  expect([first.status, first.json]).toEqual([400, pending]);
  const again = await retry(api, subscription, { key: 'undecided' });
  expect([again.status, again.json]).toEqual([400, pending]);
  expect(again.headers['idempotent-replayed']).toBeUndefined();
  const [row] = await api.db
    .select({ body: idempotencyKeys.body })
    .from(idempotencyKeys)
    .where(eq(idempotencyKeys.key, 'undecided'));
  expect(row?.body).toBeNull();
  // A call with another key makes no second retry either.
  const other = await retry(api, subscription, { key: 'another' });
  expectError(other, 400, 'payment_outcome_pending', 'The outcome of a payment is not known yet.');

  api.workflows.faults.card = 'paid late';
  await api.workflows.lookUp(subscription.ref);
  const late = await retry(api, subscription, { key: 'undecided' });
  expect([late.status, late.json]).toEqual([
    200,
    {
      success: true,
      minManualRetryDate: FOUR_PM,
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    },
  ]);
  const replayed = await retry(api, subscription, { key: 'undecided' });
  expect([replayed.text, replayed.headers['idempotent-replayed']]).toEqual([late.text, 'true']);
});

import { and, asc, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { explainCommand } from '../../../cli/explain/command.ts';
import { paymentAttempts, paymentIntents } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { runCommand } from '../../support/run-command.ts';

/** `npm run explain -- …` on the environment's database. */
const explain = (api: ApiEnvironment, given: string) =>
  runCommand(explainCommand, { DATABASE_URL: api.databaseUrl }, [given]);

test('explain finds a subscription by every id of its payment, its receipt and its e-mail address [D-§7]', async ({
  api,
}) => {
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE', {
    receiptId: 'only-one',
    customerDetails: { name: 'Ada', email: 'Only@Example.com' },
  });
  const [paid] = await api.db
    .select({ intentId: paymentIntents.id, attempt: paymentAttempts })
    .from(paymentIntents)
    .innerJoin(paymentAttempts, eq(paymentAttempts.intentId, paymentIntents.id))
    .where(
      and(
        eq(paymentIntents.subscriptionId, subscriptionId),
        eq(paymentAttempts.state, 'SUCCEEDED'),
      ),
    )
    .orderBy(asc(paymentAttempts.createdAt));
  const { gatewayKey, gatewayChargeId } = paid!.attempt;
  const ids = [subscriptionId, paid!.intentId, gatewayKey, gatewayChargeId!];
  for (const given of [...ids, 'only-one', 'only@example.COM']) {
    const told = await explain(api, given);
    expect([told.code, told.stdout.split('\n')[0]]).toEqual([
      0,
      `${subscriptionId} of ${api.merchant.merchantId}`,
    ]);
    expect(told.stdout).not.toContain('*');
  }
});

test('explain lists the ids of several subscriptions with one receipt, and refuses a text that matches none [D-§7]', async ({
  api,
}) => {
  const made = [
    await subscriptionIn(api, 'ACTIVE', { receiptId: 'of-two' }),
    await subscriptionIn(api, 'CREATED', { receiptId: 'of-two' }),
  ];
  const ids = made.map(({ subscriptionId }) => subscriptionId).toSorted();
  expect(await explain(api, 'of-two')).toMatchObject({
    code: 1,
    stdout: [
      'Several subscriptions match. Give the id of one:',
      ...ids.map((id) => `  ${id}`),
      '',
    ].join('\n'),
  });
  const none = await explain(api, 'of-none');
  expect(none.code).toBe(1);
  expect(none.stderr).toContain('There is no subscription for of-none.');
});

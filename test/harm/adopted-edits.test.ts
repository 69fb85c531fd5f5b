import { expect } from 'vitest';
import { eq, sql } from 'drizzle-orm';
import { merchants } from '../../db/schema/merchants.ts';
import { describeWorkflow } from '../../temporal/client.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { repairsOf } from '../support/repairs.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { DUE_AT, paidForJanuary } from '../support/february-charge.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { dumpRows, restoreOldRows } from '../support/restored-rows.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { runCommand } from '../support/run-command.ts';
import { explainCommand } from '../../cli/explain/command.ts';
import { NOTHING_MISSING, verify } from '../support/verify-command.ts';

/** The rows are restored from a backup that is older than an edit, after which the gateway charged a cycle. */

const DAY_MS = 86_400_000;

const chargedAmounts = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.events(ref))
    .filter(({ eventType }) => eventType === 'subscription.cycle_charged')
    .map(({ cycleNumber, amount }) => `${String(cycleNumber)}: ${String(amount)}`);

const cyclesCharged = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.state(ref)).cyclesCharged;

const lineOf = ({ subscriptionId }: SubscriptionRef, cycle: number, amount: number) =>
  `  + charge:${intentIdOfCycle(subscriptionId, cycle)}:1: ${amount} USD are booked as cycle ${cycle} of ${subscriptionId}`;

test('verify --adopt books the amount that the gateway charged when the edit of the amount is lost [D-39]', async ({
  env,
  shop,
}) => {
  const { ref, clock, february } = await paidForJanuary(env);
  const restore = await dumpRows(env.db);
  await env.execute(ref, command('edit', { newAmountMinor: 2_999 }));
  await env.advance(clock, DUE_AT);
  expect(await february()).toEqual(['succeeded 2999 x1']);
  await restoreOldRows(env.db, restore);

  const { lines } = await verify(env, '--adopt');
  expect(lines[0]).toBe(lineOf(ref, 2, 2_999));
  await env.advance(clock, DUE_AT);
  expect(await chargedAmounts(env, ref)).toEqual(['1: 1999', '2: 2999']);
  expect((await env.timeline(ref)).map(({ what }) => what)).toEqual([
    'created',
    'cycle 1 paid, 19.99 USD',
    'cycle 2 adopted, 29.99 USD',
    'cycle 2 paid, 29.99 USD',
  ]);
  const { data } = await shop.merchant.get<{ data: object[] }>(
    `/subscription/charges/${ref.subscriptionId}`,
  );
  expect(data[1]).toMatchObject({
    attempt: 1,
    amount: 2_999,
    dueAt: '2027-02-10T00:00:00.000Z',
    status: 'SUCCESS',
    cause: {
      rule: 'adopted',
      text: "an operator copied it from the gateway's book",
      actor: 'operator',
    },
  });
  const variables = { DATABASE_URL: env.databaseUrl };
  const asOf = [ref.subscriptionId, '--at', '2027-02-11'];
  const { stdout } = await runCommand(explainCommand, variables, asOf);
  expect(stdout).toContain('cycle 2 adopted, 29.99 USD');
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);

  await env.execute(ref, command('edit', { newAmountMinor: 2_999 }));
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  await env.advance(clock, DUE_AT + DAY_MS);
  expect(await february()).toEqual(['succeeded 2999 x1']);
});

test('verify --adopt books a charge at once when the edit that moved its date is lost, and the repeated edit moves the next date [D-39, D-15]', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  const restore = await dumpRows(env.db);
  await env.execute(ref, command('edit', { newNextPaymentAt: Date.now() + 1_500 }));
  await expect.poll(() => cyclesCharged(env, ref), { timeout: 20_000 }).toBe(2);
  await restoreOldRows(env.db, restore);

  const { lines } = await verify(env, '--adopt');
  expect(lines[0]).toBe(lineOf(ref, 2, 1_999));
  await expect.poll(() => cyclesCharged(env, ref), { timeout: 20_000 }).toBe(2);
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  const newNextPaymentAt = Date.now() + 30 * DAY_MS;
  await env.execute(ref, command('edit', { newNextPaymentAt }));
  expect(await env.state(ref)).toMatchObject({ anchorAt: newNextPaymentAt, nextIndex: 0 });
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  expect(await env.book(ref)).toHaveLength(2);
});

test('verify --adopt books a charge of a subscription whose unpause is lost, which is then unpaused again [D-39]', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  await payCheckout(env, ref);
  await env.execute(ref, command('pause'));
  const restore = await dumpRows(env.db);
  await env.execute(ref, command('unpause', { newNextPaymentAt: Date.now() + 1_500 }));
  await expect.poll(() => cyclesCharged(env, ref), { timeout: 20_000 }).toBe(2);
  await restoreOldRows(env.db, restore);

  const { lines } = await verify(env, '--adopt');
  expect(lines[0]).toBe(lineOf(ref, 2, 1_999));
  await expect.poll(() => cyclesCharged(env, ref), { timeout: 20_000 }).toBe(2);
  expect((await env.state(ref)).status).toBe('PAUSED');
  await env.execute(ref, command('unpause', { newNextPaymentAt: Date.now() + 30 * DAY_MS }));
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  expect(await env.book(ref)).toHaveLength(2);
});

test('verify --adopt ends and names a workflow whose row is lost, unless its merchant is unknown, too [D-39, D-40]', async ({
  env,
}) => {
  const restore = await dumpRows(env.db);
  const ref = await env.create({ createdAt: Date.now() });
  const { subscriptionId } = ref;
  await payCheckout(env, ref);
  const { customerId, currentPeriodEndAt } = await env.state(ref);
  await restoreOldRows(env.db, restore);
  const statusOf = async () => {
    const workflowId = subscriptionWorkflowId(subscriptionId);
    return (await describeWorkflow(env.client, workflowId))?.status.name;
  };
  const renameMerchant = (from: string, to: string) =>
    env.db.transaction(async (tx) => {
      await tx.execute(sql`set local session_replication_role = replica`);
      await tx.update(merchants).set({ id: to }).where(eq(merchants.id, from));
    });
  await renameMerchant(env.merchantId, 'mer_elsewhere');
  const foreign = (await verify(env, '--adopt')).lines;
  expect(foreign.at(-1)).toBe(
    `  ! ${subscriptionId} and 0 more workflows have no row, and no merchant (${env.merchantId}) in this database: terminate them if it is the right one`,
  );
  expect(await statusOf()).toBe('RUNNING');
  await renameMerchant('mer_elsewhere', env.merchantId);

  const key = `charge:${intentIdOfCycle(subscriptionId, 1)}:1`;
  const day = new Date(currentPeriodEndAt!).toISOString().slice(0, 16).replace('T', ' ');
  expect(await verify(env, '--adopt')).toEqual({
    code: 1,
    lines: [
      `  ! ${key}: not booked: there is no row of ${subscriptionId}`,
      `  ! ${subscriptionId}: its row is lost, so its workflow is ended: ACTIVE, 1 of 12 cycles paid, 19.99 USD every 1 MONTH, next payment ${day}, customer ${customerId}`,
    ],
  });
  expect(await statusOf()).toBe('TERMINATED');
  expect(await repairsOf(env)).toEqual({});
  expect(await statusOf()).toBe('TERMINATED');
  const accept = ['--accept', key, '--note', 'refunded at the gateway'];
  expect((await verify(env, ...accept)).code).toBe(0);
  expect((await verify(env, '--adopt')).code).toBe(0);
  expect(await env.book(ref)).toHaveLength(1);
});

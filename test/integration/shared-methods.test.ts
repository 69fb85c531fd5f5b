import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { tryKey } from '../../db/repositories/checkouts/tries.ts';
import { savePaymentMethod } from '../../db/repositories/customers/payment-methods.ts';
import { writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { applyNewPaymentMethod } from '../../domain/subscription/apply-command.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { importsIn, LINE } from '../support/imports.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Subscriptions that share one payment method after an import. */

const test = onDevServer.extend('imports', { scope: 'file' }, async ({ env }, { onCleanup }) => {
  const imports = importsIn(env);
  onCleanup(() => imports.close());
  return imports;
});

const DAY_MS = 86_400_000;

/** Imports subscriptions with one card at the gateway. The first charge is due in a day. */
async function sharing(
  { merchantId }: TestEnvironment,
  imports: ReturnType<typeof importsIn>,
  ...importIds: string[]
): Promise<SubscriptionRef[]> {
  const gatewayMethodId = await imports.sandboxMethod();
  const nextPaymentDate = Date.now() + DAY_MS;
  const { report } = await imports.run(
    importIds.map((importId) => ({ ...LINE, importId, nextPaymentDate, gatewayMethodId })),
    { commit: true },
  );
  return report.map(({ subscriptionId }) => ({
    merchantId,
    subscriptionId: String(subscriptionId),
  }));
}

const methodOf = async (env: TestEnvironment, ref: SubscriptionRef): Promise<string> =>
  String((await env.state(ref)).paymentMethodId);

const statusOf = async ({ db }: TestEnvironment, id: string) => {
  const [row] = await db
    .select({ status: paymentMethods.status })
    .from(paymentMethods)
    .where(eq(paymentMethods.id, id));
  return row?.status;
};

test('a replaced payment method stays LIVE while a subscription that is not ENDED uses it, and then becomes DELETED [D-33, D-36]', async ({
  env,
  imports,
}) => {
  const [first, second, ended] = (await sharing(env, imports, 'a', 'b', 'c')) as [
    SubscriptionRef,
    SubscriptionRef,
    SubscriptionRef,
  ];
  const shared = await methodOf(env, first);
  expect([await methodOf(env, second), await methodOf(env, ended)]).toEqual([shared, shared]);
  await env.execute(ended, { kind: 'cancel', commandId: 'cmd_c', reason: 'cancelled' });
  expect(await env.state(ended)).toMatchObject({ status: 'ENDED', paymentMethodId: shared });
  expect(await statusOf(env, shared)).toBe('LIVE');

  const replace = async (ref: SubscriptionRef) =>
    env.execute(ref, newMethodCommand(await env.token()));
  const saved = { kind: 'result', result: { kind: 'checkout', outcome: 'saved' } };
  expect(await replace(first)).toMatchObject(saved);
  const own = await methodOf(env, first);
  expect([await statusOf(env, shared), await statusOf(env, own)]).toEqual(['LIVE', 'LIVE']);
  expect(await methodOf(env, second)).toBe(shared);

  expect(await replace(second)).toMatchObject(saved);
  expect(await methodOf(env, second)).not.toBe(shared);
  expect([await statusOf(env, shared), await statusOf(env, own)]).toEqual(['DELETED', 'LIVE']);
});

test('a shared payment method becomes DELETED when both subscriptions replace it at once [D-33]', async ({
  env,
  imports,
}) => {
  const [first, second] = (await sharing(env, imports, 'd', 'e')) as [
    SubscriptionRef,
    SubscriptionRef,
  ];
  const shared = await methodOf(env, first);
  /** Saves a new card and returns the transition of the subscription to this card. */
  const replacing = async (ref: SubscriptionRef, id: string) => {
    const state = await env.state(ref);
    const [like] = await env.db.select().from(paymentMethods).where(eq(paymentMethods.id, shared));
    const nowAt = Date.now();
    const entry = { enteredAt: nowAt, createdAt: nowAt, tokenHash: tryKey(id) };
    const gatewayMethodId = `gateway of ${id}`;
    await savePaymentMethod(env.db, { ...like!, id, gatewayMethodId, ...entry });
    const order = { paymentMethodId: id, commandId: `cmd_${id}`, sessionId: 'cs_1' };
    const change = applyNewPaymentMethod(state, order, nowAt, nowAt);
    return { change, transitionId: `cmd_${id}`, command: null, nowAt };
  };
  const [ofFirst, ofSecond] = [
    await replacing(first, 'pmt_0000000000000000000001'),
    await replacing(second, 'pmt_0000000000000000000002'),
  ];
  const later = await env.db.transaction(async (tx) => {
    expect(await writeChange(tx, ofFirst)).toEqual({ kind: 'recorded' });
    const waiting = writeChange(env.db, ofSecond);
    await eventually(async () => {
      const [row] = await env.db.execute(sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`);
      expect(row).toBeDefined();
    });
    return { waiting };
  });
  expect(await later.waiting).toEqual({ kind: 'recorded' });
  expect(await statusOf(env, shared)).toBe('DELETED');
});

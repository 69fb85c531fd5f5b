import { describe, expect } from 'vitest';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { DUE_AT, februaryLost, paidForJanuary } from '../support/february-charge.ts';
import { dumpRows } from '../support/restored-rows.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { detailsOf } from '../support/workflow-details.ts';
import { eventually } from '../support/eventually.ts';

/** The rows are restored from a backup, while Temporal and the gateway keep what happened after the backup. */

const HELD = '**Held**: the database is older than this run.';
const handleOf = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

const expectHeld = (env: TestEnvironment, ref: SubscriptionRef) =>
  eventually(async () => expect(await detailsOf(handleOf(env, ref))).toContain(HELD));

const edit = (env: TestEnvironment, ref: SubscriptionRef) =>
  env.workflows.execute(ref, command('edit', { newAmountMinor: 2_099 }));

describe('a restored database', () => {
  test('charges no cycle again after a command to the newer run, which is held [D-39]', async ({
    env,
  }) => {
    const { ref, clock, february, attempts } = await februaryLost(env);
    await expect(edit(env, ref)).rejects.toMatchObject({ code: 'service_unavailable' });
    await expectHeld(env, ref);
    await env.sendClock(clock, DUE_AT);
    await expectHeld(env, ref);
    expect(await february()).toEqual(['succeeded 1999 x1']);
    expect(await attempts()).toEqual([]);
  });

  test('books the charge that the gateway has after the newer run was terminated, and tells it with the same ids [D-39]', async ({
    env,
  }) => {
    const { ref, clock, february, attempts, newEvents, lostEvents } = await februaryLost(env);
    await handleOf(env, ref).terminate('the database was restored');
    expect(await env.workflows.ensureRunning(ref)).toBe(true);
    await env.advance(clock, DUE_AT);
    expect(await february()).toEqual(['succeeded 1999 x2']);
    expect(await attempts()).toEqual(['1 SUCCEEDED']);
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });

    expect((await newEvents()).map(([type]) => type)).toEqual([
      'intent.created',
      'intent.success',
      'subscription.cycle_charged',
    ]);
    expect(await newEvents()).toEqual(lostEvents);

    await env.advance(clock, DUE_AT + 86_400_000);
    expect(await february()).toEqual(['succeeded 1999 x2']);
    expect(await newEvents()).toEqual(lostEvents);
  });

  test('puts the cycle in review when it owes another amount than the gateway has charged [D-39]', async ({
    env,
  }) => {
    const { ref, clock, february, attempts } = await februaryLost(env);
    await handleOf(env, ref).terminate('the database was restored');
    await edit(env, ref);
    await env.sendClock(clock, DUE_AT);
    await expect.poll(attempts).toEqual(['1 REVIEW']);
    // The gateway refused the second send.
    expect(await february()).toEqual(['succeeded 1999 x2']);
  });

  test('starts no workflow for a subscription whose workflow has completed [D-39]', async ({
    env,
  }) => {
    const { ref, clock, february, attempts } = await paidForJanuary(env);
    const restore = await dumpRows(env.db);
    await env.execute(ref, command('cancel', { reason: 'cancelled' }));
    await handleOf(env, ref).result();
    await restore();

    const refused = { code: 'service_unavailable' };
    expect(await env.workflows.ensureRunning(ref)).toBe(false);
    await expect(env.sendClock(clock, DUE_AT)).rejects.toMatchObject(refused);
    await expect(edit(env, ref)).rejects.toMatchObject(refused);
    expect(await february()).toEqual([]);
    expect(await attempts()).toEqual([]);
  });

  test('makes a charge and a refund once when the merchant repeats them with their idempotency keys [D-39]', async ({
    env,
    shop,
  }) => {
    const { ref } = await paidForJanuary(env);
    const restore = await dumpRows(env.db);
    const xIntentId = intentIdOfCycle(ref.subscriptionId, 1);
    const refund = () =>
      shop.merchant.post(
        '/payments/merchant/refund',
        { xIntentId, amount: 500 },
        'a-refund-of-january',
      );
    const order = { subscriptionId: ref.subscriptionId, amount: 700, currency: 'USD' };
    const charge = () =>
      shop.merchant.post('/subscription/merchant/one-time-charge', order, 'an-extra-of-february');
    const first = [await charge(), await refund()];
    await restore();

    expect(await charge()).toEqual(first[0]);
    expect(first[0]).toMatchObject({ status: 'SUCCESS' });
    const { refundId } = first[1] as { refundId: string };
    expect(await refund()).toMatchObject({ refundId, amount: 500 });
    const book = await env.book(ref);
    expect(
      book.map(({ outcome, amountMinor, refundedMinor, sentCount }) => [
        `${outcome} ${amountMinor} x${sentCount}`,
        refundedMinor,
      ]),
    ).toEqual([
      ['succeeded 1999 x1', 500],
      ['succeeded 700 x2', 0],
    ]);
  });
});

import { expect } from 'vitest';
import { intentIdOfCycle } from '../../domain/ids.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { DUE_AT } from '../support/february-charge.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';
import { dumpRows } from '../support/restored-rows.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');
const RENEWALS = 20;
const DAY_MS = 86_400_000;

async function paidForJanuary(env: TestEnvironment, testClockId: string): Promise<SubscriptionRef> {
  const terms = { cycleCount: 3 };
  const ref = await env.create({ createdAt: CREATED_AT, testClockId, terms });
  await payCheckout(env, ref);
  return ref;
}

const terminate = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow
    .getHandle(subscriptionWorkflowId(subscriptionId))
    .terminate('the database was restored');

/** The charges of a subscription: outcome, amount and refunded amount. Each key and each intent occurs once. */
async function booked(env: TestEnvironment, ref: SubscriptionRef): Promise<string[]> {
  const book = await env.book(ref);
  expect(new Set(book.map(({ key }) => key)).size).toBe(book.length);
  expect(new Set(book.map(({ reference }) => reference.intentId)).size).toBe(book.length);
  return book.map(({ outcome, amountMinor, refundedMinor }) =>
    refundedMinor === 0
      ? `${outcome} ${amountMinor}`
      : `${outcome} ${amountMinor}, refunded ${refundedMinor}`,
  );
}

const held = async ({ url }: { url: string }): Promise<unknown> =>
  (await fetch(`${url}/health`)).json();

const PAID_TWICE = ['succeeded 1999', 'succeeded 1999'];

test('a restore after 20 renewals, a refund, a cancellation, an edit and a one-time charge charges nothing twice [D-39]', async ({
  env,
  shop,
}) => {
  const clock = await env.createClock(CREATED_AT);
  const refs: SubscriptionRef[] = [];
  for (let at = 0; at < RENEWALS; at += 1) refs.push(await paidForJanuary(env, clock));
  const [refunded, cancelled, edited, charged, ...others] = refs;
  if (!refunded || !cancelled || !edited || !charged) throw new Error('four subscriptions');
  const xIntentId = intentIdOfCycle(refunded.subscriptionId, 2);
  const refund = () =>
    shop.impatientMerchant.post(
      '/payments/merchant/refund',
      { xIntentId, amount: 500 },
      'the-refund-of-february',
    );
  const chargeOnce = () =>
    shop.impatientMerchant.post(
      '/subscription/merchant/one-time-charge',
      { subscriptionId: charged.subscriptionId, amount: 700, currency: 'USD' },
      'the-extra-of-february',
    );
  const edit = () =>
    shop.impatientMerchant.post(
      '/subscription/edit',
      { subscriptionId: edited.subscriptionId, newAmount: 2_099 },
      'the-edit-of-february',
    );
  const cancel = () =>
    shop.impatientMerchant.post(
      '/subscription/merchant/cancel',
      { subscriptionId: cancelled.subscriptionId },
      'the-cancellation-of-february',
    );

  const restore = await dumpRows(env.db);
  await env.advance(clock, DUE_AT);
  const first = { refund: await refund(), charge: await chargeOnce() };
  await edit();
  await cancel();
  await env.stopWorkers();
  await restore();
  await env.startWorkers();

  const released = [refunded, ...others.slice(0, 8)];
  const stillHeld = [edited, charged, ...others.slice(8)];
  const running = [...released, ...stillHeld];
  const advance = async (some: SubscriptionRef[], targetAt: number) => {
    // The target cannot be sent to the workflow that has completed.
    const sent = env.sendClock(clock, targetAt);
    await expect(sent).rejects.toMatchObject({ code: 'service_unavailable' });
    for (const ref of some) await env.workflows.advanceClock(ref, targetAt);
  };

  // Some runs are terminated. The others are newer than their rows.
  for (const ref of released) await terminate(env, ref);
  await eventually(async () => expect(await repairsOf(env, 600_000)).toEqual({}));
  await advance(released, DUE_AT);
  for (const ref of released) {
    await eventually(async () =>
      expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 }),
    );
  }
  // The merchant repeats its calls.
  expect(await refund()).toMatchObject({ refundId: Reflect.get(Object(first.refund), 'refundId') });
  expect(await chargeOnce()).toEqual(first.charge);
  await expect(edit()).rejects.toThrow('status 503');
  await expect(cancel()).rejects.toThrow('status 503');

  // The operator releases the other runs. The cancelled subscription's workflow has completed.
  for (const ref of refs) if (ref !== cancelled) await env.workflows.recheck(ref);
  await eventually(async () =>
    expect(await held(shop)).toEqual({ status: 'ok', heldSubscriptions: 11 }),
  );
  for (const ref of stillHeld) await terminate(env, ref);
  await eventually(async () => {
    await repairsOf(env, 600_000);
    expect(await held(shop)).toEqual({ status: 'ok', heldSubscriptions: 1 });
  });
  await advance(stillHeld, DUE_AT);
  for (const ref of running) {
    await eventually(async () =>
      expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 }),
    );
  }

  // Nothing further happens in the next day.
  await advance(running, DUE_AT + DAY_MS);
  for (const ref of others) {
    await eventually(async () => expect(await booked(env, ref)).toEqual(PAID_TWICE));
  }
  expect(await booked(env, refunded)).toEqual(['succeeded 1999', 'succeeded 1999, refunded 500']);
  expect(await booked(env, cancelled)).toEqual(PAID_TWICE);
  expect(await booked(env, edited)).toEqual(PAID_TWICE);
  expect(await booked(env, charged)).toEqual([...PAID_TWICE, 'succeeded 700']);
});

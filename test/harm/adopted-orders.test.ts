import { expect } from 'vitest';
import { countHeld } from '../../db/repositories/sweeps/queries.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { DUE_AT, paidForJanuary } from '../support/february-charge.ts';
import { auditCommand } from '../../cli/audit/command.ts';
import { runCommand, runProgram } from '../support/run-command.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';
import { dumpRows, restoreOldRows } from '../support/restored-rows.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { NOTHING_MISSING, verify } from '../support/verify-command.ts';

/** The rows are restored from a backup. `npm run verify -- --adopt` books what the gateway has. */

const DAY_MS = 86_400_000;
test('verify --adopt books a lost charge, a lost refund and a lost order once, releases the run and names a lost edit [D-39]', async ({
  env,
  shop,
}) => {
  const { ref, clock, february, attempts } = await paidForJanuary(env);
  const { subscriptionId } = ref;
  const january = intentIdOfCycle(subscriptionId, 1);
  const refund = () =>
    shop.merchant.post(
      '/payments/merchant/refund',
      { xIntentId: january, amount: 500 },
      'a-refund',
    );
  const charge = () =>
    shop.merchant.post(
      '/subscription/merchant/one-time-charge',
      { subscriptionId, amount: 700, currency: 'USD' },
      'an-extra',
    );
  const restore = await dumpRows(env.db);
  await env.advance(clock, DUE_AT);
  const first = { refund: await refund(), charge: await charge() };
  await env.execute(ref, command('edit', { newAmountMinor: 2_099 }));
  await restoreOldRows(env.db, restore);

  // Without the option, the command changes nothing.
  expect(await verify(env)).toEqual({ code: 1, lines: [] });
  expect(await attempts()).toEqual([]);

  const { lines } = await verify(env, '--adopt');
  const orderId = String(Reflect.get(Object(first.charge), 'intentId'));
  const refundId = String(Reflect.get(Object(first.refund), 'refundId'));
  expect(lines).toEqual([
    `  + charge:${intentIdOfCycle(subscriptionId, 2)}:1: 1999 USD are booked as cycle 2 of ${subscriptionId}`,
    `  + charge:${orderId}:1: 700 USD are booked as a one-time charge of ${subscriptionId}`,
    `  + refund:${refundId}: 500 are booked as a refund of ${january}`,
    `  ! ${subscriptionId}: its row does not have "edited: amount 20.99 USD" of 2027-02-10 00:00 (the merchant asked for it)`,
    `  + ${subscriptionId}: its newer run is terminated, and a run starts from its row`,
  ]);
  await env.advance(clock, DUE_AT);
  expect(await attempts()).toEqual(['1 SUCCEEDED']);
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });

  // The merchant repeats its calls.
  expect(await charge()).toEqual(first.charge);
  expect(await refund()).toMatchObject({ refundId, amount: 500 });
  const events = (await env.events(ref)).slice(5);
  expect(events.map((event) => String(event['eventType'])).toSorted()).toEqual([
    'intent.created',
    'intent.created',
    'intent.refunded',
    'intent.success',
    'intent.success',
    'subscription.cycle_charged',
  ]);

  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  // Nothing was sent again, and nothing further happens.
  await env.advance(clock, DUE_AT + DAY_MS);
  expect(await repairsOf(env)).toEqual({});
  expect((await env.events(ref)).length).toBe(5 + events.length);
  expect(await february()).toEqual(['succeeded 1999 x1', 'succeeded 700 x1']);
  const book = await env.book(ref);
  expect(book.map(({ refundedMinor }) => refundedMinor)).toEqual([500, 0, 0]);
  expect(new Set(book.map(({ key }) => key)).size).toBe(3);
});

test('verify --adopt names an edit and a pause that the restored rows lack, and starts the runs from the rows [D-39]', async ({
  env,
}) => {
  const edited = await env.create({ createdAt: Date.now() });
  const paused = await env.create({ createdAt: Date.now() });
  const same = await env.create({ createdAt: Date.now() });
  for (const ref of [edited, paused, same]) await payCheckout(env, ref);
  const restore = await dumpRows(env.db);
  await env.execute(edited, command('edit', { newAmountMinor: 2_099 }));
  await env.execute(paused, command('pause'));
  await restoreOldRows(env.db, restore);

  const { lines } = await verify(env, '--adopt');
  const named = (id: string) => lines.filter((line) => line.includes(id));
  const released = 'its newer run is terminated, and a run starts from its row';
  expect(named(edited.subscriptionId)).toEqual([
    expect.stringContaining('its row does not have "edited: amount 20.99 USD"'),
    `  + ${edited.subscriptionId}: ${released}`,
  ]);
  expect(named(paused.subscriptionId)).toEqual([
    expect.stringContaining('its row does not have "paused'),
    `  + ${paused.subscriptionId}: ${released}`,
  ]);
  expect(lines).toHaveLength(4);
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  for (const ref of [edited, paused, same]) {
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', terms: { amountMinor: 1_999 } });
    expect(await env.book(ref)).toHaveLength(1);
  }
  expect(await countHeld(env.db)).toBe(0);
});

test('verify --adopt books the payment of a cycle whose earlier decline is lost, too [D-39]', async ({
  env,
}) => {
  const { ref, clock, february, attempts } = await paidForJanuary(env);
  const { subscriptionId } = ref;
  const intentId = intentIdOfCycle(subscriptionId, 2);
  const restore = await dumpRows(env.db);
  const decline = { subscriptionId, code: 'insufficient_funds', count: 1 };
  await env.control('POST', '/control/declines', decline);
  await env.advance(clock, DUE_AT + 10 * DAY_MS);
  expect(await attempts()).toEqual(['1 DECLINED', '2 SUCCEEDED']);
  await restoreOldRows(env.db, restore);

  const { lines } = await verify(env, '--adopt');
  expect(lines).toEqual([
    `  + charge:${intentId}:2: 1999 USD are booked as cycle 2 of ${subscriptionId}`,
    `  + charge:${intentId}:1: its decline is booked`,
    expect.stringContaining('"cycle 2 declined (insufficient_funds)"'),
    `  + ${subscriptionId}: its newer run is terminated, and a run starts from its row`,
  ]);
  await env.advance(clock, DUE_AT);
  expect((await attempts()).toSorted()).toEqual(['1 DECLINED', '2 SUCCEEDED']);
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  await env.advance(clock, DUE_AT + 10 * DAY_MS);
  expect(await february()).toEqual(['declined 1999 x1', 'succeeded 1999 x1']);
});

test('verify --adopt ends the row of a run that completed at the end of the period, and sends its event [D-39]', async ({
  env,
}) => {
  const { ref, clock } = await paidForJanuary(env);
  const restore = await dumpRows(env.db);
  await env.execute(ref, command('cancel', { reason: 'cancelled', atPeriodEnd: true }));
  await env.advance(clock, DUE_AT);
  await env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId)).result();
  const ended = await env.state(ref);
  await restoreOldRows(env.db, restore);

  expect(await verify(env, '--adopt')).toEqual({
    code: 0,
    lines: [
      `  + ${ref.subscriptionId}: its workflow ended as ENDED (cancelled), and so does its row`,
    ],
  });
  expect(await env.state(ref)).toEqual(ended);
  expect((await env.events(ref)).at(-1)).toMatchObject({ eventType: 'subscription.ended' });
  expect(await countHeld(env.db)).toBe(0);
  expect(await verify(env, '--adopt')).toEqual(NOTHING_MISSING);
  expect(await repairsOf(env)).toEqual({});
  expect(await env.book(ref)).toHaveLength(1);
});

test('verify --adopt keeps a run held whose charge it cannot book, and --accept acknowledges the charge by its key [D-39, D-20]', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now() });
  const { subscriptionId } = ref;
  const restore = await dumpRows(env.db);
  await payCheckout(env, ref);
  await restoreOldRows(env.db, restore);

  const named = [
    `  ! charge:${intentIdOfCycle(subscriptionId, 1)}:1: not booked: the payer's saved payment method is lost`,
    `  ! ${subscriptionId}: its newer run stays held, because a charge of it is not booked`,
  ];
  const adopted = await verify(env, '--adopt');
  expect(adopted).toEqual({ code: 1, lines: named });
  expect(await verify(env, '--adopt')).toEqual({ code: 1, lines: named });
  expect(await countHeld(env.db)).toBe(1);
  expect(await env.state(ref)).toMatchObject({ status: 'CREATED', cyclesCharged: 0 });
  expect(await env.book(ref)).toHaveLength(1);

  const key = `charge:${intentIdOfCycle(subscriptionId, 1)}:1`;
  const difference = `the gateway charged ${key}, but no attempt requested it`;
  const accept = (...args: string[]) =>
    runProgram('cli/verify.ts', env.variables, ['--by', 'Ada', '--accept', ...args]);
  const unnamed = intentIdOfCycle(subscriptionId, 2);
  expect((await accept(unnamed, '--note', 'refunded at the gateway')).stderr).toContain(
    `No violation names ${unnamed}.`,
  );
  expect((await accept(key)).stderr).toContain('--accept needs --note.');
  expect((await verify(env)).code).toBe(1);
  const accepted = await accept(key, '--note', 'refunded at the gateway');
  expect(accepted).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(
      `accepted by Ada: ${difference} (refunded at the gateway)`,
    ) as string,
  });
  expect(await verify(env)).toEqual({ code: 0, lines: [] });
  const variables = { DATABASE_URL: env.databaseUrl };
  const audit = await runCommand(auditCommand, variables, ['--subject', key, '--json']);
  expect(JSON.parse(audit.stdout)).toEqual([
    expect.objectContaining({
      actedBy: 'Ada',
      command: 'verify accept',
      facts: { difference, note: 'refunded at the gateway' },
    }),
  ]);
});

import { chargingDeps } from '../support/charging-deps.ts';
import { eventually } from '../support/eventually.ts';
import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { describe, expect } from 'vitest';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import { createChargingActivities } from '../../activities/subscription.ts';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import { onDevServerWith } from '../support/environment.ts';
import { DUE_AT, februaryInput, paidForJanuary } from '../support/february-charge.ts';
import type { PaidSubscription } from '../support/february-charge.ts';
import { LATE_ARRIVALS } from '../support/test-environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** A delay of the gateway that is longer than its client's timeout in {@link LATE_ARRIVALS}. */
const TOO_LATE_MS = 2_600;
/** The gateway holds the charge until the test removes the faults, and its client waits as long. */
const HELD = { fault: 'delay', delayMs: 60_000 };
const PATIENT = { gatewayTimeoutMs: 60_000 };
/** Postgres's error code when a lock timeout expires. */
const LOCK_NOT_AVAILABLE = '55P03';

const test = onDevServerWith(PATIENT);
const testWithLateArrivals = onDevServerWith(LATE_ARRIVALS);

test.afterEach(async ({ env }) => {
  await env.control('DELETE', '/control/faults');
});

const PAID_ONCE = ['intent.created', 'intent.success', 'subscription.cycle_charged'];

describe('a gateway', () => {
  test('causes a manual review with the reason when the key has another charge [D-40]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    const refusing = createChargingActivities(
      chargingDeps(env, {
        charge: () => Promise.reject(new GatewayRejectedRequest(409, 'key_reused')),
        lookup: () => Promise.reject(new GatewayRejectedRequest(409, 'key_reused')),
      }),
    );
    const reason = 'the gateway refused the request: 409 key_reused';
    expect(await refusing.chargeAttempt(input)).toMatchObject({
      outcome: { kind: 'review', reason },
    });
    expect(await subscription.attempts()).toEqual(['1 REVIEW']);
    // The charge is looked up, and never sent again.
    const state = await env.state(subscription.ref);
    expect(state.openAttempt?.reviewReason).toBe(reason);
    const again = { state, opening: null, nowAt: DUE_AT, realNowAt: Date.now() };
    expect(await env.activities.chargeAttempt(again)).toEqual({ kind: 'pending' });
    expect(await subscription.february()).toEqual([]);
    expect(await subscription.attempts()).toEqual(['1 REVIEW']);
  });
});

describe('a lost answer of the gateway', () => {
  const lostAnswers: [string, object][] = [
    ['the gateway charged and the connection broke', { fault: 'lose_answer' }],
    ['the gateway charged and answered 500', { fault: 'error_500' }],
    ['the connection broke before the gateway charged', { fault: 'lose_answer', effect: 'none' }],
    ['the gateway answered 500 and did not charge', { fault: 'error_500', effect: 'none' }],
  ];
  const expectOneCharge = async (env: TestEnvironment, fault: object) => {
    const subscription = await paidForJanuary(env);
    await subscription.fault(fault);
    await env.advance(subscription.clock, DUE_AT);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await env.state(subscription.ref)).toMatchObject({
      status: 'ACTIVE',
      cyclesCharged: 2,
    });
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  };

  test.for(lostAnswers)('leads to one charge when %s [D-32, D-40]', async ([, fault], { env }) =>
    expectOneCharge(env, fault),
  );

  testWithLateArrivals(
    'leads to one charge when the gateway charged after our timeout [D-32, D-40]',
    async ({ env }) => expectOneCharge(env, { fault: 'delay', delayMs: TOO_LATE_MS }),
  );

  test('leads to one charge when a second answer and two look-ups fail too [D-32, D-40]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    await subscription.fault({ fault: 'error_500', effect: 'none' });
    await subscription.fault({ fault: 'lose_answer' });
    await subscription.fault({ operation: 'lookup', fault: 'error_500', count: 2, match: {} });
    await env.advance(subscription.clock, DUE_AT);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('leaves one declined attempt before the retry when the lost answer was a decline [D-30, D-40]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const { subscriptionId } = subscription.ref;
    const decline = { subscriptionId, code: 'insufficient_funds', count: 1 };
    await env.control('POST', '/control/declines', decline);
    await subscription.fault({ fault: 'lose_answer' });
    await env.advance(subscription.clock, '2027-02-10T04:00:00Z');
    expect(await subscription.february()).toEqual(['declined 1999 x1', 'succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 DECLINED', '2 SUCCEEDED']);
  });
});

describe('a charge activity that runs several times at once', () => {
  test('leads to one charge, one success and one set of events [D-32, D-40]', async ({ env }) => {
    // Given a gateway slow enough for the four calls to overlap
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    await subscription.fault({ fault: 'delay', delayMs: 400, count: 4 });
    const results = await Promise.all([1, 2, 3, 4].map(() => env.activities.chargeAttempt(input)));
    // Then one call records the outcome, and the others continue from the recorded state
    expect(results.map(({ kind }) => kind).toSorted()).toEqual([
      'adopt',
      'adopt',
      'adopt',
      'settled',
    ]);
    const recorded = await env.state(subscription.ref);
    expect(recorded).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2, openAttempt: null });
    const adopted = results.flatMap((result) => (result.kind === 'adopt' ? [result.state] : []));
    expect(adopted).toEqual([recorded, recorded, recorded]);
    expect(await env.book(subscription.ref)).toHaveLength(2);
    expect((await subscription.february())[0]).toMatch(/^succeeded 1999 x[1-4]$/);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('leads to one charge when two runs each made an intent for the cycle [D-40]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const inputs = [await februaryInput(env, subscription), await februaryInput(env, subscription)];
    await Promise.all(inputs.map((input) => env.activities.chargeAttempt(input)));
    expect(await env.book(subscription.ref)).toHaveLength(2);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('locks the subscription’s row before the attempt’s row when it settles, as every other transaction does [D-32]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    await subscription.fault(HELD);
    // If this test holds the lock for more than 5 s, the settlement gives up its wait for it, and is repeated.
    const charge = env.activities
      .chargeAttempt(input)
      .catch(() => env.activities.chargeAttempt(input));
    await expect.poll(() => subscription.attempts()).toEqual(['1 SENDING']);
    const sql = postgres(env.databaseUrl, { max: 2 });
    const { subscriptionId } = subscription.ref;
    await sql.begin(async (tx) => {
      await tx`select 1 from subscription where id = ${subscriptionId} for update`;
      await env.control('DELETE', '/control/faults');
      await eventually(async () => {
        const waiting = await sql`
          select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
        expect(waiting).toHaveLength(1);
      });
      const free = await tx`
        select a.id from payment_attempt a
        join payment_intent i on i.merchant_id = a.merchant_id and i.id = a.intent_id
        where i.subscription_id = ${subscriptionId} and a.state = 'SENDING'
        for update of a nowait`;
      expect(free).toHaveLength(1);
    });
    await sql.end();
    expect(await charge).toMatchObject({ kind: 'settled' });
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('a stalled workflow run', () => {
  test('gets the recorded state and sends nothing when another run settled the charge [D-32]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    expect(await env.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    const recorded = await env.state(subscription.ref);
    const adopted = { kind: 'adopt', state: recorded, result: null };
    expect(await env.activities.chargeAttempt(input)).toEqual(adopted);
    expect(await env.activities.chargeAttempt({ ...input, opening: null })).toEqual(adopted);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('sends nothing when the subscription was cancelled during the stall [D-32, D-§4]', async ({
    env,
  }) => {
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    const cancel = { kind: 'cancel', commandId: 'cancel:1', reason: 'cancelled' } as const;
    expect(await env.workflows.execute(subscription.ref, cancel)).toMatchObject({
      kind: 'result',
    });
    for (const stalled of [input, { ...input, opening: null }]) {
      expect(await env.activities.chargeAttempt(stalled)).toMatchObject({
        kind: 'adopt',
        state: { status: 'ENDED' },
      });
    }
    expect(await subscription.february()).toEqual([]);
    expect(await subscription.attempts()).toEqual([]);
    expect(await subscription.newEventTypes()).toEqual(['subscription.ended']);
  });

  test('makes no look-up when a later run owns the unknown attempt [D-32]', async ({ env }) => {
    // Given an attempt whose outcome is unknown, which is recorded as a new version of the state
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    await subscription.fault({ fault: 'lose_answer' });
    await subscription.fault({ operation: 'lookup', fault: 'error_500', count: 100, match: {} });
    expect(await env.activities.chargeAttempt(input)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'unknown' },
    });
    await env.control('DELETE', '/control/faults');
    const recorded = await env.state(subscription.ref);
    // When a run with the older version calls, then this run gets the new state and settles nothing
    for (const stalled of [input, { ...input, opening: null }]) {
      expect(await env.activities.chargeAttempt(stalled)).toEqual({
        kind: 'adopt',
        state: recorded,
        result: null,
      });
    }
    expect(await subscription.attempts()).toEqual(['1 UNKNOWN']);
    // And the later run settles the attempt
    const current = { ...input, state: recorded, opening: null };
    expect(await env.activities.chargeAttempt(current)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'succeeded' },
    });
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('a lock timeout when the outcome is recorded', () => {
  test('leaves no event of the outcome; the next call finds the charge and does not charge again [D-40]', async ({
    env,
  }) => {
    // Given another session that locks the subscription's row once the charge is sent
    const subscription = await paidForJanuary(env);
    const input = await februaryInput(env, subscription);
    await subscription.fault(HELD);
    const sql = postgres(env.databaseUrl, { max: 1 });
    try {
      const charging = env.activities.chargeAttempt(input);
      await expect.poll(() => subscription.attempts()).toEqual(['1 SENDING']);
      await sql.begin(async (tx) => {
        await tx`select 1 from subscription where id = ${subscription.ref.subscriptionId} for update`;
        await env.control('DELETE', '/control/faults');
        // When the settling transaction waits for the lock until its timeout
        await expect(charging).rejects.toThrow(`database error ${LOCK_NOT_AVAILABLE}`);
      });
      expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
      expect(await subscription.attempts()).toEqual(['1 SENDING']);
      expect(await subscription.newEventTypes()).toEqual(['intent.created']);
      // Then the same call records the outcome and sends nothing
      expect(await env.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    } finally {
      await sql.end();
    }
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('the database', () => {
  /** Awaits a refused write and returns the error's code and the violated constraint. */
  const refusalOf = async (write: Promise<unknown>) => {
    const error = await write.then(
      () => new Error('was not refused'),
      (thrown: unknown) => thrown,
    );
    const { code, constraint_name } = (error as Error).cause as postgres.PostgresError;
    return { code, constraint_name };
  };
  const attemptOf = async (env: TestEnvironment, subscription: PaidSubscription) => {
    const { intentId } = (await februaryInput(env, subscription)).state.owed ?? {};
    const [january] = await env.db
      .select()
      .from(paymentAttempts)
      .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
      .where(eq(paymentIntents.subscriptionId, subscription.ref.subscriptionId));
    if (!january) throw new Error('January has no attempt');
    const intent = { ...january.payment_intent, id: intentId ?? '', cycleNumber: 2 };
    const attempt = (number: number, state: 'SENDING' | 'SUCCEEDED' | 'DECLINED') => ({
      ...january.payment_attempt,
      intentId: intent.id,
      id: `att_${intent.id}_${number}`,
      gatewayKey: `charge:${intent.id}:${number}`,
      attemptNumber: number,
      state,
    });
    return { intent, attempt };
  };

  test('refuses a second open attempt and a second success of one intent [D-32, D-40]', async ({
    env,
  }) => {
    const { intent, attempt } = await attemptOf(env, await paidForJanuary(env));
    const insert = (row: ReturnType<typeof attempt>) => env.db.insert(paymentAttempts).values(row);
    await env.db.insert(paymentIntents).values(intent);
    await insert(attempt(1, 'SENDING'));
    expect(await refusalOf(insert(attempt(2, 'SENDING')))).toEqual({
      code: '23505',
      constraint_name: 'payment_attempt__one_open__uq',
    });
    await insert(attempt(3, 'SUCCEEDED'));
    expect(await refusalOf(insert(attempt(4, 'SUCCEEDED')))).toEqual({
      code: '23505',
      constraint_name: 'payment_attempt__one_success__uq',
    });
    await insert(attempt(5, 'DECLINED'));
  });

  test('refuses a gateway key that was used before and a second intent of one cycle [D-40]', async ({
    env,
  }) => {
    const { intent, attempt } = await attemptOf(env, await paidForJanuary(env));
    await env.db.insert(paymentIntents).values(intent);
    await env.db.insert(paymentAttempts).values(attempt(1, 'DECLINED'));
    const again = { ...attempt(2, 'DECLINED'), gatewayKey: attempt(1, 'DECLINED').gatewayKey };
    expect(await refusalOf(env.db.insert(paymentAttempts).values(again))).toEqual({
      code: '23505',
      constraint_name: 'payment_attempt__gateway_key__uq',
    });
    const twin = { ...intent, id: `${intent.id}x` };
    expect(await refusalOf(env.db.insert(paymentIntents).values(twin))).toEqual({
      code: '23505',
      constraint_name: 'payment_intent__subscription_cycle__uq',
    });
  });
});

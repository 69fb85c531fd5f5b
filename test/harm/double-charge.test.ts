import { randomBytes } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import { createChargingActivities } from '../../activities/charging.ts';
import { newId } from '../../domain/ids.ts';
import { openAttempt, owe } from '../../domain/subscription/apply-attempt.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { BUDGET_FOR_LATE_ARRIVALS, createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');
const DUE_AT = Date.parse('2027-02-10T00:00:00Z');
/** Longer than the gateway client's timeout in this environment, 2 s. */
const TOO_LATE_MS = 2_600;
/** Postgres's error code when a lock timeout expires. */
const LOCK_NOT_AVAILABLE = '55P03';

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server, { sendBudget: BUDGET_FOR_LATE_ARRIVALS });
});

afterEach(async () => {
  await world.control('DELETE', '/control/faults');
});

afterAll(async () => {
  await world.close();
  await server.close();
});

/** A subscription whose January is paid, on a test clock; each test charges February itself. */
async function paidForJanuary() {
  const clock = await world.createClock(CREATED_AT);
  const ref = await world.create({
    createdAt: CREATED_AT,
    testClockId: clock,
    terms: { cycleCount: 3 },
  });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const match = { subscriptionId: ref.subscriptionId };
  return {
    ref,
    clock,
    fault: (fault: object) =>
      world.control('POST', '/control/faults', { operation: 'charge', count: 1, match, ...fault }),
    /** February's charges at the gateway, each with the number of times its key was sent. */
    february: async () => {
      const book = await world.book(ref);
      return book
        .slice(1)
        .map(({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`);
    },
    /** February's attempts in our database. */
    attempts: async () => {
      const rows = await world.db
        .select({ state: paymentAttempts.state, number: paymentAttempts.attemptNumber })
        .from(paymentAttempts)
        .innerJoin(
          paymentIntents,
          and(
            eq(paymentIntents.merchantId, paymentAttempts.merchantId),
            eq(paymentIntents.id, paymentAttempts.intentId),
          ),
        )
        .where(
          and(
            eq(paymentIntents.subscriptionId, ref.subscriptionId),
            eq(paymentIntents.cycleNumber, 2),
          ),
        );
      return rows.map(({ number, state }) => `${number} ${state}`);
    },
    /** Types of the events after January's five. */
    newEventTypes: async () => {
      const events = await world.events(ref);
      return events.slice(5).map((event) => event['eventType']);
    },
  };
}

type PaidSubscription = Awaited<ReturnType<typeof paidForJanuary>>;

/** The input that the workflow passes to the activity when February falls due. */
async function februaryInput({ ref }: PaidSubscription) {
  const state = await world.state(ref);
  const intentId = newId('in', DUE_AT, randomBytes);
  const opening = openAttempt(owe(state, DUE_AT, intentId), {
    trigger: 'scheduled',
    commandId: null,
    now: DUE_AT,
    realNow: Date.now(),
  });
  return {
    state: opening.state,
    opening: {
      effects: {},
      transitionId: `${ref.subscriptionId}:${opening.state.version}`,
      command: null,
      nowAt: DUE_AT,
    },
    nowAt: DUE_AT,
    realNowAt: Date.now(),
  };
}

const PAID_ONCE = ['intent.created', 'intent.success', 'subscription.cycle_charged'];

describe('a gateway', () => {
  test('causes a manual review with the reason when it rejects the request [D-40]', async () => {
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    const refusing = createChargingActivities({
      db: world.db,
      payments: world.payments,
      wakeStream: (stream) => world.webhooks.wakeStream(stream),
      gateway: {
        ...world.gateway,
        charge: () => Promise.reject(new GatewayRejectedRequest(401, 'key_unknown')),
        lookup: () => Promise.reject(new GatewayRejectedRequest(401, 'key_unknown')),
      },
    });
    const reason = 'the gateway refused the request: 401 key_unknown';
    expect(await refusing.chargeAttempt(input)).toMatchObject({
      outcome: { kind: 'review', reason },
    });
    expect(await subscription.attempts()).toEqual(['1 REVIEW']);
    // With a correct credential the charge is looked up, and never sent again.
    const state = await world.state(subscription.ref);
    expect(state.openAttempt?.reviewReason).toBe(reason);
    const again = { state, opening: null, nowAt: DUE_AT, realNowAt: Date.now() };
    expect(await world.activities.chargeAttempt(again)).toEqual({ kind: 'pending' });
    expect(await subscription.february()).toEqual([]);
    expect(await subscription.attempts()).toEqual(['1 REVIEW']);
  });

  test('gets the same key again when it has no look-up [D-40]', async () => {
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    await subscription.fault({ fault: 'lose_answer' });
    const { activities } = world;
    const withoutLookup = createChargingActivities({
      db: world.db,
      payments: world.payments,
      wakeStream: (stream) => world.webhooks.wakeStream(stream),
      gateway: {
        ...world.gateway,
        capabilities: { ...world.gateway.capabilities, lookup: false },
        lookup: () => Promise.reject(new Error('there is no look-up')),
      },
    });
    expect(await withoutLookup.chargeAttempt(input)).toMatchObject({
      outcome: { kind: 'succeeded' },
    });
    expect(await subscription.february()).toEqual(['succeeded 1999 x2']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await activities.chargeAttempt(input)).toMatchObject({ kind: 'adopt' });
    expect(await subscription.february()).toEqual(['succeeded 1999 x2']);
  });
});

describe('a lost answer of the gateway', () => {
  const lostAnswers: [string, object][] = [
    ['the gateway charged and the connection broke', { fault: 'lose_answer' }],
    ['the gateway charged and answered 500', { fault: 'error_500' }],
    ['the connection broke before it charged', { fault: 'lose_answer', effect: 'none' }],
    ['the gateway answered 500 and did not charge', { fault: 'error_500', effect: 'none' }],
    ['the gateway charged after our timeout', { fault: 'delay', delayMs: TOO_LATE_MS }],
  ];
  test.each(lostAnswers)('leads to one charge when %s [D-32, D-40]', async (_case, fault) => {
    // Given
    const subscription = await paidForJanuary();
    await subscription.fault(fault);
    // When
    await world.advance(subscription.clock, DUE_AT);
    // Then
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await world.state(subscription.ref)).toMatchObject({
      status: 'ACTIVE',
      cyclesCharged: 2,
    });
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('leads to one charge when a second answer and two look-ups fail too [D-32, D-40]', async () => {
    const subscription = await paidForJanuary();
    await subscription.fault({ fault: 'error_500', effect: 'none' });
    await subscription.fault({ fault: 'lose_answer' });
    await subscription.fault({ operation: 'lookup', fault: 'error_500', count: 2, match: {} });
    await world.advance(subscription.clock, DUE_AT);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('leaves one declined attempt before the retry when it was a decline [D-30, D-40]', async () => {
    const subscription = await paidForJanuary();
    const { subscriptionId } = subscription.ref;
    const decline = { subscriptionId, code: 'insufficient_funds', count: 1 };
    await world.control('POST', '/control/declines', decline);
    await subscription.fault({ fault: 'lose_answer' });
    await world.advance(subscription.clock, '2027-02-10T04:00:00Z');
    expect(await subscription.february()).toEqual(['declined 1999 x1', 'succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 DECLINED', '2 SUCCEEDED']);
  });
});

describe('a charge activity that runs several times at once', () => {
  test('leads to one charge, one success and one set of events [D-32, D-40]', async () => {
    // Given a gateway slow enough for the four calls to overlap
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    await subscription.fault({ fault: 'delay', delayMs: 400, count: 4 });
    // When
    const results = await Promise.all(
      [1, 2, 3, 4].map(() => world.activities.chargeAttempt(input)),
    );
    // Then one call records the outcome, and the others continue from the recorded state
    expect(results.map(({ kind }) => kind).toSorted()).toEqual([
      'adopt',
      'adopt',
      'adopt',
      'settled',
    ]);
    const recorded = await world.state(subscription.ref);
    expect(recorded).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2, openAttempt: null });
    const adopted = results.flatMap((result) => (result.kind === 'adopt' ? [result.state] : []));
    expect(adopted).toEqual([recorded, recorded, recorded]);
    expect(await world.book(subscription.ref)).toHaveLength(2);
    expect((await subscription.february())[0]).toMatch(/^succeeded 1999 x[1-4]$/);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('leads to one charge when two runs each made an intent for the cycle [D-40]', async () => {
    const subscription = await paidForJanuary();
    const inputs = [await februaryInput(subscription), await februaryInput(subscription)];
    await Promise.all(inputs.map((input) => world.activities.chargeAttempt(input)));
    expect(await world.book(subscription.ref)).toHaveLength(2);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('a stalled workflow run', () => {
  test('gets the recorded state and sends nothing when another run settled the charge [D-32]', async () => {
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    expect(await world.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    const recorded = await world.state(subscription.ref);
    const adopted = { kind: 'adopt', state: recorded, result: null };
    expect(await world.activities.chargeAttempt(input)).toEqual(adopted);
    expect(await world.activities.chargeAttempt({ ...input, opening: null })).toEqual(adopted);
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });

  test('sends nothing when the subscription was cancelled meanwhile [D-32, D-§4]', async () => {
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    const cancel = { kind: 'cancel', commandId: 'cancel:1', reason: 'cancelled' } as const;
    expect(await world.workflows.execute(subscription.ref, cancel)).toMatchObject({
      kind: 'result',
    });
    for (const stalled of [input, { ...input, opening: null }]) {
      expect(await world.activities.chargeAttempt(stalled)).toMatchObject({
        kind: 'adopt',
        state: { status: 'ENDED' },
      });
    }
    expect(await subscription.february()).toEqual([]);
    expect(await subscription.attempts()).toEqual([]);
    expect(await subscription.newEventTypes()).toEqual(['subscription.ended']);
  });

  test('makes no look-up when a later run owns the unknown attempt [D-32]', async () => {
    // Given an attempt whose outcome is unknown; recording this made a new version of the state
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    await subscription.fault({ fault: 'lose_answer' });
    await subscription.fault({ operation: 'lookup', fault: 'error_500', count: 100, match: {} });
    expect(await world.activities.chargeAttempt(input)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'unknown' },
    });
    await world.control('DELETE', '/control/faults');
    const recorded = await world.state(subscription.ref);
    // When a run with the older version calls, then it gets the new state and settles nothing
    for (const stalled of [input, { ...input, opening: null }]) {
      expect(await world.activities.chargeAttempt(stalled)).toEqual({
        kind: 'adopt',
        state: recorded,
        result: null,
      });
    }
    expect(await subscription.attempts()).toEqual(['1 UNKNOWN']);
    // And the later run settles the attempt
    const current = { ...input, state: recorded, opening: null };
    expect(await world.activities.chargeAttempt(current)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'succeeded' },
    });
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('a lock timeout when the outcome is recorded', () => {
  test('leaves no event; the next call finds the charge and does not repeat it [D-40]', async () => {
    // Given another session that locks the subscription's row once the charge is sent
    const subscription = await paidForJanuary();
    const input = await februaryInput(subscription);
    await subscription.fault({ fault: 'delay', delayMs: 800 });
    const sql = postgres(world.databaseUrl, { max: 1 });
    try {
      const charging = world.activities.chargeAttempt(input);
      await vi.waitFor(async () => expect(await subscription.attempts()).toEqual(['1 SENDING']));
      await sql.begin(async (tx) => {
        await tx`select 1 from subscription where id = ${subscription.ref.subscriptionId} for update`;
        // When the settling transaction waits for the lock until its timeout
        await expect(charging).rejects.toThrow(`database error ${LOCK_NOT_AVAILABLE}`);
      });
      expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
      expect(await subscription.attempts()).toEqual(['1 SENDING']);
      expect(await subscription.newEventTypes()).toEqual(['intent.created']);
      // Then the same call records the outcome and sends nothing
      expect(await world.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    } finally {
      await sql.end();
    }
    expect(await subscription.february()).toEqual(['succeeded 1999 x1']);
    expect(await subscription.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await subscription.newEventTypes()).toEqual(PAID_ONCE);
  });
});

describe('the database', () => {
  /** The error's code and the violated index. */
  const refusalOf = async (write: Promise<unknown>) => {
    const error = await write.then(
      () => new Error('was not refused'),
      (thrown: unknown) => thrown,
    );
    const { code, constraint_name } = (error as Error).cause as postgres.PostgresError;
    return { code, constraint_name };
  };
  const attemptOf = async (subscription: PaidSubscription) => {
    const { intentId } = (await februaryInput(subscription)).state.owed ?? {};
    const [january] = await world.db
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

  test('refuses a second open attempt and a second success of one intent [D-32, D-40]', async () => {
    const { intent, attempt } = await attemptOf(await paidForJanuary());
    const insert = (row: ReturnType<typeof attempt>) =>
      world.db.insert(paymentAttempts).values(row);
    await world.db.insert(paymentIntents).values(intent);
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

  test('refuses a gateway key used before and a second intent of one cycle [D-40]', async () => {
    const { intent, attempt } = await attemptOf(await paidForJanuary());
    await world.db.insert(paymentIntents).values(intent);
    await world.db.insert(paymentAttempts).values(attempt(1, 'DECLINED'));
    const again = { ...attempt(2, 'DECLINED'), gatewayKey: attempt(1, 'DECLINED').gatewayKey };
    expect(await refusalOf(world.db.insert(paymentAttempts).values(again))).toEqual({
      code: '23505',
      constraint_name: 'payment_attempt__gateway_key__uq',
    });
    const twin = { ...intent, id: `${intent.id}x` };
    expect(await refusalOf(world.db.insert(paymentIntents).values(twin))).toEqual({
      code: '23505',
      constraint_name: 'payment_intent__subscription_cycle__uq',
    });
  });
});

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
/** Longer than the client waits for the gateway in this world, which is 2 s. */
const TOO_LATE_MS = 2_600;
/** Postgres's code of a lock that did not come in time. */
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

/** Paid for January on a clock that stands still: what happens to February, the test says. */
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
    /** February's charges in the gateway's own book, with how often their key was sent. */
    february: async () => {
      const book = await world.book(ref);
      return book
        .slice(1)
        .map(({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`);
    },
    /** February's attempts as we recorded them. */
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
    /** Types of the events after January's. */
    news: async () => {
      const events = await world.events(ref);
      return events.slice(5).map((event) => event['eventType']);
    },
  };
}

type Life = Awaited<ReturnType<typeof paidForJanuary>>;

/** What the workflow passes to the activity when February falls due. */
async function februaryInput({ ref }: Life) {
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
  test('that refuses the request itself leaves it to a person, and says why [D-40]', async () => {
    const life = await paidForJanuary();
    const input = await februaryInput(life);
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
    expect(await life.attempts()).toEqual(['1 REVIEW']);
    // Once the setting is right it is asked for, and never sent again.
    const state = await world.state(life.ref);
    expect(state.openAttempt?.reviewReason).toBe(reason);
    const again = { state, opening: null, nowAt: DUE_AT, realNowAt: Date.now() };
    expect(await world.activities.chargeAttempt(again)).toEqual({ kind: 'pending' });
    expect(await life.february()).toEqual([]);
    expect(await life.attempts()).toEqual(['1 REVIEW']);
  });

  test('that cannot be asked gets the same key again [D-40]', async () => {
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    await life.fault({ fault: 'lose_answer' });
    const { activities } = world;
    const mute = createChargingActivities({
      db: world.db,
      payments: world.payments,
      wakeStream: (stream) => world.webhooks.wakeStream(stream),
      gateway: {
        ...world.gateway,
        capabilities: { ...world.gateway.capabilities, lookup: false },
        lookup: () => Promise.reject(new Error('there is no look-up')),
      },
    });
    expect(await mute.chargeAttempt(input)).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(await life.february()).toEqual(['succeeded 1999 x2']);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await activities.chargeAttempt(input)).toMatchObject({ kind: 'adopt' });
    expect(await life.february()).toEqual(['succeeded 1999 x2']);
  });
});

describe('an answer that we did not hear', () => {
  const spoiled: [string, object][] = [
    ['the gateway charged and the connection broke', { fault: 'lose_answer' }],
    ['the gateway charged and answered 500', { fault: 'error_500' }],
    ['the connection broke before it charged', { fault: 'lose_answer', effect: 'none' }],
    ['the gateway answered 500 and did not charge', { fault: 'error_500', effect: 'none' }],
    ['the gateway charged after we had given up', { fault: 'delay', delayMs: TOO_LATE_MS }],
  ];
  test.each(spoiled)('%s: one charge [D-32, D-40]', async (_what, fault) => {
    // Given
    const life = await paidForJanuary();
    await life.fault(fault);
    // When
    await world.advance(life.clock, DUE_AT);
    // Then
    expect(await life.february()).toEqual(['succeeded 1999 x1']);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await world.state(life.ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(await life.news()).toEqual(PAID_ONCE);
  });

  test('two in a row, and look-ups that fail too: one charge [D-32, D-40]', async () => {
    const life = await paidForJanuary();
    await life.fault({ fault: 'error_500', effect: 'none' });
    await life.fault({ fault: 'lose_answer' });
    await life.fault({ operation: 'lookup', fault: 'error_500', count: 2, match: {} });
    await world.advance(life.clock, DUE_AT);
    expect(await life.february()).toEqual(['succeeded 1999 x1']);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });

  test('to a decline leaves one declined attempt, and the retry is the second [D-30, D-40]', async () => {
    const life = await paidForJanuary();
    const { subscriptionId } = life.ref;
    const decline = { subscriptionId, code: 'insufficient_funds', count: 1 };
    await world.control('POST', '/control/declines', decline);
    await life.fault({ fault: 'lose_answer' });
    await world.advance(life.clock, '2027-02-10T04:00:00Z');
    expect(await life.february()).toEqual(['declined 1999 x1', 'succeeded 1999 x1']);
    expect(await life.attempts()).toEqual(['1 DECLINED', '2 SUCCEEDED']);
  });
});

describe('one attempt run several times at once', () => {
  test('is one charge, one success and one set of events [D-32, D-40]', async () => {
    // Given a gateway slow enough for all of them to be under way together
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    await life.fault({ fault: 'delay', delayMs: 400, count: 4 });
    // When
    const results = await Promise.all(
      [1, 2, 3, 4].map(() => world.activities.chargeAttempt(input)),
    );
    // Then one records it, and the others go on from what it recorded
    expect(results.map(({ kind }) => kind).toSorted()).toEqual([
      'adopt',
      'adopt',
      'adopt',
      'settled',
    ]);
    const recorded = await world.state(life.ref);
    expect(recorded).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2, openAttempt: null });
    const adopted = results.flatMap((result) => (result.kind === 'adopt' ? [result.state] : []));
    expect(adopted).toEqual([recorded, recorded, recorded]);
    expect(await world.book(life.ref)).toHaveLength(2);
    expect((await life.february())[0]).toMatch(/^succeeded 1999 x[1-4]$/);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });

  test('by two who each gave the cycle another intent is charged to one of them [D-40]', async () => {
    const life = await paidForJanuary();
    const inputs = [await februaryInput(life), await februaryInput(life)];
    await Promise.all(inputs.map((input) => world.activities.chargeAttempt(input)));
    expect(await world.book(life.ref)).toHaveLength(2);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });
});

describe('a run that woke up after the world went on', () => {
  test('and asks for a charge that was settled is told so and sends nothing [D-32]', async () => {
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    expect(await world.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    const recorded = await world.state(life.ref);
    const adopted = { kind: 'adopt', state: recorded, result: null };
    expect(await world.activities.chargeAttempt(input)).toEqual(adopted);
    expect(await world.activities.chargeAttempt({ ...input, opening: null })).toEqual(adopted);
    expect(await life.february()).toEqual(['succeeded 1999 x1']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });

  test('and would open an attempt on what was cancelled meanwhile sends nothing [D-32, D-§4]', async () => {
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    const cancel = { kind: 'cancel', commandId: 'cancel:1', reason: 'cancelled' } as const;
    expect(await world.workflows.execute(life.ref, cancel)).toMatchObject({ kind: 'result' });
    for (const zombie of [input, { ...input, opening: null }]) {
      expect(await world.activities.chargeAttempt(zombie)).toMatchObject({
        kind: 'adopt',
        state: { status: 'ENDED' },
      });
    }
    expect(await life.february()).toEqual([]);
    expect(await life.attempts()).toEqual([]);
    expect(await life.news()).toEqual(['subscription.ended']);
  });

  test('and would settle an attempt that a later run is asking about asks nothing [D-32]', async () => {
    // Given an attempt whose outcome is unknown, which is a version of its own
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    await life.fault({ fault: 'lose_answer' });
    await life.fault({ operation: 'lookup', fault: 'error_500', count: 100, match: {} });
    expect(await world.activities.chargeAttempt(input)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'unknown' },
    });
    await world.control('DELETE', '/control/faults');
    const recorded = await world.state(life.ref);
    // When a run from before it comes back, then it learns the version and settles nothing
    for (const zombie of [input, { ...input, opening: null }]) {
      expect(await world.activities.chargeAttempt(zombie)).toEqual({
        kind: 'adopt',
        state: recorded,
        result: null,
      });
    }
    expect(await life.attempts()).toEqual(['1 UNKNOWN']);
    // And the later run does
    const current = { ...input, state: recorded, opening: null };
    expect(await world.activities.chargeAttempt(current)).toMatchObject({
      kind: 'settled',
      outcome: { kind: 'succeeded' },
    });
    expect(await life.february()).toEqual(['succeeded 1999 x1']);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });
});

describe('a database that refuses to record the outcome', () => {
  test('leaves no event behind, and the next try finds the charge and does not repeat it [D-40]', async () => {
    // Given somebody who holds the subscription's row from the moment the charge is sent
    const life = await paidForJanuary();
    const input = await februaryInput(life);
    await life.fault({ fault: 'delay', delayMs: 800 });
    const sql = postgres(world.databaseUrl, { max: 1 });
    try {
      const charging = world.activities.chargeAttempt(input);
      await vi.waitFor(async () => expect(await life.attempts()).toEqual(['1 SENDING']));
      await sql.begin(async (tx) => {
        await tx`select 1 from subscription where id = ${life.ref.subscriptionId} for update`;
        // When the transaction that settles waits for the lock until it is refused
        await expect(charging).rejects.toThrow(`database error ${LOCK_NOT_AVAILABLE}`);
      });
      expect(await life.february()).toEqual(['succeeded 1999 x1']);
      expect(await life.attempts()).toEqual(['1 SENDING']);
      expect(await life.news()).toEqual(['intent.created']);
      // Then the same call again records what happened and charges nothing
      expect(await world.activities.chargeAttempt(input)).toMatchObject({ kind: 'settled' });
    } finally {
      await sql.end();
    }
    expect(await life.february()).toEqual(['succeeded 1999 x1']);
    expect(await life.attempts()).toEqual(['1 SUCCEEDED']);
    expect(await life.news()).toEqual(PAID_ONCE);
  });
});

describe('the database itself', () => {
  /** The refusal's code and the index that decided. */
  const refusalOf = async (write: Promise<unknown>) => {
    const error = await write.then(
      () => new Error('was not refused'),
      (thrown: unknown) => thrown,
    );
    const { code, constraint_name } = (error as Error).cause as postgres.PostgresError;
    return { code, constraint_name };
  };
  const attemptOf = async (life: Life) => {
    const { intentId } = (await februaryInput(life)).state.owed ?? {};
    const [january] = await world.db
      .select()
      .from(paymentAttempts)
      .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
      .where(eq(paymentIntents.subscriptionId, life.ref.subscriptionId));
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

  test('refuses a key that was used and a second intent of one cycle [D-40]', async () => {
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

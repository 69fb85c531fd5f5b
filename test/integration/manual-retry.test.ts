import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openShop } from '../support/shop.ts';
import type { Shop } from '../support/shop.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

/** Manual retries over HTTP, on a real Temporal and with the gateway's own book. */

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;
let shop: Shop;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
  shop = await openShop(world);
});

afterAll(async () => {
  await shop.close();
  await world.close();
  await server.close();
});

/**
 * UNPAID since midnight of 10 February 2027: the charge of that day is the first of `declines` that
 * are declined in a row.
 */
async function unpaid(code: string, declines: number, cycleCount = 3) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await world.createClock(createdAt);
  const ref = await world.create({ createdAt, testClockId: clock, terms: { cycleCount } });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const { subscriptionId } = ref;
  await world.control('POST', '/control/declines', { subscriptionId, code, count: declines });
  await world.advance(clock, '2027-02-10T00:00:00Z');
  expect((await world.state(ref)).status).toBe('UNPAID');
  return {
    ref,
    retry: (key?: string) =>
      shop.merchant.post<object>('/subscription/manual-retry', { subscriptionId }, key),
    goTo: (time: string) => world.advance(clock, `2027-02-10T${time}Z`),
    outcomes: async () => (await world.book(ref)).map(({ outcome }) => outcome),
  };
}

const refusal = (errorCode: string, description: string) => ({
  status: 400,
  errorCode,
  message: expect.stringMatching(new RegExp(`: ${description}$`)) as string,
});
const cooldownUntil = (time: string) =>
  refusal('bad_request', `Another manual retry is possible from 2027-02-10T${time}Z\\.`);
const declinedUntil = (time: string, errorCode: string) => ({
  success: false,
  minManualRetryDate: `2027-02-10T${time}Z`,
  status: 'UNPAID',
  errorCode,
  errorMessage: expect.any(String) as string,
});

describe('the cooldown', () => {
  test('refuses at 3 h 59 min with the instant to wait until, allows at 4 h, and survives restarts [IF-4.9, D-31]', async () => {
    // A stolen card: no automatic retry comes in between.
    const life = await unpaid('stolen_card', 3);
    expect(await life.retry()).toEqual(declinedUntil('04:00:00.000', 'stolen_card'));
    await expect(life.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await world.stopWorkers();
    await world.startWorkers();
    await life.goTo('03:59:00');
    await expect(life.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await life.goTo('03:59:59.999');
    await expect(life.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await life.goTo('04:00:00');
    expect(await life.retry()).toEqual(declinedUntil('08:00:00.000', 'stolen_card'));
    expect(await life.outcomes()).toEqual(['succeeded', 'declined', 'declined', 'declined']);
  });

  test('counts from the manual retry: an automatic one in between neither waits for it nor moves it [D-31, D-30]', async () => {
    const life = await unpaid('card_declined', 3);
    await life.goTo('02:00:00');
    expect(await life.retry()).toEqual(declinedUntil('06:00:00.000', 'card_declined'));
    await life.goTo('05:59:00');
    // The automatic retry of 04:00 came all the same, and the next is 8 h after it.
    expect(await life.outcomes()).toEqual(['succeeded', 'declined', 'declined', 'declined']);
    expect((await world.state(life.ref)).owed?.nextRetryAt).toBe(
      Date.parse('2027-02-10T12:00:00Z'),
    );
    await expect(life.retry()).rejects.toMatchObject(cooldownUntil('06:00:00.000'));
    await life.goTo('06:00:00');
    expect(await life.retry()).toEqual({
      success: true,
      minManualRetryDate: '2027-02-10T10:00:00.000Z',
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    });
    expect(await life.outcomes()).toHaveLength(5);
  });
});

describe('retries at the same moment, each with a key of its own', () => {
  test.each([
    ['that are declined', 10, { success: false, status: 'UNPAID' }],
    ['of which one pays', 1, { success: true, status: 'ACTIVE' }],
  ])('%s make one attempt [D-31, D-32]', async (_, declines, outcome) => {
    const life = await unpaid('card_declined', declines);
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => life.retry()));
    const done = answers.filter((answer) => answer.status === 'fulfilled');
    expect(done.map(({ value }) => value)).toEqual([expect.objectContaining(outcome)]);
    const refused = answers.filter((answer) => answer.status === 'rejected');
    expect(refused.map(({ reason }) => (reason as { status: number }).status)).toEqual([
      400, 400, 400, 400,
    ]);
    expect(await life.outcomes()).toHaveLength(3);
  });
});

describe('a retry that', () => {
  test('pays the last cycle answers ENDED without a date, also to its key when all is over [IF-4.9, D-10a, D-17]', async () => {
    const life = await unpaid('card_declined', 1, 2);
    const ended = {
      success: true,
      minManualRetryDate: null,
      status: 'ENDED',
      errorCode: null,
      errorMessage: null,
    };
    expect(await life.retry('last')).toEqual(ended);
    expect(await world.state(life.ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
    expect(await life.retry('last')).toEqual(ended);
    await expect(life.retry('one-more')).rejects.toMatchObject(
      refusal('operation_not_allowed', 'A subscription that is ENDED cannot be retried\\.'),
    );
    expect(await life.outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
  });

  test('is undecided is payment_outcome_pending until it is, and its key then gives the outcome [D-31, D-17]', async () => {
    const life = await unpaid('card_declined', 1);
    const match = { subscriptionId: life.ref.subscriptionId };
    const lose = { operation: 'charge', fault: 'lose_answer', count: 1_000, match };
    await world.control('POST', '/control/faults', lose);
    const deaf = { operation: 'lookup', fault: 'error_500', count: 1_000, match: {} };
    await world.control('POST', '/control/faults', deaf);
    await expect(life.retry('undecided')).rejects.toMatchObject({
      status: 400,
      errorCode: 'payment_outcome_pending',
    });
    await expect(life.retry('another')).rejects.toMatchObject({
      status: 400,
      errorCode: 'payment_outcome_pending',
    });
    await world.control('DELETE', '/control/faults');
    const late = await vi.waitFor(() => life.retry('undecided'), {
      timeout: 60_000,
      interval: 250,
    });
    expect(late).toEqual({
      success: true,
      minManualRetryDate: '2027-02-10T04:00:00.000Z',
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    });
    expect(await life.outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
  });
});

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, inject, vi } from 'vitest';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import { paymentReviews } from '../../db/schema/payment-reviews.ts';
import { refunds } from '../../db/schema/refunds.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { bundledProgram } from '../../embedded/program-bundle.ts';
import { openBooks } from '../../proof/verify/books.ts';
import { checkBooks } from '../../proof/verify/invariants.ts';
import { lateChargeWorkflowId, poke } from '../../workflows/one-off-orders/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { World } from '../support/world.ts';

const REASON = 'the gateway refused the request: 400 field_invalid';
/** An address without a listener. */
const NOWHERE = '127.0.0.1:9';

const test = onDevServer();

test.afterEach(({ world }) => world.control('DELETE', '/control/faults'));

/** Runs `npm run review -- …` in the test environment. */
async function review(world: World, args: string[], temporalAddress = inject('temporalAddress')) {
  const run = promisify(execFile)(
    process.execPath,
    [...bundledProgram(inject('programFolder'), 'scripts/review.ts'), ...args],
    {
      env: {
        ...process.env,
        DATABASE_URL: world.databaseUrl,
        TEMPORAL_ADDRESS: temporalAddress,
        TASK_QUEUE_PREFIX: world.taskQueuePrefix,
      },
    },
  );
  return run.catch((error: { code: number; stdout: string; stderr: string }) => error);
}

const BY_ADA = ['--by', 'Ada', '--note', 'asked the gateway on the phone'];

interface Listed {
  id: string;
  subscriptionId: string | null;
  settled: { outcome: string; by: string; note: string } | null;
}

const list = async (world: World, ...args: string[]) =>
  JSON.parse((await review(world, ['list', '--json', ...args])).stdout) as Listed[];

/** Sets the card's id at the gateway. With an empty one the gateway rejects the request. */
const setMethod = (world: World, gatewayMethodId: string, paymentMethodId: string) =>
  world.db
    .update(paymentMethods)
    .set({ gatewayMethodId })
    .where(eq(paymentMethods.id, paymentMethodId));

const execute = (world: World, ref: SubscriptionRef, kind: string, fields: object = {}) =>
  world.workflows.execute(ref, {
    ...fields,
    kind,
    commandId: `${kind}:${ref.subscriptionId}:${Math.random()}`,
  } as Parameters<World['workflows']['execute']>[1]);

/** A subscription whose second cycle was declined and whose manual retry is in manual review. */
async function inReview(world: World) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await world.createClock(createdAt);
  const ref = await world.create({ createdAt, testClockId: clock, terms: { cycleCount: 3 } });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const { subscriptionId } = ref;
  const decline = { subscriptionId, code: 'card_declined', count: 1 };
  await world.control('POST', '/control/declines', decline);
  await world.advance(clock, '2027-02-10T00:00:00Z');
  const { paymentMethodId } = await world.state(ref);
  const [method] = await world.db
    .select()
    .from(paymentMethods)
    .where(eq(paymentMethods.id, paymentMethodId ?? ''));
  if (!method) throw new Error('no method');
  await setMethod(world, '', method.id);
  expect(await execute(world, ref, 'manualRetry')).toEqual({ kind: 'pending' });
  await setMethod(world, method.gatewayMethodId, method.id);
  expect((await world.state(ref)).openAttempt).toMatchObject({ reviewReason: REASON });
  const [attempt] = await world.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.state, 'REVIEW'));
  if (!attempt) throw new Error('no attempt in review');
  return { ref, clock, method, attempt, id: attempt.id };
}

const timeline = async (world: World, ref: SubscriptionRef) =>
  ((await world.workflows.timeline(ref)) ?? []).map(({ what, why }) => `${what}: ${why}`);

const eventsSince = async (world: World, ref: SubscriptionRef, before: number) =>
  (await world.events(ref)).slice(before).map((event) => event['eventType']);

async function verified(world: World) {
  const books = await openBooks({
    databaseUrl: world.databaseUrl,
    gateway: world.gatewayPlace,
    receiverBook: null,
    clientBook: null,
  });
  const results = await checkBooks(books);
  await books.close();
  return {
    wrong: results.flatMap(({ wrong }) => wrong),
    forPerson: results.flatMap(({ forPerson }) => forPerson),
  };
}

describe('a payment in review', () => {
  test('is listed, settled once as not charged, and shown in the timeline', async ({ world }) => {
    const { ref, id } = await inReview(world);
    expect(await verified(world)).toEqual({
      wrong: [],
      forPerson: [expect.stringMatching(new RegExp(`^attempt ${id} .* needs manual review since`))],
    });
    await vi.waitFor(async () => {
      const { typedSearchAttributes } = await world.client.workflow
        .getHandle(subscriptionWorkflowId(ref.subscriptionId))
        .describe();
      expect(JSON.stringify(typedSearchAttributes)).toContain('"review"');
    }, 10_000);
    expect(await list(world)).toEqual([
      {
        id,
        ...ref,
        intentId: expect.stringMatching(/^in_/) as string,
        cycleNumber: 2,
        gatewayKey: expect.stringMatching(/^charge:in_\w+:2$/) as string,
        amountMinor: 1_999,
        currency: 'USD',
        state: 'REVIEW',
        reason: REASON,
        since: expect.stringMatching(/Z$/) as string,
        settled: null,
      },
    ]);
    expect((await review(world, ['list'])).stdout).toContain(`${ref.subscriptionId}, cycle 2, in_`);
    // Meanwhile an edit is accepted, and a second attempt is refused.
    const done = { kind: 'result', result: { kind: 'done' } };
    expect(await execute(world, ref, 'edit', { newAmountMinor: 2_500 })).toEqual(done);
    expect(await execute(world, ref, 'manualRetry')).toMatchObject({
      code: 'payment_outcome_pending',
    });

    const before = (await world.events(ref)).length;
    const settled = await review(world, ['settle', id, '--not-charged', ...BY_ADA]);
    expect(settled.stdout).toBe(`${id} is settled: not_charged, by Ada.\nIt is booked.\n`);
    expect(await world.state(ref)).toMatchObject({
      status: 'UNPAID',
      openAttempt: null,
      owed: { lastDeclineCode: 'processing_error', nextRetryAt: Date.parse('2027-02-10T04:00Z') },
    });
    expect(await eventsSince(world, ref, before)).toEqual(['intent.failed']);
    const lines = await timeline(world, ref);
    expect(lines).toContain(`a payment needs a person: ${REASON}`);
    expect(lines.at(-1)).toBe(
      'cycle 2 declined (processing_error): the merchant asked for a retry (attempt 2); a person settled it',
    );

    const again = await review(world, ['settle', id, '--paid', 'ch_1', ...BY_ADA]);
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^${id} was settled already: not_charged by Ada, `),
      ) as string,
    });
    expect(await list(world)).toEqual([]);
    const [kept] = (await list(world, '--settled')).filter((one) => one.id === id);
    expect(kept?.settled).toMatchObject({ by: 'Ada', note: 'asked the gateway on the phone' });
    expect(await verified(world)).toEqual({ wrong: [], forPerson: [] });
  }, 60_000);

  test('is booked as paid by the sweep when Temporal was away at the decision', async ({
    world,
  }) => {
    const { ref, id } = await inReview(world);
    const before = (await world.events(ref)).length;
    const settle = ['settle', id, '--paid', `ch_by_phone_${id}`, ...BY_ADA];
    const settled = await review(world, settle, NOWHERE);
    expect(settled.stdout).toContain('It is not booked yet');
    expect((await review(world, settle)).stderr).toContain('was settled already: paid by Ada');
    expect((await world.state(ref)).status).toBe('UNPAID');
    // More than a minute passes.
    await world.db
      .update(paymentReviews)
      .set({ updatedAt: sql`now() - interval '61 seconds'` })
      .where(eq(paymentReviews.subjectId, id));
    const report = await world.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect(report).toMatchObject({ decidedReviews: 1, failed: 0 });
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ACTIVE'), 10_000);
    expect(await eventsSince(world, ref, before)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    expect(await verified(world)).toEqual({ wrong: [], forPerson: [] });
  }, 60_000);

  test('is refunded once when its charge arrives after it was settled as not charged', async ({
    world,
    payments,
  }) => {
    const { ref, clock, method, attempt, id } = await inReview(world);
    await review(world, ['settle', id, '--not-charged', ...BY_ADA]);
    // The next retry pays the cycle; then the lost request arrives.
    await world.advance(clock, '2027-02-10T04:00:00Z');
    expect((await world.state(ref)).cyclesCharged).toBe(2);
    await world.gateway.charge({
      key: attempt.gatewayKey,
      gatewayMethodId: method.gatewayMethodId,
      amountMinor: attempt.amountMinor,
      currency: attempt.currency,
      reference: { ...ref, intentId: attempt.intentId, paymentMethodId: method.id },
    });
    const watch = world.client.workflow.getHandle(lateChargeWorkflowId(id));
    await watch.signal(poke);
    expect(await watch.result()).toMatchObject({ outcome: { kind: 'found' } });
    await vi.waitFor(
      async () =>
        expect((await payments.book(attempt)).filter((line) => line.includes('back'))).toEqual([
          'succeeded 1999 x1 back 1999',
        ]),
      10_000,
    );
    await vi.waitFor(async () => {
      expect((await timeline(world, ref)).at(-1)).toBe(
        `a late charge came to light, 19.99 USD: ${attempt.gatewayKey} had been settled as not paid; it is given back`,
      );
    }, 10_000);
    expect(await payments.intent(attempt)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    await world.advance(clock, '2027-03-10T00:00:00Z');
    expect(await world.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 3 });
    expect(await verified(world)).toEqual({ wrong: [], forPerson: [] });
  }, 60_000);

  test('is settled as paid when the gateway has the charge, against a person’s decision', async ({
    world,
  }) => {
    const { ref, method, attempt, id } = await inReview(world);
    await world.gateway.charge({
      key: attempt.gatewayKey,
      gatewayMethodId: method.gatewayMethodId,
      amountMinor: attempt.amountMinor,
      currency: attempt.currency,
      reference: { ...ref, intentId: attempt.intentId, paymentMethodId: method.id },
    });
    await review(world, ['settle', id, '--not-charged', ...BY_ADA]);
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(await verified(world)).toEqual({ wrong: [], forPerson: [] });
  }, 60_000);
});

describe('a refund in review', () => {
  test('is settled by the same command, and its amount is free again [D-§7]', async ({
    world,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 1_200);
    // First sent 366 days ago: the gateway does not honour its key any more.
    await world.db
      .update(refunds)
      .set({ state: 'UNKNOWN', firstSentAt: sql`now() - interval '366 days'` })
      .where(eq(refunds.id, ref.refundId));
    expect(await world.payments.resumeRefund(ref)).toBe(true);
    await vi.waitFor(
      async () => expect((await payments.refundRow(ref)).state).toBe('REVIEW'),
      10_000,
    );
    expect((await list(world)).map(({ id }) => id)).toEqual([ref.refundId]);
    expect((await review(world, ['settle', ref.refundId, '--not-charged', ...BY_ADA])).stderr).toBe(
      `${ref.refundId} allows only --refunded <gatewayRefundId> or --not-refunded.\n`,
    );
    const settled = await review(world, ['settle', ref.refundId, '--not-refunded', ...BY_ADA]);
    expect(settled.stdout).toContain('It is booked.');
    expect(await payments.refundRow(ref)).toMatchObject({ state: 'REFUSED' });
    expect(await payments.intent(paid)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    // The whole amount can be refunded again.
    const second = await payments.refund(paid, 5_000);
    expect(await world.payments.refund(second.ref)).toEqual({ kind: 'refunded' });
  }, 60_000);
});

test('an attempt cannot be settled when it was never in review', async ({ world }) => {
  expect(await review(world, ['settle', 'att_nobody', '--not-charged', ...BY_ADA])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'att_nobody is not in REVIEW and never was.\n',
  });
  expect(await review(world, ['settle', 'att_nobody', '--not-charged'])).toMatchObject({ code: 1 });
});

import { chargingDeps } from '../support/charging-deps.ts';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { createChargingActivities } from '../../activities/subscription.ts';
import { createPaymentActivities } from '../../activities/orders/payments.ts';
import { markSending } from '../../db/repositories/subscriptions/attempts.ts';
import { openPaymentAttempt, settlePayment } from '../../db/repositories/payments/charges.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import { paymentAttempts, paymentIntents, paymentReviews } from '../../db/schema/payments.ts';
import { openAttempt } from '../../domain/subscription/apply-attempt.ts';
import { applyCancel } from '../../domain/subscription/apply-command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { gate } from '../support/gate.ts';
import { unpaidIn } from '../support/unpaid.ts';

const REASON = 'the gateway refused the request: 400 field_invalid';

test('a stalled worker does not send its charge again when the attempt was reviewed and decided during the stall', async ({
  env,
  payments,
}) => {
  const ref = await payments.tokenised();
  let sent = 0;
  const activities = createPaymentActivities({
    ...chargingDeps(env, {
      charge: async () => {
        sent += 1;
        return { kind: 'unknown', reason: 'no answer' };
      },
      lookup: async () => {
        // During this look-up another process moves the attempt to review, and an operator decides.
        const [attempt] = await env.db
          .update(paymentAttempts)
          .set({ state: 'REVIEW' })
          .where(eq(paymentAttempts.intentId, ref.intentId))
          .returning();
        const subjectId = attempt?.id ?? '';
        await env.db
          .insert(paymentReviews)
          .values({ ...ref, subjectId, reason: REASON })
          .onConflictDoNothing();
        const decision = { gatewayId: null, code: 'card_declined', by: 'Ada', note: 'none' };
        await decideReview(env.db, subjectId, { ...decision, outcome: 'declined' });
        return { kind: 'absent' };
      },
    }),
    // Temporal is unreachable, so the activity cannot start the late-charge watch. The sweep starts it later.
    orders: { ensureRunning: () => Promise.reject(new Error('Temporal is away')) },
    wakeStream: async () => undefined,
  });
  const input = { ...ref, token: null, nowAt: Date.now() };
  expect(await activities.chargePayment(input)).toEqual({
    kind: 'declined',
    errorCode: 'card_declined',
  });
  expect(sent).toBe(1);
  expect(await payments.attempts(ref)).toEqual(['1 DECLINED']);
});

test('an attempt goes to review when the gateway charged another amount [D-32]', async ({
  env,
  payments,
}) => {
  const ref = await payments.tokenised();
  const activities = createPaymentActivities({
    ...chargingDeps(env, {
      charge: async (request) => {
        await env.gateway.charge({ ...request, amountMinor: request.amountMinor + 1 });
        return { kind: 'unknown', reason: 'no answer' };
      },
    }),
    wakeStream: async () => undefined,
  });
  const input = { ...ref, token: null, nowAt: Date.now() };
  expect(await activities.chargePayment(input)).toEqual({ kind: 'pending', needsPerson: true });
  expect(await payments.attempt(ref)).toMatchObject({
    state: 'REVIEW',
    reason: 'under this key the gateway has a charge of 5001 USD',
  });
  expect(await payments.intent(ref)).toMatchObject({ status: 'PENDING' });
});

for (const { title, proof, watches } of [
  {
    title: 'is watched for a late charge',
    proof: {},
    watches: [{ outcome: 'not_charged', closedAt: null }],
  },
  {
    title: 'is not watched if the gateway has confirmed that it will never make the charge',
    proof: { isProven: true },
    watches: [],
  },
] as const) {
  test(`a voided attempt is not sent again, and ${title}`, async ({ env, payments }) => {
    const nowAt = Date.now();
    const order = { ...(await payments.tokenised()), token: null };
    const opened = await openPaymentAttempt(env.db, order, null, nowAt);
    if (opened.kind !== 'goOn') throw new Error('no attempt was opened');
    const { attempt } = opened;
    const voided = {
      kind: 'declined',
      code: 'processing_error',
      gatewayChargeId: null,
      isWithdrawn: true,
      ...proof,
    } as const;
    await settlePayment(env.db, attempt, voided, nowAt);
    expect(await markSending(env.db, attempt, null)).toBe('settled');
    const reviews = await env.db
      .select({ outcome: paymentReviews.outcome, closedAt: paymentReviews.closedAt })
      .from(paymentReviews)
      .where(eq(paymentReviews.subjectId, attempt.id));
    expect(reviews).toEqual(watches);
  });
}

test('a gateway charge can settle only one attempt, also before the first attempt’s row has the decision', async ({
  env,
  payments,
}) => {
  const nowAt = Date.now();
  const openReview = async () => {
    const order = { ...(await payments.tokenised()), token: null };
    const opened = await openPaymentAttempt(env.db, order, null, nowAt);
    if (opened.kind !== 'goOn') throw new Error('no attempt was opened');
    await settlePayment(env.db, opened.attempt, { kind: 'review', reason: REASON }, nowAt);
    return opened.attempt.id;
  };
  const decide = (id: string, gatewayId: string) =>
    decideReview(env.db, id, { outcome: 'paid', gatewayId, code: null, by: 'Ada', note: 'none' });
  const [first, second] = [await openReview(), await openReview()];
  const gatewayId = `ch_for_${first}`;
  expect(await decide(first, gatewayId)).toMatchObject({ ok: true });
  expect(await decide(second, gatewayId)).toEqual({
    ok: false,
    message: `${gatewayId} has already settled ${first}.`,
  });
  const paid = await payments.tokenised();
  await env.orders.execute('payment', { ...paid, token: null });
  const booked = await payments.attempt(paid);
  expect(await decide(second, booked.gatewayChargeId ?? '')).toEqual({
    ok: false,
    message: `${booked.gatewayChargeId} has already settled ${booked.id}.`,
  });
});

test('a stalled run settles nothing when its subscription was cancelled during the stall [D-32]', async ({
  env,
}) => {
  const { ref } = await unpaidIn(env);
  const state = await env.state(ref);
  const nowAt = Date.parse('2027-02-10T00:30:00Z');
  const opening = openAttempt(state, {
    trigger: 'automatic_retry',
    commandId: null,
    now: nowAt,
    realNow: Date.now(),
  });
  const cancelled = applyCancel(
    opening.state,
    { kind: 'cancel', commandId: 'cancel', reason: 'cancelled' },
    nowAt,
  );
  const opened = {
    transitionId: `${ref.subscriptionId}:opening`,
    command: null,
    nowAt,
    effects: opening.effects,
  };

  const asked = gate();
  const late = createChargingActivities(
    chargingDeps(env, {
      charge: async (request) => {
        const answer = await env.gateway.charge(request);
        // This run stalls with the answer; the subscription is cancelled, and another run continues.
        const change = { change: cancelled, command: null, nowAt };
        await writeChange(env.db, {
          ...change,
          transitionId: `${ref.subscriptionId}:cancel`,
        });
        continued = live.chargeAttempt({ ...times, state: cancelled.state, opening: null });
        await asked.isOpen;
        return answer;
      },
    }),
  );
  const live = createChargingActivities(
    chargingDeps(env, {
      // The look-up does not find the charge. The answer of the look-up arrives after the stalled run has
      // returned.
      lookup: async () => {
        asked.open();
        await isLateOver;
        return { kind: 'absent' };
      },
    }),
  );
  let continued!: ReturnType<typeof live.chargeAttempt>;
  const times = { nowAt, realNowAt: Date.now() };
  const isLateOver = late.chargeAttempt({ ...times, state: opening.state, opening: opened });

  expect(await isLateOver).toMatchObject({
    kind: 'adopt',
    state: { status: 'ENDED' },
    result: null,
  });
  expect(await continued).toMatchObject({ kind: 'settled', outcome: { kind: 'declined' } });
  const attempts = await env.db
    .select({ state: paymentAttempts.state, decidedBy: paymentReviews.decidedBy })
    .from(paymentAttempts)
    .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
    .leftJoin(paymentReviews, eq(paymentReviews.subjectId, paymentAttempts.id))
    .where(eq(paymentIntents.subscriptionId, ref.subscriptionId))
    .orderBy(paymentAttempts.createdAt);
  // A late-charge watch covers the charge, which will be refunded.
  expect(attempts).toEqual([
    { state: 'SUCCEEDED', decidedBy: null },
    { state: 'DECLINED', decidedBy: null },
    { state: 'DECLINED', decidedBy: 'perennial' },
  ]);
});

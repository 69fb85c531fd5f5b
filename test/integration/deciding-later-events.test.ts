import { randomBytes, randomUUID } from 'node:crypto';
import { asc, eq, inArray, or, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { NOTHING_FOUND } from '../../activities/maintenance.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { newId } from '../../domain/ids.ts';
import { refundKey } from '../../domain/refund.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { SIGNATURE_HEADER, signEvent } from '../../gateways/sandbox/events.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import { GATEWAY_KEY } from '../support/gateway-control.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { DECIDE_AFTER_MS } from '../support/test-environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** A sandbox gateway that decides charges and refunds later, and sends its events to the API. */

const target = { url: 'http://127.0.0.1:1', secret: GATEWAY_KEY };
const test = onDevServerWith({ gatewayPersonality: 'pending', gatewayEvents: target });

test.beforeEach(({ shop }) => {
  target.url = `${shop.url}/gateways/sandbox-pending/events`;
});

test.afterEach(async ({ env }) => {
  await env.control('DELETE', '/control/faults');
  await decideAfter(env, DECIDE_AFTER_MS);
});

const SOON = { timeout: 60_000, interval: 20 };
const DUE = Date.parse('2027-02-10T00:00:00Z');
const NEVER_MS = 120_000;

const decideAfter = (env: TestEnvironment, ms: number) =>
  env.control('POST', '/control/decisions/delay', { ms });
const decideNow = (env: TestEnvironment) => env.control('POST', '/control/decisions');

/** Creates a subscription whose second of two cycles is due at `DUE`. The event about its first charge is handled. */
async function subscribed(env: TestEnvironment) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const ref = await env.create({ createdAt, testClockId: clock, terms: { cycleCount: 2 } });
  await payCheckout(env, ref);
  await eventsAbout(env, (await lastAttempt(env, ref)).key, 1);
  return { clock, ref };
}

/** The subscription's latest attempt. */
async function lastAttempt(env: TestEnvironment, ref: SubscriptionRef) {
  const { paymentMethodId } = await env.state(ref);
  const rows = await env.db
    .select({ key: paymentAttempts.gatewayKey, state: paymentAttempts.state })
    .from(paymentAttempts)
    .where(eq(paymentAttempts.paymentMethodId, String(paymentMethodId)))
    .orderBy(asc(paymentAttempts.createdAt), asc(paymentAttempts.attemptNumber));
  return rows.at(-1)!;
}

const reaches = (env: TestEnvironment, ref: SubscriptionRef, state: string) =>
  expect.poll(async () => (await lastAttempt(env, ref)).state, SOON).toBe(state);

const rowsAbout = (env: TestEnvironment, key: string) =>
  env.db.select().from(gatewayEvents).where(eq(gatewayEvents.subjectId, key));

/** Waits until `count` events about the charge or refund are stored, and all of them are handled. */
const eventsAbout = (env: TestEnvironment, key: string, count: number) =>
  vi.waitUntil(async () => {
    const rows = await rowsAbout(env, key);
    return rows.length >= count && rows.every(({ handledAt }) => handledAt !== null) && rows;
  }, SOON);

/** The number of recheck signals (`poke`) that the subscription's current run has received. */
async function recheckCount(env: TestEnvironment, ref: SubscriptionRef) {
  const { events } = await env.client.workflow
    .getHandle(subscriptionWorkflowId(ref.subscriptionId))
    .fetchHistory();
  const signals = events?.map(
    (event) => event.workflowExecutionSignaledEventAttributes?.signalName,
  );
  return (signals ?? []).filter((name) => name === 'poke').length;
}

const linesOf = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.book(ref)).map(({ key, outcome }) => `${key.split(':')[2]} ${outcome}`);

const typesOf = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.events(ref)).map((event) => event['eventType']);

const STARTED = [
  'intent.created',
  'subscription.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.active',
];
const ENDED = [
  'intent.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.ended',
];

/** Expects that every event of the gateway is sent and handled, and that a sweep finds nothing to repair. */
async function expectNothingLeft(env: TestEnvironment): Promise<void> {
  // A repeated request may show an outcome before the event about it is sent.
  await decideNow(env);
  await expect.poll(() => unsentCount(env), SOON).toBe(0);
  await vi.waitUntil(
    async () => (await env.db.select().from(gatewayEvents)).every((row) => row.handledAt !== null),
    SOON,
  );
  expect(await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 })).toEqual(NOTHING_FOUND);
}

/** Number of events that the gateway still has to send. */
async function unsentCount(env: TestEnvironment) {
  const rows = await env.db.execute<{ n: number }>(
    sql`select count(*)::int as n from sandbox_gateway.event`,
  );
  return rows[0]?.n;
}

/** Posts a body with this signature to the account's URL for events. */
async function post(account: string, body: string, signature: string | null) {
  const headers = signature === null ? {} : { [SIGNATURE_HEADER]: signature };
  const response = await fetch(`${target.url}/${account}`, { method: 'POST', headers, body });
  return `${response.status} ${await response.text()}`;
}

const payload = (key: string, type = 'charge.decided') =>
  JSON.stringify({ id: randomUUID(), type, key });

const signed = (body: string) => signEvent(GATEWAY_KEY, Date.now(), body);

describe('an event about a charge', () => {
  test('makes the workflow send the charge again with its key, which shows the outcome [D-40, D-32]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    await decideAfter(env, NEVER_MS);
    await env.sendClock(clock, DUE);
    await reaches(env, ref, 'UNKNOWN');
    const { key } = await lastAttempt(env, ref);
    expect(await rowsAbout(env, key)).toEqual([]);
    const before = await recheckCount(env, ref);
    // The gateway holds the charge until its faults are removed, so that no timed look-up shows the outcome before the
    // event causes the recheck.
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 60_000,
      count: 1_000,
      match: { subscriptionId: ref.subscriptionId },
    });
    await decideNow(env);
    await expect.poll(() => recheckCount(env, ref), SOON).toBeGreaterThan(before);
    await env.control('DELETE', '/control/faults');
    await expect.poll(() => env.state(ref), SOON).toMatchObject({ status: 'ENDED' });
    expect(await eventsAbout(env, key, 1)).toMatchObject([
      {
        merchantId: env.merchantId,
        gateway: 'sandbox-pending',
        type: 'charge.decided',
        hint: { kind: 'charge', gatewayChargeId: null, key },
      },
    ]);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 succeeded']);
    expect(await typesOf(env, ref)).toEqual([...STARTED, ...ENDED]);
    await expectNothingLeft(env);
    expect(await linesOf(env, ref)).toHaveLength(2);
  });

  test('is stored once when the gateway sends it twice [D-40]', async ({ env }) => {
    const { clock, ref } = await subscribed(env);
    await env.control('POST', '/control/faults', {
      operation: 'event',
      fault: 'lose_answer',
      count: 1,
    });
    await env.advance(clock, DUE);
    const { key } = await lastAttempt(env, ref);
    await eventsAbout(env, key, 1);
    await expect.poll(() => unsentCount(env), SOON).toBe(0);
    expect(await eventsAbout(env, key, 1)).toHaveLength(1);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 succeeded']);
    await expectNothingLeft(env);
  });

  test('has no effect when it arrives before the answer to the charge, which is made once [D-40]', async ({
    env,
  }) => {
    const { clock, ref } = await subscribed(env);
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 60_000,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    await env.sendClock(clock, DUE);
    await expect.poll(async () => (await env.state(ref)).openAttempt, SOON).not.toBeNull();
    await reaches(env, ref, 'SENDING');
    const { key } = await lastAttempt(env, ref);
    const body = payload(key);
    expect(await post(env.merchantId, body, signed(body))).toBe('200 {}');
    await eventsAbout(env, key, 1);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded']);
    // The gateway now receives the charge.
    await env.control('DELETE', '/control/faults');
    await expect.poll(() => env.state(ref), SOON).toMatchObject({ status: 'ENDED' });
    await eventsAbout(env, key, 2);
    expect(await linesOf(env, ref)).toEqual(['1 succeeded', '1 succeeded']);
    expect(await typesOf(env, ref)).toEqual([...STARTED, ...ENDED]);
    await expectNothingLeft(env);
  });

  test('outside the billing cycles makes the payment’s workflow send the charge again [D-40]', async ({
    env,
    payments,
  }) => {
    await decideAfter(env, NEVER_MS);
    const ref = await payments.tokenised();
    const paying = env.payments.pay({ ...ref, token: null });
    await expect.poll(() => payments.attempts(ref), SOON).toEqual(['1 UNKNOWN']);
    await decideNow(env);
    await expect.poll(() => payments.attempts(ref), SOON).toEqual(['1 SUCCEEDED']);
    await paying;
    expect(await payments.story(ref.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
    ]);
    await expectNothingLeft(env);
  });
});

describe('an event about a refund', () => {
  test('makes the refund’s workflow repeat its request, which shows the outcome [D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    await decideAfter(env, NEVER_MS);
    const { ref } = await payments.refund(paid, 2_000);
    await env.payments.resumeRefund(ref);
    await expect.poll(async () => (await payments.refundRow(ref)).state, SOON).toBe('PENDING');
    await decideNow(env);
    await expect.poll(async () => (await payments.refundRow(ref)).state, SOON).toBe('SUCCEEDED');
    const key = refundKey(ref.refundId);
    expect(await eventsAbout(env, key, 1)).toMatchObject([
      { type: 'refund.decided', hint: { kind: 'refund', gatewayRefundId: null, key } },
    ]);
    expect((await payments.book(paid))[0]).toMatch(/^succeeded 5000 x\d+ back 2000$/);
    expect(await payments.story(paid.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
    await expectNothingLeft(env);
  });

  test('that failed after it succeeded makes the refund REFUSED, and its amount can be refunded again [D-40, D-50]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 2_000);
    await env.payments.resumeRefund(ref);
    await expect.poll(async () => (await payments.refundRow(ref)).state, SOON).toBe('SUCCEEDED');
    const key = refundKey(ref.refundId);
    await eventsAbout(env, key, 1);
    await env.control('POST', '/control/refunds', { key, status: 'failed' });
    await expect.poll(async () => (await payments.refundRow(ref)).state, SOON).toBe('REFUSED');
    expect(await eventsAbout(env, key, 2)).toHaveLength(2);
    const { status, refundedMinor } = await payments.intent(paid);
    expect([status, refundedMinor]).toEqual(['SUCCESS', 0]);
    const again = await payments.refund(paid);
    expect(again).toMatchObject({ kind: 'inserted', refund: { amountMinor: 5_000 } });
    await env.payments.resumeRefund(again.ref);
    await expect
      .poll(async () => (await payments.refundRow(again.ref)).state, SOON)
      .toBe('SUCCEEDED');
    expect(await payments.story(paid.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
      'intent.refund_failed SUCCESS',
      'intent.refunded REFUNDED',
    ]);
    await expectNothingLeft(env);
  });
});

describe('a request with an event of the sandbox', () => {
  const REFUSED =
    '400 {"errorCode":"bad_request","errorDescription":"The request has no valid signature of this account."}';

  test('without a valid signature, or for an account that does not exist, is refused and not stored [D-20]', async ({
    env,
    shop,
  }) => {
    const { merchantId } = env;
    const body = payload('key_1');
    const right = signed(body);
    const at = Date.now();
    const unreadable = ['', 'null', '{"id":"1"}', '{"id":1,"type":"charge.decided","key":"k"}'];
    expect([
      await post(merchantId, body, null),
      await post(merchantId, body, 'v1=00'),
      await post(merchantId, body, signEvent('another-key', at, body)),
      await post(merchantId, body, signEvent(GATEWAY_KEY, at - 301_000, body)),
      await post(merchantId, body, signEvent(GATEWAY_KEY, at + 360_000, body)),
      await post(merchantId, `${body} `, right),
      await post('mer_unknown', body, right),
      await post(newId('mer', at, randomBytes), body, right),
    ]).toEqual(Array.from({ length: 8 }, () => REFUSED));
    for (const text of unreadable) expect(await post(merchantId, text, signed(text))).toBe(REFUSED);
    const other = { method: 'POST', headers: { [SIGNATURE_HEADER]: right }, body };
    const instant = await fetch(`${shop.url}/gateways/sandbox/events/${merchantId}`, other);
    expect(`${instant.status} ${await instant.text()}`).toBe(REFUSED);
    const isOne = or(eq(gatewayEvents.subjectId, 'key_1'), eq(gatewayEvents.eventId, '1'));
    expect(await env.db.select().from(gatewayEvents).where(isOne)).toEqual([]);
  });

  test('about a charge or refund that is not ours, or of an unknown type, is stored once and has no effect [D-21]', async ({
    env,
  }) => {
    const keys = ['unknown_charge', 'unknown_refund', 'unknown_type'] as const;
    const bodies = [
      payload(keys[0]),
      payload(keys[1], 'refund.decided'),
      payload(keys[2], 'payout.decided'),
    ];
    for (const body of [...bodies, ...bodies]) {
      expect(await post(env.merchantId, body, signed(body))).toBe('200 {}');
    }
    const rows = await env.db
      .select()
      .from(gatewayEvents)
      .where(
        inArray(
          gatewayEvents.eventId,
          bodies.map((body) => JSON.parse(body).id as string),
        ),
      );
    expect(new Map(rows.map(({ subjectId, hint }) => [subjectId, hint.kind]))).toEqual(
      new Map([
        [keys[0], 'charge'],
        [keys[1], 'refund'],
        [null, 'ignored'],
      ]),
    );
    expect(rows).toHaveLength(3);
    expect(rows.every(({ handledAt }) => handledAt !== null)).toBe(true);
    await expectNothingLeft(env);
  });
});

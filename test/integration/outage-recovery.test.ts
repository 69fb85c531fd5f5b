import { eq, sql } from 'drizzle-orm';
import { beforeEach, describe, expect } from 'vitest';
import { recheckAfterOutage } from '../../activities/outage-recovery.ts';
import { oneGateway } from '../../gateways/registry.ts';
import type { OutageRecoveryDeps } from '../../activities/outage-recovery.ts';
import { gatewayHealth } from '../../db/schema/gateway-health.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import { subjectOf } from '../../domain/order.ts';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import type { LookupOutcome, MethodLookup, PaymentGateway } from '../../gateways/port.ts';
import { SealingError } from '../../runtime/sealing.ts';
import { gate } from '../support/gate.ts';
import { onDevServer } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import type { Payments } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const NOW = Date.parse('2027-03-01T12:00:00Z');
const SECOND = 1_000;

/**
 * The state of the sweep's fake ports: the gateway's next answer, the keys of its look-ups, the ids of the
 * rechecked records, each pause in ms, and the id of the record whose workflow cannot be signalled.
 */
const answer = { now: { kind: 'absent' } as LookupOutcome };
const lookups: string[] = [];
const rechecked: string[] = [];
const pauses: number[] = [];
let unreachable: string | null = null;

const test = onDevServer;

beforeEach(() => {
  answer.now = { kind: 'absent' };
  for (const list of [lookups, rechecked, pauses]) list.length = 0;
  unreachable = null;
});

function depsOf(env: TestEnvironment): OutageRecoveryDeps {
  const recheck = async (id: string) => {
    if (id === unreachable) throw new Error('Temporal is away');
    rechecked.push(id);
  };
  return {
    db: env.db,
    gateways: oneGateway({
      ...env.gateway,
      lookup: async ({ key }) => {
        lookups.push(key);
        return answer.now;
      },
    }),
    subscriptionWorkflows: { recheck: ({ subscriptionId }) => recheck(subscriptionId) },
    orders: { recheck: (_kind, order) => recheck(subjectOf(order)) },
    recheckPause: async (ms) => void pauses.push(ms),
  };
}

const UNANSWERED: LookupOutcome = { kind: 'unknown', reason: 'the gateway answered 500' };

/**
 * Inserts `count` payments of unknown outcome, numbered from 1 in the order of their first sends. The
 * payments of earlier tests no longer count as unanswered.
 */
async function undecided(env: TestEnvironment, payments: Payments, count: number) {
  await env.db.delete(gatewayHealth);
  await env.db.update(paymentAttempts).set({ unansweredAt: null });
  return insertUndecided(env, payments, count);
}

/** Inserts one payment of unknown outcome for each of two merchants, at one gateway. */
async function twoMerchants(env: TestEnvironment, payments: Payments) {
  const first = { merchantId: env.merchantId, ...(await undecided(env, payments, 1)) };
  const { merchantId } = await createMerchantWithCredential(env.db, {
    name: 'Other Ltd',
    mode: 'test',
    pepper: 'pepper of the tests',
  });
  const other = { ...env, merchantId };
  const second = { merchantId, ...(await insertUndecided(other, paymentsIn(other), 1)) };
  return [first, second] as const;
}

async function insertUndecided(env: TestEnvironment, payments: Payments, count: number) {
  const { intentId } = await payments.tokenised();
  const { merchantId } = env;
  const run = intentId.slice(-8);
  const id = (prefix: string) => sql`${`${prefix}_${run}`} || lpad(n::text, 4, '0')`;
  await env.activities.chargePayment({ merchantId, intentId, token: null, nowAt: NOW });
  await env.db.execute(sql`
    insert into payment_intent (merchant_id, id, kind, customer_id, payment_method_id, amount_minor,
      currency, presentment_currency, status, customer_details, normal_email, created_at)
    select merchant_id, ${id('in')}, kind, customer_id, payment_method_id, amount_minor,
      currency, presentment_currency, 'PENDING', customer_details, normal_email, created_at
    from payment_intent, generate_series(1, ${count}::int) n where id = ${intentId}`);
  await env.db.execute(sql`
    insert into payment_attempt (merchant_id, id, intent_id, attempt_number, trigger, gateway,
      gateway_key, gateway_method_id, payment_method_id, state, amount_minor, currency, created_at,
      first_sent_at, unanswered_at)
    select merchant_id, ${id('att')}, ${id('in')}, 1, trigger, gateway,
      ${id('key')}, gateway_method_id, payment_method_id, 'UNKNOWN', amount_minor, currency, created_at,
      ${new Date(NOW - 3_600_000).toISOString()}::timestamptz + n * interval '1 second',
      ${new Date(NOW - 600_000).toISOString()}::timestamptz + n * interval '1 second'
    from payment_attempt, generate_series(1, ${count}::int) n where intent_id = ${intentId}`);
  const numbered = (prefix: string) => (n: number) =>
    `${prefix}_${run}${String(n).padStart(4, '0')}`;
  return { intent: numbered('in'), key: numbered('key') };
}

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

/** Records that a look-up of this payment at `at` got no answer. */
const unansweredAgain = (env: TestEnvironment, intentId: string, at: number) =>
  env.db
    .update(paymentAttempts)
    .set({ unansweredAt: at })
    .where(eq(paymentAttempts.intentId, intentId));

describe('the recheck after an outage of the gateway', () => {
  test('is paced: the first 200 payments with pauses of 50 ms, the others in the next sweep [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent, key } = await undecided(env, payments, 205);
    const deps = depsOf(env);
    expect(await recheckAfterOutage(deps, NOW)).toEqual({ rechecked: 200, failed: 0 });
    expect(rechecked).toEqual(range(1, 200).map(intent));
    expect(pauses).toEqual(Array.from({ length: 199 }, () => 50));
    expect(lookups).toEqual([key(1)]);

    expect(await recheckAfterOutage(deps, NOW + 10 * SECOND)).toEqual({ rechecked: 5, failed: 0 });
    expect(rechecked.slice(200)).toEqual(range(201, 205).map(intent));
    expect(pauses).toHaveLength(203);
    expect(await recheckAfterOutage(deps, NOW + 20 * SECOND)).toEqual({ rechecked: 0, failed: 0 });
    expect(lookups).toEqual([key(1)]);
  });

  test('goes on with the other gateways when the account of one cannot be opened [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent, key } = await undecided(env, payments, 2);
    await env.db
      .update(paymentAttempts)
      .set({ gateway: 'locked' })
      .where(eq(paymentAttempts.intentId, intent(1)));
    const deps = depsOf(env);
    const isLocked = { now: true };
    const gateways: OutageRecoveryDeps['gateways'] = {
      ...deps.gateways,
      of: async (merchantId, name) => {
        if (isLocked.now && name === 'locked') throw new SealingError('sealed with another key');
        return deps.gateways.of(merchantId, 'sandbox');
      },
    };
    const locked = { ...deps, gateways };
    expect(await recheckAfterOutage(locked, NOW)).toEqual({ rechecked: 1, failed: 1 });
    expect(rechecked).toEqual([intent(2)]);
    expect(lookups).toEqual([key(2)]);

    isLocked.now = false;
    const done = { rechecked: 1, failed: 0 };
    expect(await recheckAfterOutage(locked, NOW + 10 * SECOND)).toEqual(done);
    expect(rechecked).toEqual([intent(2), intent(1)]);
    const nothing = { rechecked: 0, failed: 0 };
    expect(await recheckAfterOutage(locked, NOW + 20 * SECOND)).toEqual(nothing);
    expect(lookups).toEqual([key(2), key(1)]);
  });

  test('is made at the gateway that answers while four other gateways leave their look-ups unanswered [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent } = await undecided(env, payments, 5);
    const nameOf = (n: number) => `gateway ${n}`;
    for (const n of range(1, 5)) {
      await env.db
        .update(paymentAttempts)
        .set({ gateway: nameOf(n) })
        .where(eq(paymentAttempts.intentId, intent(n)));
    }
    // No look-up ends before the sweep has sent one to each gateway.
    const sent: string[] = [];
    const allSent = gate();
    const gateways: OutageRecoveryDeps['gateways'] = {
      ...oneGateway(env.gateway),
      of: async (_merchantId, name) => ({
        ...env.gateway,
        lookup: async () => {
          sent.push(name);
          if (sent.length === 5) allSent.open();
          await allSent.isOpen;
          return name === nameOf(5) ? { kind: 'absent' } : UNANSWERED;
        },
      }),
    };
    const deps = { ...depsOf(env), gateways };
    expect(await recheckAfterOutage(deps, NOW)).toEqual({ rechecked: 1, failed: 0 });
    expect(rechecked).toEqual([intent(5)]);
    expect(sent.toSorted()).toEqual(range(1, 5).map(nameOf));

    const nothing = { rechecked: 0, failed: 0 };
    expect(await recheckAfterOutage(deps, NOW + 10 * SECOND)).toEqual(nothing);
    expect(sent.slice(5).toSorted()).toEqual(range(1, 4).map(nameOf));
  });

  test.for([
    ['cannot be opened', 0],
    ['cannot be opened', 1],
    ['is revoked', 0],
    ['is revoked', 1],
  ] as const)(
    'is made at an account of two merchants when the key of one of them %s [D-20, D-40] (%i)',
    async ([fault, broken], { env, payments }) => {
      const owners = await twoMerchants(env, payments);
      const deps = depsOf(env);
      const gatewayOf = (own: (typeof owners)[number]): PaymentGateway => ({
        ...env.gateway,
        lookup: async ({ key }) => {
          lookups.push(key);
          const isRefused = own === owners[broken] || key !== own.key(1);
          if (isRefused) throw new GatewayRejectedRequest(401, 'wrong key');
          return { kind: 'absent' };
        },
      });
      const gateways = new Map(owners.map((own) => [own.merchantId, gatewayOf(own)]));
      const registry: OutageRecoveryDeps['gateways'] = {
        ...deps.gateways,
        of: async (merchantId) => {
          const isLocked = fault === 'cannot be opened' && merchantId === owners[broken].merchantId;
          if (isLocked) throw new SealingError('sealed with another key');
          return gateways.get(merchantId)!;
        },
      };
      const ofTwo = { ...deps, gateways: registry };
      const failed = fault === 'cannot be opened' ? 1 : 0;
      expect(await recheckAfterOutage(ofTwo, NOW)).toEqual({ rechecked: 2, failed });
      expect(rechecked.toSorted()).toEqual(owners.map(({ intent }) => intent(1)).toSorted());
      const asked = failed === 1 ? [owners[1 - broken]!] : owners;
      expect(lookups.toSorted()).toEqual(asked.map(({ key }) => key(1)).toSorted());

      const nothing = { rechecked: 0, failed: 0 };
      expect(await recheckAfterOutage(ofTwo, NOW + 10 * SECOND)).toEqual(nothing);
      expect(lookups).toHaveLength(asked.length);
    },
  );

  test('sends one look-up in each sweep to a gateway that two merchants share [D-40]', async ({
    env,
    payments,
  }) => {
    const owners = await twoMerchants(env, payments);
    const deps = depsOf(env);
    answer.now = UNANSWERED;
    const nothing = { rechecked: 0, failed: 0 };
    expect(await recheckAfterOutage(deps, NOW)).toEqual(nothing);
    expect(lookups).toHaveLength(1);
    expect(await recheckAfterOutage(deps, NOW + 10 * SECOND)).toEqual(nothing);
    expect(lookups.toSorted()).toEqual(owners.map(({ key }) => key(1)).toSorted());
    answer.now = { kind: 'absent' };
    const after = { rechecked: 2, failed: 0 };
    expect(await recheckAfterOutage(deps, NOW + 20 * SECOND)).toEqual(after);
    expect(await recheckAfterOutage(deps, NOW + 30 * SECOND)).toEqual(nothing);
    expect(lookups).toHaveLength(3);
  });

  test('starts after the gateway’s first answer; until then each sweep looks up the next charge, in rotation [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent, key } = await undecided(env, payments, 3);
    const deps = depsOf(env);
    answer.now = UNANSWERED;
    for (const n of range(0, 3)) {
      expect(await recheckAfterOutage(deps, NOW + n * 10 * SECOND)).toEqual({
        rechecked: 0,
        failed: 0,
      });
    }
    expect(lookups).toEqual([key(1), key(2), key(3), key(1)]);
    expect(await env.db.select().from(gatewayHealth)).toEqual([
      { gateway: 'sandbox', answeredAt: null, silentSinceAt: NOW },
    ]);
    answer.now = { kind: 'in_progress' };
    expect(await recheckAfterOutage(deps, NOW + 40 * SECOND)).toEqual({ rechecked: 3, failed: 0 });
    expect(rechecked).toEqual([intent(1), intent(2), intent(3)]);
    expect(await env.db.select().from(gatewayHealth)).toEqual([
      { gateway: 'sandbox', answeredAt: NOW + 40 * SECOND, silentSinceAt: null },
    ]);
  });

  test('is repeated by the next sweep for a workflow that could not be signalled [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent } = await undecided(env, payments, 3);
    const deps = depsOf(env);
    unreachable = intent(2);
    expect(await recheckAfterOutage(deps, NOW)).toEqual({ rechecked: 2, failed: 1 });
    expect(rechecked).toEqual([intent(1), intent(3)]);
    unreachable = null;
    expect(await recheckAfterOutage(deps, NOW + 10 * SECOND)).toEqual({ rechecked: 1, failed: 0 });
    expect(rechecked).toEqual([intent(1), intent(3), intent(2)]);
    expect(await recheckAfterOutage(deps, NOW + 20 * SECOND)).toEqual({ rechecked: 0, failed: 0 });
  });

  test('is repeated at growing intervals, up to 5 min, for a charge that the gateway never answers [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent } = await undecided(env, payments, 2);
    const deps = depsOf(env);
    const rechecksAt: number[] = [];
    for (const at of range(0, 120).map((n) => n * 10)) {
      rechecked.length = 0;
      await recheckAfterOutage(deps, NOW + at * SECOND);
      if (!rechecked.includes(intent(1))) continue;
      rechecksAt.push(at);
      // The test settles payment 2 after the first sweep. Later sweeps do not recheck payment 2.
      expect(rechecked).toEqual(at === 0 ? [intent(1), intent(2)] : [intent(1)]);
      await unansweredAgain(env, intent(1), NOW + at * SECOND + 1);
      await env.db
        .update(paymentAttempts)
        .set({ state: 'SUCCEEDED' })
        .where(eq(paymentAttempts.intentId, intent(2)));
    }
    expect(rechecksAt).toEqual([0, 30, 90, 210, 450, 750, 1_050]);
  });

  test('does not start when the gateway refuses the look-up because of wrong credentials [D-40]', async ({
    env,
    payments,
  }) => {
    await undecided(env, payments, 1);
    const { url } = env.gatewayPlace;
    const gateway = createSandboxClient({ url, publicUrl: url, apiKey: 'wrong', timeoutMs: 2_000 });
    const deps = { ...depsOf(env), gateways: oneGateway(gateway) };
    expect(await recheckAfterOutage(deps, NOW)).toEqual({ rechecked: 0, failed: 0 });
    expect(rechecked).toEqual([]);
    expect(await env.db.select().from(gatewayHealth)).toEqual([
      { gateway: 'sandbox', answeredAt: null, silentSinceAt: NOW },
    ]);
    await gateway.close();
  });

  test('starts after the gateway’s answer about a payment method, when the outage began before the charge was prepared [D-40]', async ({
    env,
    payments,
  }) => {
    const { intent } = await undecided(env, payments, 2);
    const methods: string[] = [];
    const found: { now: MethodLookup } = { now: { kind: 'unknown', reason: 'answered 500' } };
    // Like Stripe: a charge that was not prepared is known to be absent without a request.
    const preparing: PaymentGateway = {
      ...env.gateway,
      prepare: async () => ({ kind: 'unknown', reason: 'answered 500' }),
      lookup: async ({ key, gatewayChargeId }) => {
        if (gatewayChargeId === null) return { kind: 'absent' };
        lookups.push(key);
        return UNANSWERED;
      },
      lookupMethod: async (gatewayMethodId) => {
        methods.push(gatewayMethodId);
        return found.now;
      },
    };
    const deps = { ...depsOf(env), gateways: oneGateway(preparing) };
    expect(await recheckAfterOutage(deps, NOW)).toEqual({ rechecked: 0, failed: 0 });
    expect(await env.db.select().from(gatewayHealth)).toEqual([
      { gateway: 'sandbox', answeredAt: null, silentSinceAt: NOW },
    ]);
    found.now = { kind: 'removed' };
    const after = { rechecked: 2, failed: 0 };
    expect(await recheckAfterOutage(deps, NOW + 10 * SECOND)).toEqual(after);
    expect(rechecked.toSorted()).toEqual([intent(1), intent(2)]);
    const nothing = { rechecked: 0, failed: 0 };
    expect(await recheckAfterOutage(deps, NOW + 20 * SECOND)).toEqual(nothing);
    expect(methods).toHaveLength(2);
    expect(lookups).toEqual([]);
  });

  test('makes no look-up when the outcome of every payment is known', async ({ env, payments }) => {
    await undecided(env, payments, 0);
    expect(await recheckAfterOutage(depsOf(env), NOW)).toEqual({ rechecked: 0, failed: 0 });
    expect(lookups).toEqual([]);
    expect(await env.db.select().from(gatewayHealth)).toEqual([]);
  });
});

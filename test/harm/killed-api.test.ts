import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { afterAll, describe, expect } from 'vitest';
import { idempotencyKeys } from '../../db/schema/merchants.ts';
import { paymentIntents } from '../../db/schema/payments.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { Failpoint } from '../../runtime/failpoints.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { apiProcesses } from '../support/api-process.ts';
import type { ApiProcess } from '../support/api-process.ts';
import type { Payments } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { untilAccepted } from '../support/until-accepted.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/**
 * The API's rows of the crash table in docs/architecture.md. In each test an API process is killed at a
 * failpoint. Then a second, running API gets the same request with the same idempotency key.
 */

let processes: Awaited<ReturnType<typeof apiProcesses>>;
let running: ApiProcess;

test.beforeAll(async ({ env }) => {
  processes = await apiProcesses(env);
  running = await processes.start();
});

afterAll(async () => {
  await running.stop();
});

interface Request {
  readonly path: string;
  readonly body: object;
  readonly key: string;
}

async function send(api: ApiProcess, { path, body, key }: Request) {
  const response = await fetch(api.url + path, {
    method: 'POST',
    headers: {
      authorization: processes.authorization,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const isReplayed = response.headers.get('idempotent-replayed') === 'true';
  return { status: response.status, text, isReplayed };
}

/** Starts an API that kills itself at the failpoint while it serves the request. The client gets no answer. */
async function crashAt(point: Failpoint, request: Request): Promise<void> {
  const api = await processes.start({ failpoint: point });
  await expect(send(api, request)).rejects.toThrow('fetch failed');
  expect(await api.gone).toMatchObject({ code: null, signal: 'SIGKILL' });
}

/** Returns the running API's answer. A repeat of the request must replay this answer byte for byte. */
async function answerOf(request: Request): Promise<{ text: string; isReplayed: boolean }> {
  const { status, ...answer } = await send(running, request);
  expect(status, answer.text).toBe(200);
  expect(await send(running, request)).toEqual({
    status: 200,
    text: answer.text,
    isReplayed: true,
  });
  return answer;
}

/** Lets the killed process's lease on the key expire. Until then the key is in use. */
async function expireLease(env: TestEnvironment, request: Request): Promise<void> {
  expect(await send(running, request)).toMatchObject({
    status: 409,
    text: expect.stringContaining('idempotency_key_in_use') as string,
  });
  await env.db
    .update(idempotencyKeys)
    .set({ lockedUntil: Date.now() })
    .where(eq(idempotencyKeys.key, request.key));
}

const stateOfKey = async (env: TestEnvironment, { key }: Request) => {
  const [row] = await env.db
    .select({ state: idempotencyKeys.state })
    .from(idempotencyKeys)
    .where(eq(idempotencyKeys.key, key));
  return row?.state ?? null;
};

describe('an API that crashes while it creates a subscription', () => {
  const createRequest = (receiptId: string): Request => ({
    path: '/subscription/create',
    body: { ...MONTHLY, callbackUrl: 'https://merchant.example/back', receiptId },
    key: randomUUID(),
  });
  const created = (env: TestEnvironment, receiptId: string) =>
    env.db
      .select({ id: subscriptions.id, workflowStartedAt: subscriptions.workflowStartedAt })
      .from(subscriptions)
      .where(eq(subscriptions.receiptId, receiptId));

  test('before its commit has no effect, and the repeat creates the subscription [D-17]', async ({
    env,
    payments,
  }) => {
    const request = createRequest('before-commit');
    await crashAt('before_claim_commits', request);
    expect(await created(env, 'before-commit')).toEqual([]);
    expect(await stateOfKey(env, request)).toBeNull();

    const { text, isReplayed } = await answerOf(request);
    expect(isReplayed).toBe(false);
    const [subscription, ...others] = await created(env, 'before-commit');
    expect(others).toEqual([]);
    const subscriptionId = String(subscription?.id);
    expect(JSON.parse(text)).toMatchObject({ subscriptionId });
    await env.confirmStart({ merchantId: env.merchantId, subscriptionId });
    expect(await payments.story(subscriptionId)).toEqual([
      'intent.created CREATED',
      'subscription.created CREATED',
    ]);
    expect(await repairsOf(env)).toEqual({});
  });

  test('after its commit leaves the workflow’s start to the sweep, and the repeat gets the stored answer [D-17]', async ({
    env,
    payments,
  }) => {
    const request = createRequest('after-commit');
    await crashAt('after_commit', request);
    const { text, isReplayed } = await answerOf(request);
    expect(isReplayed).toBe(true);
    const subscriptionId = String((JSON.parse(text) as Record<string, unknown>)['subscriptionId']);
    expect(await created(env, 'after-commit')).toEqual([
      { id: subscriptionId, workflowStartedAt: null },
    ]);

    await env.db
      .update(subscriptions)
      .set({ insertedAt: sql`now() - interval '11 seconds'` })
      .where(eq(subscriptions.id, subscriptionId));
    expect(await repairsOf(env)).toEqual({ neverStarted: 1 });
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    expect(await repairsOf(env)).toEqual({});
    expect(await payments.story(subscriptionId)).toEqual([
      'intent.created CREATED',
      'subscription.created CREATED',
    ]);
  });
});

describe('an API that crashes while it charges a saved card', () => {
  const chargeRequest = async (
    env: TestEnvironment,
    payments: Payments,
  ): Promise<Request & { customerId: string }> => {
    const { customerId, ...session } = await payments.setup();
    const order = { ...session, token: await payments.card() };
    const saved = await untilAccepted(() => env.orders.execute('setupMethod', order));
    if (saved.kind !== 'saved') throw new Error(`the card was not saved: ${saved.kind}`);
    const body = { customerId, pmId: saved.paymentMethodId, currency: 'USD', amount: 2_500 };
    return { path: '/payments/charge-tokenised-pm', body, key: randomUUID(), customerId };
  };
  const intentsOf = async (env: TestEnvironment, { customerId }: { customerId: string }) =>
    env.db
      .select({ intentId: paymentIntents.id, status: paymentIntents.status })
      .from(paymentIntents)
      .where(eq(paymentIntents.customerId, customerId));

  /** Expects one intent, one attempt, one charge and one set of events, also after a sweep. */
  async function expectChargedOnce(
    env: TestEnvironment,
    payments: Payments,
    request: Request & { customerId: string },
    text: string,
  ) {
    const { intentId } = JSON.parse(text) as { intentId: string };
    expect(JSON.parse(text)).toEqual({ intentId, status: 'SUCCESS' });
    expect(await repairsOf(env)).toEqual({});
    expect(await intentsOf(env, request)).toEqual([{ intentId, status: 'SUCCESS' }]);
    const ref = { merchantId: env.merchantId, intentId };
    expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
    expect(await payments.book(ref)).toEqual(['succeeded 2500 x1']);
    expect(await payments.story(intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
    ]);
  }

  test.for([
    ['after_claim', 'no intent', []],
    ['before_hand_over', 'an unpaid intent', ['CREATED']],
    ['before_answer_stored', 'a paid intent', ['SUCCESS']],
  ] as const)(
    'at %s leaves %s and the key in use; after the lease has expired, the repeat charges once [D-17, D-40]',
    async ([point, , left], { env, payments }) => {
      const request = await chargeRequest(env, payments);
      await crashAt(point, request);
      expect((await intentsOf(env, request)).map(({ status }) => status)).toEqual(left);
      expect(await stateOfKey(env, request)).toBe('IN_FLIGHT');
      await expireLease(env, request);
      const { text, isReplayed } = await answerOf(request);
      expect(isReplayed).toBe(false);
      await expectChargedOnce(env, payments, request, text);
    },
  );

  test('at after_answer_stored leaves the answer, which the repeat gets at once [D-17]', async ({
    env,
    payments,
  }) => {
    const request = await chargeRequest(env, payments);
    await crashAt('after_answer_stored', request);
    expect(await stateOfKey(env, request)).toBe('DONE');
    const { text, isReplayed } = await answerOf(request);
    expect(isReplayed).toBe(true);
    await expectChargedOnce(env, payments, request, text);
  });
});

describe('an API that crashes while it passes a command to the workflow', () => {
  test.for([
    ['before_hand_over', 'ACTIVE'],
    ['before_answer_stored', 'ENDED'],
  ] as const)(
    'at %s leaves the subscription %s, and the repeat cancels once [D-16, D-17]',
    async ([point, left], { env, payments }) => {
      const ref = await env.create({ createdAt: Date.now() });
      await payCheckout(env, ref);
      const { subscriptionId } = ref;
      const path = '/subscription/merchant/cancel';
      const request = { path, body: { subscriptionId }, key: randomUUID() };
      await crashAt(point, request);
      expect((await env.state(ref)).status).toBe(left);
      await expireLease(env, request);
      expect((await answerOf(request)).isReplayed).toBe(false);
      expect((await env.state(ref)).status).toBe('ENDED');
      expect(await payments.story(subscriptionId)).toEqual([
        'intent.created CREATED',
        'subscription.created CREATED',
        'intent.success SUCCESS',
        'subscription.cycle_charged ACTIVE',
        'subscription.active ACTIVE',
        'subscription.ended ENDED',
      ]);
      expect(await env.book(ref)).toHaveLength(1);
      expect(await repairsOf(env)).toEqual({});
    },
  );
});

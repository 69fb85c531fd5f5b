import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { submitCard } from '../../temporal/cards.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { unpaidIn } from '../support/unpaid.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import { CURRENCIES } from '../../domain/currencies.ts';
import { applyCancel, applyEdit } from '../../domain/subscription/apply-command.ts';
import { eventStreams } from '../../db/schema/webhooks.ts';
import { SESSION } from '../support/card-tokens.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';

const handleOf = (env: TestEnvironment, ref: SubscriptionRef) =>
  env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));

const eventTypes = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.events(ref)).map((event) => event['eventType']);

describe('concurrent manual retries', () => {
  test('make one attempt and do not charge the next cycle when one workflow task validates both [D-31, D-32]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const retry = () => env.execute(ref, command('manualRetry'));
    // Both retries wait at the server, so one workflow task validates both before it executes one.
    await env.stopWorkers();
    const sent = [retry(), retry()];
    await env.startWorkers();
    const answers = await Promise.all(sent);
    const kinds = answers.map((answer) => answer.kind).toSorted();
    expect(kinds).toEqual(['refused', 'result']);
    expect(answers.find((answer) => answer.kind === 'refused')).toMatchObject({
      code: expect.stringMatching(/^(operation_not_allowed|payment_outcome_pending)$/) as string,
    });
    expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  });
});

describe('a command', () => {
  test('is executed once when two calls send it before one task executes it, and both get its result [D-17, D-32]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const edit = command('edit', { newAmountMinor: 2_500 });
    const retry = command('manualRetry');
    const earlier = await eventTypes(env, ref);
    await env.stopWorkers();
    const sent = [edit, retry, edit, retry].map((each) => env.execute(ref, each));
    await env.startWorkers();
    const done = { kind: 'result', result: { kind: 'done' } };
    const [edited, retried, editedAgain, retriedAgain] = await Promise.all(sent);
    expect([edited, editedAgain]).toEqual([done, done]);
    expect(retried).toMatchObject({ kind: 'result', result: { success: true } });
    expect(retriedAgain).toEqual(retried);
    expect((await env.book(ref)).map((charge) => [charge.outcome, charge.sentCount])).toEqual([
      ['succeeded', 1],
      ['declined', 1],
      ['succeeded', 1],
    ]);
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    // The server may deliver the edit before or after the retry.
    expect((await eventTypes(env, ref)).slice(earlier.length).map(String).toSorted()).toEqual([
      'intent.success',
      'subscription.active',
      'subscription.cycle_charged',
      'subscription.edited',
    ]);
  });

  test('is recorded once when a run records it again at a later version [D-32]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const commandId = `edit:${randomUUID()}`;
    const nowAt = Date.now();
    const record = async () => {
      const edit = { kind: 'edit', commandId, newAmountMinor: 2_500 } as const;
      const change = applyEdit(await env.state(ref), edit, nowAt);
      const command = { commandId, kind: 'edit', result: { kind: 'done' } } as const;
      return writeChange(env.db, { change, transitionId: commandId, command, nowAt });
    };
    expect(await record()).toEqual({ kind: 'recorded' });
    const state = await env.state(ref);
    expect(await record()).toEqual({ kind: 'repeated', state, result: { kind: 'done' } });
    expect(await env.state(ref)).toEqual(state);
  });

  test('is not recorded when its events cannot be stored [D-50]', async ({ env }) => {
    const ref = await env.createRowOnly({ createdAt: Date.now() });
    const before = await env.state(ref);
    const commandId = `cancel:${randomUUID()}`;
    const nowAt = Date.now();
    const cancel = { kind: 'cancel', commandId, reason: 'checkout_cancelled' } as const;
    const record = () =>
      writeChange(env.db, {
        change: applyCancel(before, cancel, nowAt),
        transitionId: commandId,
        command: { commandId, kind: 'cancel', result: { kind: 'done' } },
        nowAt,
      });
    const moveCounter = (by: number) =>
      env.db
        .update(eventStreams)
        .set({ lastSequence: sql`${eventStreams.lastSequence} + ${by}` })
        .where(eq(eventStreams.id, ref.subscriptionId));
    // The counter gives a number that an event already has, which a unique index refuses.
    await moveCounter(-1);
    await expect(record()).rejects.toThrow('insert into outbox_event');
    expect(await env.state(ref)).toEqual(before);
    await moveCounter(1);
    expect(await eventTypes(env, ref)).toEqual(['intent.created', 'subscription.created']);
    expect(await record()).toEqual({ kind: 'recorded' });
    expect(await eventTypes(env, ref)).toEqual([
      'intent.created',
      'subscription.created',
      'subscription.ended',
    ]);
  });

  test('waits for a charge in flight and does not change it [D-15]', async ({ env }) => {
    const { ref } = await unpaidIn(env);
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 60_000,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    const retried = env.execute(ref, command('manualRetry'));
    await expect.poll(async () => (await env.state(ref)).openAttempt).not.toBeNull();
    const edited = env.execute(ref, command('edit', { newAmountMinor: 9_900 }));
    // The gateway holds the charge until its faults are removed.
    await env.control('DELETE', '/control/faults');
    expect(await edited).toEqual({ kind: 'result', result: { kind: 'done' } });
    expect(await retried).toMatchObject({ result: { success: true } });
    expect((await env.book(ref)).at(-1)?.amountMinor).toBe(1_999);
    expect((await env.state(ref)).terms.amountMinor).toBe(9_900);
  });

  test('is executed with an amount below the currency table’s minimum when the command’s currency row allows it [D-03]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const currencyRow = { ...CURRENCIES.get('USD')!, minimum: 10 };
    const edit = (fields: object) =>
      env.execute(ref, command('edit', { newAmountMinor: 50, ...fields }));
    expect(await edit({})).toMatchObject({ kind: 'refused', code: 'bad_request' });
    expect(await edit({ currencyRow })).toEqual({ kind: 'result', result: { kind: 'done' } });
    expect((await env.state(ref)).terms.amountMinor).toBe(50);
  });

  test('is executed also when it is the last of twelve in quick succession', async ({ env }) => {
    const { ref } = await unpaidIn(env);
    // The run may continue as new meanwhile. The server delays this if the run is younger than 1 s.
    for (let amount = 201; amount <= 212; amount += 1) {
      const answer = await env.execute(ref, command('edit', { newAmountMinor: amount }));
      expect(answer.kind).toBe('result');
    }
    expect((await env.state(ref)).terms.amountMinor).toBe(212);
  });
});

describe('twelve cards at one moment', () => {
  test('are submitted one after the other while the first charge takes 10 s, and none fails [D-33, D-32]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const tokens = await Promise.all(Array.from({ length: 12 }, () => env.token()));
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 10_000,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    const page = { ...ref, sessionId: SESSION, subjectId: ref.subscriptionId };
    // Temporal accepts ten updates of one run at a time.
    const outcomes = await Promise.all(
      tokens.map((token) => submitCard(env, { ...page, purpose: 'update_method' }, token)),
    );
    expect(outcomes).toHaveLength(12);
    for (const { kind } of outcomes) expect(['decided', 'pending', 'waiting']).toContain(kind);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ACTIVE');
    expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
  });
});

describe('a subscription workflow', () => {
  test('ends as cancelled when its cancel signal has an argument', async ({ env }) => {
    const { ref } = await unpaidIn(env);
    const handle = handleOf(env, ref);
    await handle.signal('cancel', { reason: 'checkout_cancelled' });
    await handle.result();
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect((await eventTypes(env, ref)).at(-1)).toBe('subscription.ended');
  });

  test('charges once when it is terminated in the middle of a charge [D-32]', async ({ env }) => {
    const { ref } = await unpaidIn(env);
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 60_000,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    const retry = command('manualRetry');
    const answer = env.workflows.execute(ref, retry).catch((error: unknown) => error);
    await expect.poll(async () => (await env.state(ref)).openAttempt).not.toBeNull();
    await handleOf(env, ref).terminate('terminated by an operator');
    await env.control('DELETE', '/control/faults');
    await answer;
    await env.workflows.ensureRunning(ref);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ACTIVE');
    expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
    expect(await env.execute(ref, retry)).toMatchObject({
      kind: 'result',
      result: { success: true, status: 'ACTIVE' },
    });
    expect((await eventTypes(env, ref)).slice(-3)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
  });
});

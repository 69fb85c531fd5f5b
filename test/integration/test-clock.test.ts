import { describe, expect } from 'vitest';
import { loadSnapshot } from '../../db/repositories/subscriptions/row.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import { unpaidIn } from '../support/unpaid.ts';

const day = (at: unknown) => new Date(Number(at)).toISOString().slice(0, 10);

describe('a test clock', () => {
  test('charges each cycle only when the clock reaches its due date [D-60]', async ({ env }) => {
    const { ref, clock } = await paidOnClock(env, '2027-03-31T00:00:00Z', { cycleCount: 90 });
    const paid = async () => (await env.state(ref)).cyclesCharged;
    expect(await paid()).toBe(1);
    await env.advance(clock, '2027-04-29T23:59:59.999Z');
    expect(await paid()).toBe(1);
    await env.advance(clock, '2027-04-30T00:00:00Z');
    expect(await paid()).toBe(2);
    await env.advance(clock, '2034-08-31T00:00:00Z');
    expect(await paid()).toBe(90);
    expect((await env.state(ref)).status).toBe('ENDED');
    expect(await env.book(ref)).toHaveLength(90);
  });

  test('is READY when a run continues as new exactly at the clock’s target [D-60]', async ({
    env,
  }) => {
    const { ref, clock, createdAt } = await paidOnClock(env, '2027-01-01T00:00:00Z', {
      cycleCount: 600,
      interval: 'DAY',
    });
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    const runId = async () => (await handle.describe()).runId;
    const first = await runId();
    const renewUntil = async (days: number) => {
      await env.advance(clock, createdAt + days * 86_400_000);
      expect((await env.state(ref)).cyclesCharged).toBe(days + 1);
    };
    // Nearly as many renewals as a run has room for; then each target is a due date.
    let days = 300;
    await renewUntil(days);
    expect(await runId()).toBe(first);
    while ((await runId()) === first && days < 400) {
      days += 1;
      await renewUntil(days);
    }
    expect(await runId()).not.toBe(first);
    await renewUntil(days + 1);
    expect(await env.book(ref)).toHaveLength(days + 2);
  });

  test('executes a command after the advance that came before it when a worker gets both at once [D-31, D-60]', async ({
    env,
  }) => {
    const { ref, clock } = await unpaidIn(env, 'stolen_card');
    const retry = (commandId: string) => env.execute(ref, { kind: 'manualRetry', commandId });
    const { subscriptionId } = ref;
    await env.control('POST', '/control/declines', {
      subscriptionId,
      code: 'stolen_card',
      count: 1,
    });
    const cooldownEndAt = Date.parse('2027-02-10T04:00:00Z');
    expect(await retry('retry_1')).toEqual({
      kind: 'result',
      result: {
        kind: 'manualRetry',
        success: false,
        status: 'UNPAID',
        errorCode: 'stolen_card',
        minManualRetryAt: cooldownEndAt,
      },
    });
    const before = await env.events(ref);

    await env.stopWorkers();
    await env.sendClock(clock, cooldownEndAt);
    const second = retry('retry_2');
    await env.startWorkers();
    expect(await second).toEqual({
      kind: 'result',
      result: {
        kind: 'manualRetry',
        success: true,
        status: 'ACTIVE',
        errorCode: null,
        minManualRetryAt: Date.parse('2027-02-10T08:00:00Z'),
      },
    });
    const all = await env.events(ref);
    expect(
      all.slice(before.length).map((event) => [event['eventType'], event['eventTime']]),
    ).toEqual([
      ['intent.success', cooldownEndAt],
      ['subscription.cycle_charged', cooldownEndAt],
      ['subscription.active', cooldownEndAt],
    ]);
    await env.advance(clock, '2027-03-09T00:00:00Z');
    expect(await env.events(ref)).toHaveLength(all.length);
    expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual([
      'succeeded',
      'declined',
      'declined',
      'succeeded',
    ]);
  });

  test('continues from the time that the subscription had reached when its workflow was terminated [D-60]', async ({
    env,
  }) => {
    const { ref, clock } = await unpaidIn(env);
    const { subscriptionId } = ref;
    for (const operation of ['charge', 'lookup']) {
      const match = operation === 'charge' ? { subscriptionId } : {};
      const fault = { operation, fault: 'error_500', count: 1_000, match };
      await env.control('POST', '/control/faults', fault);
    }
    await env.sendClock(clock, Date.parse('2027-12-31T00:00:00Z'));
    await expect.poll(async () => (await env.state(ref)).openAttempt).not.toBeNull();
    expect((await loadSnapshot(env.db, ref))?.clock).toEqual({
      nowAt: Date.parse('2027-02-10T04:00:00Z'),
      targetAt: Date.parse('2027-12-31T00:00:00Z'),
      reachedAt: Date.parse('2027-02-10T00:00:00Z'),
    });
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
    await handle.terminate('terminated by an operator');
    await env.control('DELETE', '/control/faults');
    expect(await env.workflows.ensureRunning(ref)).toBe(true);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect((await env.book(ref)).map(({ outcome }) => outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
      'succeeded',
    ]);
    const charged = (await env.events(ref)).filter(
      (event) => event['eventType'] === 'subscription.cycle_charged',
    );
    expect(charged.map((event) => day(event['eventTime']))).toEqual([
      '2027-01-10',
      '2027-02-10',
      '2027-03-10',
    ]);
  });
});

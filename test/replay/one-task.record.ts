import { describe, expect, vi } from 'vitest';
import { onDevServer } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/lives.ts';
import {
  begin,
  decline,
  keepSubscription,
  pay,
  recorderOn,
  send,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/** Paths with local activities first, in which a run continues after a renewal. */

const record = recorderOn(onDevServer());

describe('record', () => {
  record('second-shape-to-end', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 4 });
    await pay(world, ref);
    await world.advance(clock, '2027-04-01T00:00:00Z');
    await world.advance(clock, '2027-06-01T00:00:00Z');
    expect(await keepSubscription(world, 'second-shape-to-end', ref)).toBe(1);
  });

  record('second-shape-asleep', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    await pay(world, ref);
    await send(world, ref, { kind: 'edit', newAmountMinor: 2_500 });
    expect(await keepSubscription(world, 'second-shape-asleep', ref)).toBe(1);
  });

  record('second-shape-trial', async ({ world }) => {
    const { clock, ref } = await begin(world, {
      cycleCount: 2,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(world, ref);
    await world.advance(clock, '2027-02-10T00:00:00Z');
    expect(await keepSubscription(world, 'second-shape-trial', ref)).toBe(1);
  });

  record('second-shape-dunning', async ({ world }) => {
    const { clock, ref } = await unpaid(world);
    await decline(world, ref, 2);
    await send(world, ref, { kind: 'manualRetry' });
    await world.advance(clock, '2027-02-28T05:00:00Z');
    await world.workflows.execute(ref, newMethodCommand(await world.token()));
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(world, 'second-shape-dunning', ref)).toBe(1);
  });

  record('second-shape-commands', async ({ world }) => {
    const { clock, ref } = await unpaid(world);
    await send(world, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(world, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(world, ref, { kind: 'unpause', newNextPaymentAt });
    await world.advance(clock, '2027-04-16T00:00:00Z');
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepSubscription(world, 'second-shape-commands', ref)).toBe(1);
  });

  record('second-shape-over-budget', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 3 });
    await pay(world, ref);
    await world.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 3_500,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(world, 'second-shape-over-budget', ref)).toBe(1);
  });

  record('second-shape-continued', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 3 });
    await pay(world, ref);
    const workflow = workflowOf(world, ref);
    const { runId } = await workflow.describe();
    await lengthenHistory(workflow, START, 120);
    await world.advance(clock, '2027-03-01T00:00:00Z');
    await vi.waitFor(async () => expect((await workflow.describe()).runId).not.toBe(runId), 10_000);
    await world.advance(clock, '2027-05-01T00:00:00Z');
    expect(await keepSubscription(world, 'second-shape-continued', ref)).toBeGreaterThan(1);
  });
});

import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { writeChange } from '../../db/repositories/subscriptions/write-change.ts';
import { actionForCommand } from '../../domain/subscription/actions.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import type { TestEnvironment } from './test-environment.ts';

/** A command without the id, which the test makes. */
export type Order = Command extends infer C
  ? C extends Command
    ? Omit<C, 'commandId'>
    : never
  : never;

/**
 * Records a command in the row, as the run does before its workflow task is lost with the Temporal server. The run then
 * does not know the row's new version.
 */
export async function recordAndLose(
  env: TestEnvironment,
  ref: SubscriptionRef,
  order: Order,
  at: number,
) {
  const command = { ...order, commandId: randomUUID() } as Command;
  const state = await env.state(ref);
  const { change } = actionForCommand(state, command, { now: at, realNow: Date.now() }, null);
  const { commandId, kind } = command;
  expect(
    await writeChange(env.db, {
      change,
      transitionId: commandId,
      command: { commandId, kind, result: { kind: 'done' } },
      nowAt: at,
    }),
  ).toEqual({ kind: 'recorded' });
  const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  expect((await handle.query(stateQuery)).version).toBe(change.state.version - 1);
}

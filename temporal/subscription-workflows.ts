import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { DomainError, isErrorCode } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import { UnreadableStateError } from '../domain/subscription/recorded-state.ts';
import { validateCommand } from '../domain/subscription/validate-command.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../workflows/subscription/messages.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { acceptedUpdate } from './accepted-update.ts';
import { ANSWER_WITHIN_MS, isNotReady } from './client.ts';
import { isOver, TemporalSubscriptionRuns } from './subscription-runs.ts';
import type { RunDeps, RunRows, SubscriptionRuns } from './subscription-runs.ts';
import type { Snapshot } from './subscription-start.ts';

export interface SubscriptionRows extends RunRows {
  /** Returns a recorded command; null if there is none. `result` is null until the outcome is known. */
  findCommand(
    ref: SubscriptionRef,
    commandId: string,
  ): Promise<{ result: CommandResult | null } | null>;
}

export type CommandAnswer =
  | { kind: 'result'; result: CommandResult }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /**
   * The command was accepted and has no outcome after 25 s, or after 3 s if this call is a repeat. A later repeat with
   * the same `commandId` returns the outcome.
   */
  | { kind: 'pending' };

/** Subscription workflows for the API and the maintenance sweeps. */
export interface SubscriptionWorkflows extends SubscriptionRuns {
  /**
   * Executes a command once per `commandId`; a repeat returns the first result.
   * @throws DomainError `service_unavailable` after 4.5 s, or 12 s more if workers poll; a repeat returns its
   * outcome.
   */
  execute(subscription: SubscriptionRef, command: Command): Promise<CommandAnswer>;
}

/**
 * Time in ms for which a repeat waits for the first call's outcome. Most outcomes come from a local activity, which
 * ends within this time.
 */
const UNDER_WAY_MS = 3_000;
const UNDER_WAY_POLL_MS = 100;

export function createSubscriptionWorkflows(
  deps: RunDeps<SubscriptionRows>,
): SubscriptionWorkflows {
  return new TemporalSubscriptionWorkflows(deps);
}

class TemporalSubscriptionWorkflows
  extends TemporalSubscriptionRuns<SubscriptionRows>
  implements SubscriptionWorkflows
{
  async execute(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const before = await this.knownAnswer(ref, command.commandId);
    if (before?.kind === 'pending') return this.answerUnderWay(ref, command.commandId);
    if (before) return before;
    try {
      return await this.sendUpdate(ref, command);
    } catch (error) {
      // This call or an earlier one may have executed the command despite the error.
      const known = await this.knownAnswer(ref, command.commandId);
      if (known) return known;
      const isReplaced = await this.replaceAfter(ref, error);
      if (isReplaced || error instanceof WorkflowNotFoundError) {
        return this.retryOnNewRun(ref, command);
      }
      return (await this.answerAfterEnd(ref, command, error)) ?? answerOf(error);
    }
  }

  private async sendUpdate(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const { kind, ...input } = command;
    const startedAt = performance.now();
    failpoint('before_hand_over');
    const workflowId = subscriptionWorkflowId(ref.subscriptionId);
    const update = await acceptedUpdate<CommandResult>(this.client, this.taskQueuePrefix, {
      workflowId,
      name: kind,
      updateId: command.commandId,
      input,
    });
    try {
      const remainingMs = ANSWER_WITHIN_MS - (performance.now() - startedAt);
      const result = await this.client.withDeadline(Date.now() + remainingMs, () =>
        update.result(),
      );
      return { kind: 'result', result };
    } catch (error) {
      if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'pending' };
      throw error;
    }
  }

  /**
   * Replaces the run if Temporal refused a call because it is stuck: with nothing due, no sweep would, and it would
   * refuse every command. Never throws.
   */
  private async replaceAfter(ref: SubscriptionRef, error: unknown): Promise<boolean> {
    if (!isNotReady(error)) return false;
    try {
      return await this.replaceIfStuck(ref);
    } catch (err) {
      this.logger.warn({ ...ref, err }, 'cannot replace a run that refuses calls');
      return false;
    }
  }

  private async retryOnNewRun(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    try {
      if (await this.startFromRow(ref)) return await this.sendUpdate(ref, command);
    } catch (error) {
      return (await this.knownAnswer(ref, command.commandId)) ?? answerOf(error);
    }
    const refusal = refusalAfterEnd(await this.rows.loadSnapshot(ref), command);
    if (refusal === null) throw new DomainError('service_unavailable');
    return refusal;
  }

  /**
   * Returns the refusal of a command if the subscription is over and the run asked to repeat it; else null. Temporal
   * stores that answer in the completed run, so every repeat would get it.
   */
  private async answerAfterEnd(
    ref: SubscriptionRef,
    command: Command,
    error: unknown,
  ): Promise<CommandAnswer | null> {
    const code = refusalOf(error)?.code;
    if (code !== 'payment_outcome_pending' && code !== 'service_unavailable') return null;
    const snapshot = await this.rows.loadSnapshot(ref).catch((cause: unknown) => {
      // The row cannot be read, so the run's own answer stays.
      if (cause instanceof UnreadableStateError) return null;
      throw cause;
    });
    return snapshot && isOver(snapshot) ? refusalAfterEnd(snapshot, command) : null;
  }

  /**
   * Waits at most 3 s for the result of a command that another call executes. After that, returns `pending`.
   */
  private async answerUnderWay(ref: SubscriptionRef, commandId: string): Promise<CommandAnswer> {
    const waitUntil = performance.now() + UNDER_WAY_MS;
    let answer = await this.knownAnswer(ref, commandId);
    while (answer?.kind === 'pending' && performance.now() < waitUntil) {
      await sleep(UNDER_WAY_POLL_MS);
      answer = await this.knownAnswer(ref, commandId);
    }
    return answer ?? { kind: 'pending' };
  }

  private async knownAnswer(
    ref: SubscriptionRef,
    commandId: string,
  ): Promise<CommandAnswer | null> {
    const known = await this.rows.findCommand(ref, commandId);
    if (!known) return null;
    return known.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
  }
}

/** Returns the refusal of a command to a subscription that is over; null if the subscription accepts the command. */
function refusalAfterEnd(snapshot: Snapshot | null, command: Command): CommandAnswer | null {
  const decision = snapshot && validateCommand(snapshot.state, command, snapshot.state.createdAt);
  if (!decision || decision.ok) return null;
  return { kind: 'refused', code: decision.code, message: decision.message };
}

/** Returns the code and reason with which a workflow refused an update; null for any other error. */
function refusalOf(error: unknown): { code: ErrorCode; message: string } | null {
  if (!(error instanceof WorkflowUpdateFailedError)) return null;
  if (!(error.cause instanceof ApplicationFailure)) return null;
  const { type: code, message } = error.cause;
  return isErrorCode(code) ? { code, message } : null;
}

/** Returns the workflow's refusal. If the outcome is unknown, throws `service_unavailable`. */
function answerOf(error: unknown): CommandAnswer {
  const refusal = refusalOf(error);
  if (refusal && refusal.code !== 'service_unavailable') return { kind: 'refused', ...refusal };
  const isTransport =
    error instanceof WorkflowUpdateFailedError ||
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError ||
    error instanceof WorkflowNotFoundError ||
    error instanceof ServiceError;
  if (!isTransport) throw error;
  throw new DomainError('service_unavailable', undefined, { cause: error });
}

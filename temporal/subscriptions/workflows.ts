import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  WorkflowUpdateStage,
} from '@temporalio/client';
import type { Client, WorkflowUpdateHandle } from '@temporalio/client';
import { isInstant } from '../../domain/calendar.ts';
import { DomainError, isErrorCode } from '../../domain/errors.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { WORKFLOW_QUEUE } from '../../workflows/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { outsideRequest } from '../../runtime/request-scope.ts';
import {
  ACCEPT_QUEUED_WITHIN_MS,
  ACCEPT_WITHIN_MS,
  ANSWER_WITHIN_MS,
  isNotReady,
  isNotTaken,
  isQueueMoving,
} from '../client.ts';
import { SubscriptionRuns } from './runs.ts';
import type { SubscriptionRunsDeps } from './runs.ts';
import type { Snapshot } from '../../domain/subscription/snapshot.ts';

export type CommandAnswer =
  | { kind: 'result'; result: CommandResult }
  | ({ kind: 'refused' } & RefusalReason)
  /** Accepted, without outcome after 25 s, or 3 s for a repeat. A later repeat returns it. */
  | { kind: 'pending' };

/** Time in ms for which a repeat waits. Most outcomes come within the 3 s of a local activity. */
const UNDER_WAY_MS = 3_000;
const UNDER_WAY_POLL_MS = 200;
/** Time in ms after which a command that no worker has taken overtakes the renewals: longer than most gateways take. */
const HURRIED_AFTER_MS = 3_000;
/** Time in ms after which an update is sent again to a run that did not take it. */
const TAKE_POLL_MS = 500;
/** No repeat begins later, so that its 16.5 s end before the deadline of the request, 32 s. */
const TAKE_WITHIN_MS = 15_000;

/** The public methods, which tests replace. */
export type SubscriptionWorkflows = Pick<
  TemporalSubscriptionWorkflows,
  keyof TemporalSubscriptionWorkflows
>;

export function createSubscriptionWorkflows(deps: SubscriptionRunsDeps): SubscriptionWorkflows {
  return new TemporalSubscriptionWorkflows(deps);
}

class TemporalSubscriptionWorkflows extends SubscriptionRuns {
  /**
   * Executes a command once per `commandId`; a repeat returns the first result. Throws `service_unavailable` if no worker
   * accepts the command in time ({@link acceptedUpdate}). The command may still be executed; a repeat returns its outcome.
   */
  async execute(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const { commandId } = command;
    const startedAt = performance.now();
    const answerBy = startedAt + ANSWER_WITHIN_MS;
    const before = await this.knownAnswer(ref, commandId);
    if (before?.kind === 'pending') {
      return this.answerUnderWay(ref, commandId, startedAt + UNDER_WAY_MS);
    }
    if (before) return before;
    try {
      const answer = await this.sendUpdate(ref, command);
      if (answer.kind !== 'result' || answer.result.kind !== 'checkout') return answer;
      // A second submission of a saved card is declined if the payer has entered a later card.
      const isDeclined = answer.result.outcome === 'declined';
      return (isDeclined && (await this.knownAnswer(ref, commandId))) || answer;
    } catch (error) {
      // This call or an earlier one may have executed the command despite the error.
      const known = await this.answerAfterError(ref, command, answerBy);
      if (known) return known;
      const isReplaced = await this.replaceAfter(ref, error);
      if (isReplaced || error instanceof WorkflowNotFoundError) {
        return this.retryOnNewRun(ref, command, answerBy);
      }
      return answerOf(error);
    }
  }

  /** Sends the update again for up to 15 s while the run does not take it ({@link isNotTaken}). */
  private async sendUpdate(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const startedAt = performance.now();
    failpoint('before_hand_over');
    for (;;) {
      try {
        return await this.sendOnce(ref, command, startedAt);
      } catch (error) {
        const isLate = performance.now() - startedAt > TAKE_WITHIN_MS;
        if (isLate || !isNotTaken(error)) throw error;
        await sleep(TAKE_POLL_MS);
      }
    }
  }

  private async sendOnce(
    ref: SubscriptionRef,
    { kind, ...input }: Command,
    startedAt: number,
  ): Promise<CommandAnswer> {
    const workflowId = subscriptionWorkflowId(ref.subscriptionId);
    const call = { workflowId, name: kind, input };
    const update = await this.hurried(ref, () =>
      acceptedUpdate<CommandResult>(this.client, this.taskQueuePrefix, call),
    );
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

  /** Gives the run a payer's priority while `work` takes longer than a gateway does. */
  private async hurried<Result>(
    ref: SubscriptionRef,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const done = new AbortController();
    const begun = sleep(HURRIED_AFTER_MS, true, { signal: done.signal }).catch(() => false);
    void outsideRequest(async () => {
      if (!(await begun)) return;
      await this.beginPayerPriority(ref);
      if (!done.signal.aborted) await once(done.signal, 'abort');
      await this.endPayerPriority(ref);
    });
    try {
      return await work();
    } finally {
      done.abort();
    }
  }

  /** Replaces a stuck run, for which Temporal refuses calls; true then. Never throws. */
  private async replaceAfter(ref: SubscriptionRef, error: unknown): Promise<boolean> {
    if (!isNotReady(error)) return false;
    try {
      return await this.replaceIfStuck(ref);
    } catch (err) {
      this.logger.warn({ ...ref, err }, 'cannot replace a run that refuses calls');
      return false;
    }
  }

  /** Not update-with-start, which would read and send the row's state each time: a third slower. */
  private async retryOnNewRun(
    ref: SubscriptionRef,
    command: Command,
    answerBy: number,
  ): Promise<CommandAnswer> {
    try {
      if (await this.startFromRow(ref)) return await this.sendUpdate(ref, command);
    } catch (error) {
      return (await this.answerAfterError(ref, command, answerBy)) ?? answerOf(error);
    }
    const refusal = refusalAfterEnd(await this.rows.loadSnapshot(ref), command);
    if (refusal === null) throw new DomainError('service_unavailable');
    return refusal;
  }

  /**
   * The workflow answers an unanswered charge before it looks the charge up. A merchant's call waits for the look-up, a
   * payer's page does not.
   */
  private async answerAfterError(
    ref: SubscriptionRef,
    { kind, commandId }: Command,
    answerBy: number,
  ): Promise<CommandAnswer | null> {
    const known = await this.knownAnswer(ref, commandId);
    const isAwaited = known?.kind === 'pending' && kind === 'manualRetry';
    return isAwaited ? this.answerUnderWay(ref, commandId, answerBy) : known;
  }

  /** Waits for the result of a command that was pending at the last look. */
  private async answerUnderWay(
    ref: SubscriptionRef,
    commandId: string,
    waitUntil: number,
  ): Promise<CommandAnswer> {
    let answer: CommandAnswer | null = { kind: 'pending' };
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

/**
 * Sends an update; returns its handle when a worker has accepted it, within 4.5 s, or 12 s more if workers poll.
 * @throws WorkflowUpdateRPCTimeoutOrCancelledError: it may still be executed.
 */
async function acceptedUpdate<Result>(
  client: Client,
  taskQueuePrefix: string,
  { workflowId, name, input }: { workflowId: string; name: string; input: object },
): Promise<WorkflowUpdateHandle<Result>> {
  const handle = client.workflow.getHandle(workflowId);
  // A new id for each call. To a known id a run repeats its answer, also one that asks the caller to repeat.
  const updateId = randomUUID();
  const offer = (ms: number) =>
    client.withDeadline(Date.now() + ms, () =>
      handle.startUpdate<Result, [object]>(name, {
        args: [input],
        updateId,
        waitForStage: WorkflowUpdateStage.ACCEPTED,
      }),
    );
  try {
    return await offer(ACCEPT_WITHIN_MS);
  } catch (error) {
    if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
    const queue = `${taskQueuePrefix}${WORKFLOW_QUEUE}`;
    // If Temporal does not answer, the queue counts as standing still.
    const isMoving = await isQueueMoving(client, queue).catch(() => false);
    if (!isMoving) throw error;
    return offer(ACCEPT_QUEUED_WITHIN_MS);
  }
}

/** Returns the refusal of a command to a subscription that is over; null if the subscription accepts the command. */
function refusalAfterEnd(snapshot: Snapshot | null, command: Command): CommandAnswer | null {
  const decision = snapshot && validateCommand(snapshot.state, command, snapshot.state.createdAt);
  if (!decision || decision.ok) return null;
  const { code, message } = decision;
  return { kind: 'refused', code, message };
}

/** Returns the code and reason with which a workflow refused an update; null for any other error. */
function refusalOf(error: unknown): RefusalReason | null {
  if (!(error instanceof WorkflowUpdateFailedError)) return null;
  if (!(error.cause instanceof ApplicationFailure)) return null;
  const { type: code, message, details } = error.cause;
  const [retryAt] = details ?? [];
  if (!isErrorCode(code)) return null;
  return isInstant(retryAt) ? { code, message, retryAt } : { code, message };
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

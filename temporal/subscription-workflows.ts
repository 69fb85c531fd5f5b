import { setTimeout as sleep } from 'node:timers/promises';
import {
  ApplicationFailure,
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type {
  Client,
  WorkflowExecutionDescription,
  WorkflowHandle,
  WorkflowStartOptions,
} from '@temporalio/client';
import type { QueryDefinition } from '@temporalio/common';
import { DomainError, isErrorCode } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import { validateCommand } from '../domain/subscription/validate-command.ts';
import type { LogEntry, SubscriptionRef } from '../domain/subscription/state.ts';
import type { UpcomingCharge } from '../domain/subscription/upcoming.ts';
import {
  advanceClock,
  poke,
  SUBSCRIPTION_WORKFLOW,
  subscriptionWorkflowId,
  timelineQuery,
  upcomingQuery,
} from '../workflows/subscription/messages.ts';
import { acceptedUpdate } from './accepted-update.ts';
import { closedSince } from './closed-subscriptions.ts';
import { failpoint } from '../runtime/failpoints.ts';
import type { Logger } from '../runtime/logger.ts';
import { EARLIER_MOST, startOptions } from './subscription-start.ts';
import type { Snapshot } from './subscription-start.ts';
import { terminateIfStuck } from './stuck-workflows.ts';
import {
  ACCEPT_WITHIN_MS,
  ANSWER_WITHIN_MS,
  describeWorkflow,
  hasWorkPending,
  isRunning,
} from './client.ts';

/** The rows that this module reads and writes. */
export interface SubscriptionRows {
  /** A command with its result; null if it was never carried out. */
  findCommand(
    ref: SubscriptionRef,
    commandId: string,
  ): Promise<{ result: CommandResult | null } | null>;
  /** The start state of a workflow. Null for an unknown subscription. */
  loadSnapshot(ref: SubscriptionRef): Promise<Snapshot | null>;
  /** Number of the merchant's subscriptions created before this one, at most `most`. */
  countEarlier(ref: SubscriptionRef, most: number): Promise<number>;
  /** Records that Temporal confirmed the workflow. */
  markWorkflowStarted(ref: SubscriptionRef): Promise<void>;
}

/** The answer to a command. */
export type CommandAnswer =
  | { kind: 'result'; result: CommandResult }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Accepted, but undecided after 25 s. The same command id returns the outcome later. */
  | { kind: 'pending' };

/** Subscription workflows for the API and the sweeps. */
export interface SubscriptionWorkflows {
  /**
   * Starts the workflow of a row that was just created. Resolves to false within about 1 s if Temporal
   * is unreachable; the sweep starts the workflow later. Never throws. A second start changes nothing.
   */
  start(subscription: SubscriptionRef): Promise<boolean>;
  /**
   * Ensures that a subscription that is not over has a running workflow, and makes the workflow check
   * what is due. Throws if Temporal is unreachable.
   */
  recheck(subscription: SubscriptionRef): Promise<void>;
  /**
   * Rechecks a subscription that seems late, or replaces its stuck workflow, and returns true. It does
   * nothing and returns false in two cases: a task or an activity of its workflow waits or runs, so the
   * workflow is only queued; or `isStillLate`, which is called last, returns false. Throws if Temporal is
   * unreachable.
   */
  recheckUnlessBusy(
    subscription: SubscriptionRef,
    isStillLate: () => Promise<boolean>,
  ): Promise<boolean>;
  /**
   * If its workflow tasks have failed for a minute, terminates the run and starts a new one from the row.
   * True if it did. Throws if Temporal is unreachable.
   */
  replaceIfStuck(subscription: SubscriptionRef): Promise<boolean>;
  /**
   * Carries out a command once, however often it is sent with the same `commandId`. Throws
   * `DomainError('service_unavailable')` if Temporal did not accept it within 5 s, or within 17 s while
   * workers take tasks. Then it was applied once or not at all, and sending it again shows which.
   */
  execute(subscription: SubscriptionRef, command: Command): Promise<CommandAnswer>;
  /**
   * Starts a workflow from the subscription's row if none runs and the subscription is not over. True
   * if it did. Unlike `recheck`, it does not signal a running workflow. Throws if Temporal is
   * unreachable.
   */
  ensureRunning(subscription: SubscriptionRef): Promise<boolean>;
  /**
   * Subscriptions whose workflow closed since `sinceAt` (real time) as terminated, failed, timed out or
   * cancelled. A new run may have started since. The result holds those that Temporal lists within 10
   * s, latest first. Throws if an error occurs before the first one.
   */
  closedSince(sinceAt: number): Promise<SubscriptionRef[]>;
  /** Sends the target of its test clock to a subscription. Starts the workflow if it is missing. */
  advanceClock(subscription: SubscriptionRef, targetAt: number): Promise<void>;
  /**
   * The next charges, at most `limit`, as the workflow computes them. Null if there is no workflow;
   * then the caller computes them from the row. Throws `DomainError('service_unavailable')` if the
   * workflow does not answer within 4.5 s.
   */
  upcoming(subscription: SubscriptionRef, limit: number): Promise<UpcomingCharge[] | null>;
  /** The latest log entries, oldest first. Null and errors as for `upcoming`. */
  timeline(subscription: SubscriptionRef): Promise<LogEntry[] | null>;
}

const START_WITHIN_MS = 1_000;
/** Longest time of a charge inside a workflow task. */
const UNDER_WAY_MS = 3_000;
const UNDER_WAY_POLL_MS = 100;
/** A deploy that fails tasks for a shorter time replaces no run. */
const STUCK_AFTER_MS = 60_000;

export interface SubscriptionWorkflowsDeps {
  client: Client;
  rows: SubscriptionRows;
  /** Workflows run on `<prefix>billing` and `<prefix>checkout`. */
  taskQueuePrefix: string;
  logger: Logger;
  /** How long workflow tasks have to fail before a run is replaced, ms. */
  stuckAfterMs?: number;
}

export function createSubscriptionWorkflows(
  deps: SubscriptionWorkflowsDeps,
): SubscriptionWorkflows {
  return new TemporalSubscriptionWorkflows(deps);
}

class TemporalSubscriptionWorkflows implements SubscriptionWorkflows {
  private readonly client: Client;
  private readonly rows: SubscriptionRows;
  private readonly logger: Logger;
  private readonly taskQueuePrefix: string;
  private readonly stuckAfterMs: number;

  constructor(deps: SubscriptionWorkflowsDeps) {
    const { client, rows, logger, taskQueuePrefix, stuckAfterMs = STUCK_AFTER_MS } = deps;
    this.client = client;
    this.rows = rows;
    this.logger = logger;
    this.taskQueuePrefix = taskQueuePrefix;
    this.stuckAfterMs = stuckAfterMs;
  }

  async start(ref: SubscriptionRef): Promise<boolean> {
    try {
      const snapshot = await this.rows.loadSnapshot(ref);
      if (!snapshot) return false;
      await this.startFrom(ref, snapshot, 'REJECT_DUPLICATE', START_WITHIN_MS);
      return true;
    } catch (error) {
      this.logger.warn(
        { ...ref, error: messageOf(error) },
        'workflow not started; the sweep will start it',
      );
      return false;
    }
  }

  async recheck(ref: SubscriptionRef): Promise<void> {
    await this.signalOrStart(ref, (handle) => handle.signal(poke));
    await this.rows.markWorkflowStarted(ref);
  }

  async recheckUnlessBusy(
    ref: SubscriptionRef,
    isStillLate: () => Promise<boolean>,
  ): Promise<boolean> {
    const description = await this.describe(ref);
    if (description && hasWorkPending(description)) {
      // A task that waits in a queue is at its first attempt: no history is read for it.
      const hasFailed = (description.raw.pendingWorkflowTask?.attempt ?? 0) > 1;
      return hasFailed && this.replace(ref, description);
    }
    if (!(await isStillLate())) return false;
    await this.recheck(ref);
    return true;
  }

  async replaceIfStuck(ref: SubscriptionRef): Promise<boolean> {
    const description = await this.describe(ref);
    return description !== null && this.replace(ref, description);
  }

  private describe({ subscriptionId }: SubscriptionRef) {
    return describeWorkflow(this.client, subscriptionWorkflowId(subscriptionId));
  }

  private async replace(
    ref: SubscriptionRef,
    description: WorkflowExecutionDescription,
  ): Promise<boolean> {
    if (!(await terminateIfStuck(this.client, description, this.stuckAfterMs))) return false;
    this.logger.error({ ...ref }, 'workflow tasks kept failing; the run was terminated');
    await this.startFromRow(ref);
    return true;
  }

  async ensureRunning(ref: SubscriptionRef): Promise<boolean> {
    const workflowId = subscriptionWorkflowId(ref.subscriptionId);
    return (await isRunning(this.client, workflowId)) ? false : this.startFromRow(ref);
  }

  closedSince(sinceAt: number): Promise<SubscriptionRef[]> {
    return closedSince(this.client, this.taskQueuePrefix, sinceAt);
  }

  advanceClock(ref: SubscriptionRef, targetAt: number): Promise<void> {
    return this.signalOrStart(ref, (handle) => handle.signal(advanceClock, { targetAt }));
  }

  async execute(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const before = await this.knownAnswer(ref, command.commandId);
    if (before?.kind === 'pending') return this.answerUnderWay(ref, command.commandId);
    if (before) return before;
    try {
      return await this.sendUpdate(ref, command);
    } catch (error) {
      // The command may have been applied despite the error, by this call or by an earlier one.
      const known = await this.knownAnswer(ref, command.commandId);
      if (known) return known;
      if (error instanceof WorkflowNotFoundError) return this.retryOnNewRun(ref, command);
      return answerOf(error);
    }
  }

  upcoming(ref: SubscriptionRef, limit: number): Promise<UpcomingCharge[] | null> {
    return this.query(ref, upcomingQuery, { limit });
  }

  timeline(ref: SubscriptionRef): Promise<LogEntry[] | null> {
    return this.query(ref, timelineQuery);
  }

  private async query<T, Args extends unknown[]>(
    { subscriptionId }: SubscriptionRef,
    definition: QueryDefinition<T, Args>,
    ...args: Args
  ): Promise<T | null> {
    const handle = this.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
    try {
      return await this.within(ACCEPT_WITHIN_MS, () => handle.query(definition, ...args));
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      if (!(error instanceof ServiceError)) throw error;
      throw new DomainError('service_unavailable', undefined, { cause: error });
    }
  }

  private within<T>(ms: number, call: () => Promise<T>): Promise<T> {
    return this.client.withDeadline(Date.now() + ms, call);
  }

  private async startFrom(
    ref: SubscriptionRef,
    snapshot: Snapshot,
    workflowIdReusePolicy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE',
    deadlineMs: number,
  ): Promise<void> {
    const earlier = await this.rows.countEarlier(ref, EARLIER_MOST);
    const options: WorkflowStartOptions = {
      ...startOptions(snapshot, this.taskQueuePrefix, earlier),
      workflowIdReusePolicy,
    };
    try {
      await this.within(deadlineMs, () =>
        this.client.workflow.start(SUBSCRIPTION_WORKFLOW, options),
      );
    } catch (error) {
      // The workflow ran and is closed. The sweep decides whether to start it again.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    await this.rows.markWorkflowStarted(ref);
  }

  /** Starts a missing workflow from its row. False if the subscription is over. */
  private async startFromRow(ref: SubscriptionRef): Promise<boolean> {
    const snapshot = await this.rows.loadSnapshot(ref);
    if (!snapshot || isOver(snapshot)) return false;
    this.logger.warn({ ...ref }, 'starting a missing workflow from its row');
    await this.startFrom(ref, snapshot, 'ALLOW_DUPLICATE', ACCEPT_WITHIN_MS);
    return true;
  }

  private async signalOrStart(
    ref: SubscriptionRef,
    send: (handle: WorkflowHandle) => Promise<void>,
  ): Promise<void> {
    const handle = this.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    try {
      await this.within(ACCEPT_WITHIN_MS, () => send(handle));
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      await this.startFromRow(ref);
    }
  }

  /** Sends the command, then waits for its outcome. */
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
      const result = await this.within(remainingMs, () => update.result());
      return { kind: 'result', result };
    } catch (error) {
      if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'pending' };
      throw error;
    }
  }

  private async retryOnNewRun(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    try {
      if (await this.startFromRow(ref)) return await this.sendUpdate(ref, command);
    } catch (error) {
      return (await this.knownAnswer(ref, command.commandId)) ?? answerOf(error);
    }
    // The subscription is over: the domain's rules give the refusal.
    const snapshot = await this.rows.loadSnapshot(ref);
    const decision = snapshot && validateCommand(snapshot.state, command, snapshot.state.createdAt);
    if (!decision || decision.ok) throw new DomainError('service_unavailable');
    return { kind: 'refused', code: decision.code, message: decision.message };
  }

  /** Another call is carrying out the same command. Most commands end within this short wait. */
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

/** True if the subscription is ENDED and no attempt is open. */
function isOver({ state }: Snapshot): boolean {
  return state.status === 'ENDED' && state.openAttempt === null;
}

/** A refusal is an answer. Any other error means that the outcome is unknown. */
function answerOf(error: unknown): CommandAnswer {
  if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure) {
    const { type, message } = error.cause;
    if (isErrorCode(type) && type !== 'service_unavailable') {
      return { kind: 'refused', code: type, message };
    }
  }
  const isTransport =
    error instanceof WorkflowUpdateFailedError ||
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError ||
    error instanceof WorkflowNotFoundError ||
    error instanceof ServiceError;
  if (!isTransport) throw error;
  throw new DomainError('service_unavailable', undefined, { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

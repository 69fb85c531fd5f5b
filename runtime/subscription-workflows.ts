import {
  ApplicationFailure,
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  WorkflowUpdateStage,
} from '@temporalio/client';
import type { Client, WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import type { Db } from '../db/client.ts';
import {
  findCommand,
  loadSnapshot,
  markWorkflowStarted,
} from '../db/repositories/subscriptions.ts';
import type { Snapshot, SubscriptionRef } from '../db/repositories/subscriptions.ts';
import { DomainError, isErrorCode } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';
import { judge } from '../domain/subscription/judge.ts';
import {
  advanceClock,
  attributesOf,
  poke,
  SUBSCRIPTION_WORKFLOW,
  subscriptionWorkflowId,
} from '../workflows/subscription/messages.ts';
import {
  wake,
  WEBHOOK_STREAM_WORKFLOW,
  webhookStreamWorkflowId,
} from '../workflows/webhook-stream/messages.ts';
import type { Logger } from './logger.ts';

export type { SubscriptionRef } from '../db/repositories/subscriptions.ts';

/** What became of a command that was accepted. */
export type CommandAnswer =
  | { kind: 'result'; result: CommandResult }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Accepted, and undecided after 25 s: the same command id gives the outcome later. */
  | { kind: 'pending' };

/** The way of the API and of the sweeps to subscription workflows. */
export interface SubscriptionWorkflows {
  /**
   * Starts the workflow of a row that was just created. Resolves to false, within about a second,
   * when Temporal is out of reach: the sweep starts it then. Never throws; starting twice is once.
   */
  start(subscription: SubscriptionRef): Promise<boolean>;
  /**
   * Makes sure that a subscription that is not over has a running workflow, starting one from its
   * row if need be, and has it look at what is due. Throws when Temporal is out of reach.
   */
  revive(subscription: SubscriptionRef): Promise<void>;
  /**
   * Carries out a command once, however often it is sent with the same `commandId`. Throws
   * `DomainError('service_unavailable')` when it could not be handed over within 5 s; then it was
   * applied once or not at all, and sending it again finds out.
   */
  execute(subscription: SubscriptionRef, command: Command): Promise<CommandAnswer>;
  /**
   * Starts a workflow from its row if the subscription is not over and none runs. Unlike `revive` it
   * leaves a running one alone. Throws when Temporal is out of reach.
   */
  restore(subscription: SubscriptionRef): Promise<void>;
  /**
   * Subscriptions whose workflow closed since `sinceAt` (real time) other than by its own end:
   * terminated, failed, timed out. Ones that run again are not among them.
   */
  lostSince(sinceAt: number): Promise<SubscriptionRef[]>;
  /** Tells a subscription where its clock was sent. Starts the workflow if it is missing. */
  advanceClock(subscription: SubscriptionRef, targetAt: number): Promise<void>;
  /** Asks for a stream's events to be delivered soon. Never throws: the sweep does it otherwise. */
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
}

const START_WITHIN_MS = 1_000;
const ACCEPT_WITHIN_MS = 5_000;
const ANSWER_WITHIN_MS = 25_000;

export interface SubscriptionWorkflowsDeps {
  client: Client;
  db: Db;
  /** `<prefix>billing` is where workflows run. */
  taskQueuePrefix: string;
  logger: Logger;
}

export function createSubscriptionWorkflows(
  deps: SubscriptionWorkflowsDeps,
): SubscriptionWorkflows {
  const { client, db, logger } = deps;
  const taskQueue = `${deps.taskQueuePrefix}billing`;

  const within = <T>(ms: number, call: () => Promise<T>): Promise<T> =>
    client.withDeadline(Date.now() + ms, call);

  const startFrom = async (
    ref: SubscriptionRef,
    snapshot: Snapshot,
    workflowIdReusePolicy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE',
    deadlineMs: number,
  ): Promise<void> => {
    const options: WorkflowStartOptions = {
      ...startOptions(snapshot, taskQueue),
      workflowIdReusePolicy,
    };
    try {
      await within(deadlineMs, () => client.workflow.start(SUBSCRIPTION_WORKFLOW, options));
    } catch (error) {
      // It ran and is closed: whether it should run again is the sweep's question.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    await markWorkflowStarted(db, ref);
  };

  /** A workflow that should be there and is not: from its row. False when it is over. */
  const restart = async (ref: SubscriptionRef): Promise<boolean> => {
    const snapshot = await loadSnapshot(db, ref);
    if (!snapshot || isOver(snapshot)) return false;
    logger.warn({ ...ref }, 'starting a workflow again from its row');
    await startFrom(ref, snapshot, 'ALLOW_DUPLICATE', ACCEPT_WITHIN_MS);
    return true;
  };

  const signalOrRestart = async (
    ref: SubscriptionRef,
    send: (handle: WorkflowHandle) => Promise<void>,
  ): Promise<void> => {
    const handle = client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    try {
      await within(ACCEPT_WITHIN_MS, () => send(handle));
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      await restart(ref);
    }
  };

  return {
    async start(ref) {
      try {
        const snapshot = await loadSnapshot(db, ref);
        if (!snapshot) return false;
        await startFrom(ref, snapshot, 'REJECT_DUPLICATE', START_WITHIN_MS);
        return true;
      } catch (error) {
        logger.warn({ ...ref, error: messageOf(error) }, 'workflow not started yet');
        return false;
      }
    },

    async revive(ref) {
      await signalOrRestart(ref, (handle) => handle.signal(poke));
      await markWorkflowStarted(db, ref);
    },

    async restore(ref) {
      await restart(ref);
    },

    lostSince: (sinceAt) => lostSince(client, taskQueue, sinceAt),

    async execute(ref, command) {
      const before = await knownAnswer(db, ref, command.commandId);
      if (before) return before;
      try {
        return await sendUpdate(client, within, ref, command);
      } catch (error) {
        // It may have been applied all the same, by this call or by an earlier one.
        const known = await knownAnswer(db, ref, command.commandId);
        if (known) return known;
        if (error instanceof WorkflowNotFoundError) {
          return retryOnRestarted(ref, command);
        }
        return answerOf(error);
      }
    },

    advanceClock: (ref, targetAt) =>
      signalOrRestart(ref, (handle) => handle.signal(advanceClock, { targetAt })),

    async wakeStream({ merchantId, streamId }) {
      try {
        await within(START_WITHIN_MS, () =>
          client.workflow.signalWithStart(WEBHOOK_STREAM_WORKFLOW, {
            workflowId: webhookStreamWorkflowId(streamId),
            taskQueue,
            args: [{ merchantId, streamId }],
            signal: wake,
            signalArgs: [],
            priority: { fairnessKey: merchantId },
          }),
        );
      } catch (error) {
        logger.warn({ merchantId, streamId, error: messageOf(error) }, 'stream not woken yet');
      }
    },
  };

  async function retryOnRestarted(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    try {
      if (await restart(ref)) return await sendUpdate(client, within, ref, command);
    } catch (error) {
      return (await knownAnswer(db, ref, command.commandId)) ?? answerOf(error);
    }
    // The subscription is over: its own rules give the refusal.
    const snapshot = await loadSnapshot(db, ref);
    const verdict = snapshot && judge(snapshot.state, command, snapshot.state.createdAt);
    if (!verdict || verdict.ok) throw new DomainError('service_unavailable');
    return { kind: 'refused', code: verdict.code, message: verdict.message };
  }
}

function startOptions(snapshot: Snapshot, taskQueue: string) {
  const { state, clock } = snapshot;
  return {
    workflowId: subscriptionWorkflowId(state.subscriptionId),
    taskQueue,
    args: [{ state, clock, deliver: true }],
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
    typedSearchAttributes: attributesOf(state),
    memo: { subscriptionId: state.subscriptionId, merchantId: state.merchantId },
    priority: { fairnessKey: state.merchantId },
  };
}

async function lostSince(
  client: Client,
  taskQueue: string,
  sinceAt: number,
): Promise<SubscriptionRef[]> {
  const closed = client.workflow.list({
    query: [
      `WorkflowType = '${SUBSCRIPTION_WORKFLOW}'`,
      `TaskQueue = '${taskQueue}'`,
      `ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut', 'Canceled')`,
      `CloseTime > '${new Date(sinceAt).toISOString()}'`,
    ].join(' AND '),
  });
  const lost: SubscriptionRef[] = [];
  for await (const { workflowId, memo } of closed) {
    const { merchantId, subscriptionId } = memo ?? {};
    if (typeof merchantId !== 'string' || typeof subscriptionId !== 'string') continue;
    const latest = await client.workflow.getHandle(workflowId).describe();
    if (latest.status.name !== 'RUNNING') lost.push({ merchantId, subscriptionId });
  }
  return lost;
}

/** Ended, and nothing sent whose outcome is open. */
function isOver({ state }: Snapshot): boolean {
  return state.status === 'ENDED' && state.openAttempt === null;
}

type Within = <T>(ms: number, call: () => Promise<T>) => Promise<T>;

/** Hands the command over, then waits for its outcome. */
async function sendUpdate(
  client: Client,
  within: Within,
  ref: SubscriptionRef,
  command: Command,
): Promise<CommandAnswer> {
  const { kind, ...input } = command;
  const startedAt = performance.now();
  const handle = client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  const update = await within(ACCEPT_WITHIN_MS, () =>
    handle.startUpdate<CommandResult, [object]>(kind, {
      args: [input],
      updateId: command.commandId,
      waitForStage: WorkflowUpdateStage.ACCEPTED,
    }),
  );
  try {
    const remainingMs = ANSWER_WITHIN_MS - (performance.now() - startedAt);
    return { kind: 'result', result: await within(remainingMs, () => update.result()) };
  } catch (error) {
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return { kind: 'pending' };
    throw error;
  }
}

async function knownAnswer(
  db: Db,
  ref: SubscriptionRef,
  commandId: string,
): Promise<CommandAnswer | null> {
  const known = await findCommand(db, ref, commandId);
  if (!known) return null;
  return known.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
}

/** A refusal is an answer; everything else means that nobody knows yet. */
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

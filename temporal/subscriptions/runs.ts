import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import proto from '@temporalio/proto';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import type {
  Client,
  WorkflowExecutionDescription,
  WorkflowHandle,
  WorkflowStartOptions,
} from '@temporalio/client';
import { DomainError } from '../../domain/errors.ts';
import { UnreadableStateError } from '../../domain/subscription/recorded-state.ts';
import type { CommandResult } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import {
  advanceClock,
  listedSubscription,
  recheck,
  SUBSCRIPTION_WORKFLOW,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import { PAYER_PRIORITY, WORKFLOW_QUEUE } from '../../workflows/messages.ts';
import type { Logger } from '../../runtime/logger.ts';
import {
  ACCEPT_WITHIN_MS,
  accepted,
  describeWorkflow,
  hasWorkPending,
  orWarn,
  setPriority,
} from '../client.ts';
import type { TemporalDeps } from '../client.ts';
import { STUCK_AFTER_MS, terminateIfStuck } from '../stuck-workflows.ts';
import type { StuckOptions } from '../stuck-workflows.ts';
import { EARLIER_MOST, priorityOf, startOptions } from './start.ts';
import type { Snapshot } from '../../domain/subscription/snapshot.ts';

export interface SubscriptionRows {
  /**
   * Returns the records with which a workflow starts; null for an unknown subscription. Counts the merchant's earlier
   * subscriptions up to `earlierMost`; by default none.
   */
  loadSnapshot(ref: SubscriptionRef, earlierMost?: number): Promise<Snapshot | null>;
  /** Records that Temporal has confirmed the start of the workflow. */
  markWorkflowStarted(ref: SubscriptionRef): Promise<void>;
  /** Records that the workflow is newer than the row. */
  recordHold(ref: SubscriptionRef): Promise<void>;
  endHold(ref: SubscriptionRef): Promise<void>;
  /** Returns a recorded command; null if there is none. `result` is null until the outcome is known. */
  findCommand(
    ref: SubscriptionRef,
    commandId: string,
  ): Promise<{ result: CommandResult | null } | null>;
}

const { BATCH_OPERATION_STATE_RUNNING: RUNNING, BATCH_OPERATION_STATE_COMPLETED: COMPLETED } =
  proto.temporal.api.enums.v1.BatchOperationState;
const BATCH_LOOK_MS = 250;
const START_WITHIN_MS = 1_000;
/** Time limit in ms for all pages of a list together. */
const LIST_WITHIN_MS = 10_000;

/** Selects the workflows of subscriptions in Temporal's lists. */
export const subscriptionsQuery = (taskQueuePrefix: string): string =>
  `WorkflowType = '${SUBSCRIPTION_WORKFLOW}' AND TaskQueue = '${taskQueuePrefix}${WORKFLOW_QUEUE}'`;

export interface SubscriptionRunsDeps extends TemporalDeps {
  rows: SubscriptionRows;
  /** Time in ms for which tasks must fail before a run is replaced. Default: 60,000. */
  stuckAfterMs?: number;
}

/** Starts, rechecks and replaces the workflow runs of subscriptions. Throws if Temporal is unreachable. */
export class SubscriptionRuns {
  protected readonly client: Client;
  protected readonly taskQueuePrefix: string;
  protected readonly rows: SubscriptionRows;
  protected readonly logger: Logger;
  private readonly stuck: StuckOptions;
  private readonly query: string;
  /** False if the server is too old. */
  private canSetPriority = true;

  constructor(deps: SubscriptionRunsDeps) {
    const { client, rows, logger, taskQueuePrefix, stuckAfterMs = STUCK_AFTER_MS } = deps;
    this.client = client;
    this.taskQueuePrefix = taskQueuePrefix;
    this.rows = rows;
    this.logger = logger;
    this.stuck = { stuckAfterMs, logger };
    this.query = subscriptionsQuery(taskQueuePrefix);
  }

  /** Starts a new row's workflow. False after about 1 s without Temporal: the sweep starts it. */
  start(ref: SubscriptionRef): Promise<boolean> {
    return orWarn(this.logger, ref, 'workflow not started; the sweep will start it', async () => {
      const snapshot = await this.rows.loadSnapshot(ref, EARLIER_MOST);
      if (!snapshot) throw new Error('there is no such subscription');
      await this.startFrom(ref, snapshot, 'REJECT_DUPLICATE', START_WITHIN_MS);
    });
  }

  /** Lets a run go before every renewal, with the task that waits. Never throws. On Server 1.29 without effect. */
  protected beginPayerPriority(ref: SubscriptionRef): Promise<void> {
    const ofPayer = { priorityKey: PAYER_PRIORITY };
    // Temporal does not move a task that an update has made. The first change makes it an ordinary one.
    const changes = [ofPayer, { ...ofPayer, fairnessKey: ref.merchantId }];
    return this.prioritize(ref, 'a command waits behind renewals', async () => changes);
  }

  /** Gives a run for which a payer waited the priority of a renewal. Never throws. On Server 1.29 the run keeps its priority. */
  endPayerPriority(ref: SubscriptionRef): Promise<void> {
    return this.prioritize(ref, 'the run keeps the priority of a payer', async () => {
      const snapshot = await this.rows.loadSnapshot(ref, EARLIER_MOST);
      return snapshot && !isOver(snapshot) ? [priorityOf(snapshot)] : [];
    });
  }

  private async prioritize(
    ref: SubscriptionRef,
    orElse: string,
    read: () => Promise<Parameters<typeof setPriority>[2][]>,
  ): Promise<void> {
    if (!this.canSetPriority) return;
    const workflowId = subscriptionWorkflowId(ref.subscriptionId);
    await orWarn(this.logger, ref, orElse, async () => {
      for (const priority of await read()) {
        this.canSetPriority = await setPriority(this.client, workflowId, priority);
      }
    });
  }

  /**
   * Starts a workflow from the row, unless one runs, or a newer one has completed, which is recorded as held. True if it
   * started one.
   */
  async ensureRunning(ref: SubscriptionRef): Promise<boolean> {
    const status = (await this.describe(ref))?.status.name;
    if (status === 'RUNNING') return false;
    // Read after the run, which records its last state before it completes.
    const snapshot = await this.snapshotOf(ref);
    if (!snapshot || isOver(snapshot)) return false;
    if (status === 'COMPLETED') await this.rows.recordHold(ref);
    const isNewer = status === 'COMPLETED' || (status === undefined && snapshot.isHeld);
    return isNewer ? false : this.startFromRow(ref);
  }

  /** Records as held every subscription that is not over, but whose workflow has completed. */
  async holdCompleted(): Promise<void> {
    const completed = this.client.workflow.list({
      query: `${this.query} AND ExecutionStatus = 'Completed'`,
    });
    for await (const { workflowId, typedSearchAttributes } of completed) {
      const ref = listedSubscription(workflowId, typedSearchAttributes);
      const snapshot = ref && (await this.snapshotOf(ref).catch(nullIfUnreadable));
      if (ref && snapshot && !isOver(snapshot)) await this.rows.recordHold(ref);
    }
  }

  /** Makes the workflow read its row again, or starts a missing workflow. */
  async recheck(ref: SubscriptionRef): Promise<void> {
    await this.signalOrStart(ref, (handle) => handle.signal(recheck));
    await this.rows.markWorkflowStarted(ref);
  }

  /**
   * Rechecks a late subscription, or replaces its stuck run. Returns false without effect if another run is at work,
   * or if `isStillLate`, called last, returns false. Throws also for an unreadable row.
   */
  async recheckUnlessBusy(
    ref: SubscriptionRef,
    isStillLate: () => Promise<boolean>,
  ): Promise<boolean> {
    await this.snapshotOf(ref);
    const description = await this.describe(ref);
    if (description && hasWorkPending(description)) return this.replace(ref, description);
    if (!(await isStillLate())) return false;
    await this.recheck(ref);
    return true;
  }

  /** Replaces the run if its tasks have failed or timed out for a minute; true then. Throws: unreadable row. */
  async replaceIfStuck(ref: SubscriptionRef): Promise<boolean> {
    await this.snapshotOf(ref);
    const description = await this.describe(ref);
    return description !== null && this.replace(ref, description);
  }

  /**
   * Returns the subscriptions whose workflow closed since `sinceAt` without completing, latest first; after an error or
   * 10 s those found so far. Throws if none was found before the error.
   */
  async closedSince(sinceAt: number): Promise<SubscriptionRef[]> {
    const closed = this.client.workflow.list({
      query:
        `${this.query} AND ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut', 'Canceled') ` +
        `AND CloseTime > '${new Date(sinceAt).toISOString()}'`,
    });
    const found = new Map<string, SubscriptionRef>();
    const readAll = async (): Promise<void> => {
      for await (const { workflowId, typedSearchAttributes } of closed) {
        const ref = listedSubscription(workflowId, typedSearchAttributes);
        if (ref !== null) found.set(workflowId, ref);
      }
    };
    try {
      await this.client.withDeadline(Date.now() + LIST_WITHIN_MS, readAll);
    } catch (error) {
      // The subscriptions found so far can be started. The next maintenance sweep lists again.
      if (found.size === 0) throw error;
    }
    return [...found.values()];
  }

  /** The number may lag behind by some seconds. Throws if Temporal does not answer within 10 s. */
  async countRunning(): Promise<number> {
    const { count } = await this.client.withDeadline(Date.now() + LIST_WITHIN_MS, () =>
      this.client.workflow.count(`${this.query} AND ExecutionStatus = 'Running'`),
    );
    return count;
  }

  /**
   * Makes every running subscription read its row again, by one batch of Temporal. Resolves when all signals are sent;
   * the runs may still read. Throws if not all were sent.
   */
  async recheckAll(reason: string): Promise<void> {
    const { workflowService, options } = this.client;
    const job = { namespace: options.namespace, jobId: randomUUID() };
    await accepted(this.client, () =>
      workflowService.startBatchOperation({
        ...job,
        reason,
        visibilityQuery: `${this.query} AND ExecutionStatus = 'Running'`,
        signalOperation: { signal: recheck.name },
      }),
    );
    let state: proto.temporal.api.enums.v1.BatchOperationState = RUNNING;
    while (state === RUNNING) {
      await sleep(BATCH_LOOK_MS);
      ({ state } = await accepted(this.client, () => workflowService.describeBatchOperation(job)));
    }
    if (state !== COMPLETED) throw new Error('Temporal did not send the signal to every run');
  }

  /** Sends the test clock's target to the workflow, or starts a missing workflow. */
  advanceClock(ref: SubscriptionRef, targetAt: number): Promise<void> {
    return this.signalOrStart(ref, (handle) => handle.signal(advanceClock, { targetAt }));
  }

  private async snapshotOf(ref: SubscriptionRef): Promise<Snapshot | null> {
    try {
      return await this.rows.loadSnapshot(ref, EARLIER_MOST);
    } catch (error) {
      if (error instanceof UnreadableStateError) {
        this.logger.error(
          { ...ref, reason: error.message },
          'held: an operator must repair the row',
        );
      }
      throw error;
    }
  }

  /**
   * Starts a workflow from the row. Returns false if the subscription is over or unknown. Throws `service_unavailable`
   * if a newer run has completed, or was deleted while it was held: the row was restored from a backup.
   */
  protected async startFromRow(ref: SubscriptionRef): Promise<boolean> {
    const snapshot = await this.snapshotOf(ref);
    if (!snapshot || isOver(snapshot)) return false;
    if (snapshot.isHeld && (await this.describe(ref)) === null) {
      throw new DomainError('service_unavailable', 'the database is older than a deleted run');
    }
    this.logger.warn({ ...ref }, 'starting a missing workflow from its row');
    const policy = 'ALLOW_DUPLICATE_FAILED_ONLY';
    // Before the start: if this process dies, a sweep finds the subscription as late as any other.
    await this.rows.endHold(ref);
    if (await this.startFrom(ref, snapshot, policy, ACCEPT_WITHIN_MS)) return true;
    // The subscription may have ended after the first read.
    const latest = await this.snapshotOf(ref);
    if (!latest || isOver(latest)) return false;
    this.logger.error({ ...ref }, 'held: the database is older than this run');
    await this.rows.recordHold(ref);
    throw new DomainError('service_unavailable', 'the database is older than the completed run');
  }

  /** Returns false if the reuse policy forbids the start. */
  private async startFrom(
    ref: SubscriptionRef,
    snapshot: Snapshot,
    workflowIdReusePolicy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE_FAILED_ONLY',
    withinMs: number,
  ): Promise<boolean> {
    const options: WorkflowStartOptions = {
      ...startOptions(snapshot, this.taskQueuePrefix),
      workflowIdReusePolicy,
    };
    try {
      await this.client.withDeadline(Date.now() + withinMs, () =>
        this.client.workflow.start(SUBSCRIPTION_WORKFLOW, options),
      );
    } catch (error) {
      // The workflow has run before and is closed. If it did not complete, the sweep starts it again.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      await this.rows.markWorkflowStarted(ref);
      return false;
    }
    await this.rows.markWorkflowStarted(ref);
    return true;
  }

  private async signalOrStart(
    ref: SubscriptionRef,
    send: (handle: WorkflowHandle) => Promise<void>,
  ): Promise<void> {
    const handle = this.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    const trySend = async (): Promise<boolean> => {
      try {
        await accepted(this.client, () => send(handle));
        return true;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    };
    // The start may have joined a run that read its row before this change, so the signal is sent again.
    if (!(await trySend()) && (await this.startFromRow(ref))) await trySend();
  }

  private describe({ subscriptionId }: SubscriptionRef) {
    return describeWorkflow(this.client, subscriptionWorkflowId(subscriptionId));
  }

  private async replace(
    ref: SubscriptionRef,
    description: WorkflowExecutionDescription,
  ): Promise<boolean> {
    if (!(await terminateIfStuck(this.client, description, this.stuck))) return false;
    await this.startFromRow(ref);
    return true;
  }
}

function nullIfUnreadable(error: unknown): null {
  if (error instanceof UnreadableStateError) return null;
  throw error;
}

/** True if the subscription is ENDED and no attempt is open. */
function isOver({ state }: Snapshot): boolean {
  return state.status === 'ENDED' && state.openAttempt === null;
}

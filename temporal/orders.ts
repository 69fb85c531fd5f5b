import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowStartOptions } from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { DomainError } from '../domain/errors.ts';
import { subjectOf, tokenOf } from '../domain/order.ts';
import type { Order, OrderKind, OrderOutcome } from '../domain/order.ts';
import { orderWorkflowId, recheck } from '../workflows/orders/messages.ts';
import type { OrderInput, OrderResult } from '../workflows/orders/messages.ts';
import { PAYER_PRIORITY, WORKFLOW_QUEUE, WORKFLOW_TASK_TIMEOUT } from '../workflows/messages.ts';
import { failpoint } from '../runtime/failpoints.ts';
import {
  accepted,
  ANSWER_WITHIN_MS,
  describeWorkflow,
  isRunning,
  startUnlessRunning,
} from './client.ts';
import type { TemporalDeps } from './client.ts';
import { STUCK_AFTER_MS, terminateIfStuck } from './stuck-workflows.ts';
import type { StuckOptions } from './stuck-workflows.ts';

/** The kinds of orders whose outcome a caller waits for. */
export type AwaitedKind = 'payment' | 'refund' | 'setupMethod';

/** Reads an order's outcome from its rows, refusals included. Null: only the workflow knows. */
export type OrderRows = {
  readonly [Kind in AwaitedKind]: (
    order: Order<Kind>,
    nowAt: number,
  ) => Promise<OrderOutcome<Kind> | null>;
};

export type Orders = Pick<TemporalOrders, keyof TemporalOrders>;

export interface OrdersDeps extends TemporalDeps {
  rows: OrderRows;
  /** Time in ms for which tasks must fail before a run is replaced. Default: 60,000. */
  stuckAfterMs?: number;
}

/** Time in ms between two reads of the rows, which may show that an order is decided later. Most refunds end sooner. */
const LOOK_MS: Readonly<Record<AwaitedKind, number>> = {
  payment: 300,
  refund: 3_000,
  setupMethod: 3_000,
};

const PENDING = { kind: 'pending' } as const;

const MERCHANT_ID = defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD);

export function createOrders(deps: OrdersDeps): Orders {
  return new TemporalOrders(deps);
}

/**
 * The workflows of orders outside the billing cycles. The caller must have committed the order's rows. An operation
 * throws if Temporal does not accept its call within 4.5 s.
 */
class TemporalOrders {
  private readonly client: Client;
  private readonly rows: OrderRows;
  private readonly taskQueuePrefix: string;
  private readonly stuck: StuckOptions;

  constructor(deps: OrdersDeps) {
    const { client, rows, logger, taskQueuePrefix, stuckAfterMs = STUCK_AFTER_MS } = deps;
    this.client = client;
    this.rows = rows;
    this.stuck = { stuckAfterMs, logger };
    this.taskQueuePrefix = taskQueuePrefix;
  }

  /**
   * Carries an order out once; `pending` after 25 s, or if the payer's bank or the gateway decides later. A repeat
   * returns the later outcome.
   * @throws DomainError `service_unavailable`: it may still be carried out, once.
   */
  async execute<Kind extends AwaitedKind>(
    kind: Kind,
    order: Order<Kind>,
  ): Promise<OrderOutcome<Kind>> {
    const known = async () => this.rows[kind](order, Date.now());
    const outcome = this.settle(kind, order, known);
    // Without a payer, no bank decides a payment later.
    const mayBeLater = kind !== 'payment' || tokenOf(order) !== null;
    const found = await (mayBeLater ? unlessKnown(outcome, known, LOOK_MS[kind]) : outcome);
    return found ?? PENDING;
  }

  /** Starts the order's workflow, or replaces a stuck one. False if one already runs. */
  async ensureRunning<Kind extends OrderKind>(kind: Kind, order: Order<Kind>): Promise<boolean> {
    const options = this.startOptions(kind, order);
    if (await startUnlessRunning(this.client, kind, options)) return true;
    const description = await describeWorkflow(this.client, options.workflowId);
    if (description === null) return false;
    if (!(await terminateIfStuck(this.client, description, this.stuck))) return false;
    return this.ensureRunning(kind, order);
  }

  isRunning<Kind extends OrderKind>(kind: Kind, order: Order<Kind>): Promise<boolean> {
    return isRunning(this.client, orderWorkflowId(kind, subjectOf(order)));
  }

  /** Makes the order's workflow do its next step now, and starts a workflow if none runs. */
  async recheck<Kind extends OrderKind>(kind: Kind, order: Order<Kind>): Promise<void> {
    const options = { ...this.startOptions(kind, order), signal: recheck, signalArgs: [] as [] };
    await accepted(this.client, () => this.client.workflow.signalWithStart(kind, options));
  }

  private startOptions<Kind extends OrderKind>(
    kind: Kind,
    order: Order<Kind>,
  ): WorkflowStartOptions {
    const { merchantId } = order;
    const input: OrderInput<Kind> = { order, lookups: 0 };
    return {
      workflowId: orderWorkflowId(kind, subjectOf(order)),
      taskQueue: `${this.taskQueuePrefix}${WORKFLOW_QUEUE}`,
      args: [input],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      typedSearchAttributes: [{ key: MERCHANT_ID, value: merchantId }],
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
      // A payer or a merchant waits.
      priority: { priorityKey: PAYER_PRIORITY, fairnessKey: merchantId },
    };
  }

  /** Returns null after 25 s. Starts again if the run that it joined was for another order. */
  private async settle<Kind extends AwaitedKind>(
    kind: Kind,
    order: Order<Kind>,
    known: () => Promise<OrderOutcome<Kind> | null>,
  ): Promise<OrderOutcome<Kind> | null> {
    const answerBy = Date.now() + ANSWER_WITHIN_MS;
    do {
      const before = await known();
      if (before !== null && before.kind !== 'pending') return before;
      failpoint('before_hand_over');
      try {
        await this.ensureRunning(kind, order);
      } catch (error) {
        // Temporal may have accepted the call despite the error, and the workflow may have ended.
        const after = await known();
        if (after !== null) return after;
        if (!(error instanceof ServiceError)) throw error;
        throw new DomainError('service_unavailable', undefined, { cause: error });
      }
      const result = await this.resultOf(kind, order, answerBy);
      if (result === null) return known();
      if (result.paymentToken === tokenOf(order)) return result.outcome;
    } while (Date.now() < answerBy);
    return known();
  }

  /** Returns the run's result. Null without one by `answerBy`, or if the workflow failed: then the rows decide. */
  private async resultOf<Kind extends AwaitedKind>(
    kind: Kind,
    order: Order<Kind>,
    answerBy: number,
  ): Promise<OrderResult<Kind> | null> {
    const handle = this.client.workflow.getHandle(orderWorkflowId(kind, subjectOf(order)));
    try {
      const result: unknown = await this.client.withDeadline(answerBy, () => handle.result());
      return result as OrderResult<Kind>;
    } catch (error) {
      const isNoAnswer =
        error instanceof ServiceError ||
        error instanceof WorkflowFailedError ||
        error instanceof WorkflowNotFoundError;
      if (!isNoAnswer) throw error;
      return null;
    }
  }
}

/** Returns the result, or what the rows show as soon as they show it. A failed read counts as none. */
async function unlessKnown<T>(
  result: Promise<T | null>,
  known: () => Promise<T | null>,
  lookMs: number,
): Promise<T | null> {
  const done = new AbortController();
  const look = async (): Promise<T> => {
    for (;;) {
      await sleep(lookMs, undefined, { signal: done.signal });
      const outcome = await known().catch(() => null);
      if (outcome !== null) return outcome;
    }
  };
  try {
    return await Promise.race([result, look()]);
  } finally {
    done.abort();
  }
}

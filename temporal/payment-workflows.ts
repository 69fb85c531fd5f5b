import { setTimeout as sleep } from 'node:timers/promises';
import {
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Client, WorkflowStartOptions } from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { DomainError } from '../domain/errors.ts';
import type { IntentRef, PaymentOrder, PaymentOutcome } from '../domain/payment-intent.ts';
import type { RefundOutcome, RefundRef } from '../domain/refund.ts';
import type { SetupOrder, SetupOutcome } from '../domain/setup-method.ts';
import type { AttemptRef } from '../domain/review.ts';
import {
  paymentWorkflowId,
  recheck,
  refundWorkflowId,
} from '../workflows/one-off-orders/messages.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../workflows/messages.ts';
import { failpoint } from '../runtime/failpoints.ts';
import type { Logger } from '../runtime/logger.ts';
import {
  ACCEPT_WITHIN_MS,
  ANSWER_WITHIN_MS,
  describeWorkflow,
  hasFailedTask,
  isRunning,
} from './client.ts';
import { lateChargeStart, paymentStart, refundStart, setupStart } from './order-starts.ts';
import type { OrderStart } from './order-starts.ts';
import { STUCK_AFTER_MS, terminateIfStuck } from './stuck-workflows.ts';
import type { StuckOptions } from './stuck-workflows.ts';

/** Reads the rows of orders (payments, refunds). The first two functions return null if there is no outcome yet. */
export interface PaymentRows {
  /** Returns the outcome of an order at `nowAt`. The refusal of an order is an outcome, too. */
  paymentOutcome(order: PaymentOrder, nowAt: number): Promise<PaymentOutcome | null>;
  /** True if the bank waits until the payer confirms the intent's charge. */
  isPayerAwaited(ref: IntentRef): Promise<boolean>;
  refundOutcome(ref: RefundRef): Promise<RefundOutcome | null>;
  /** True if the gateway has accepted the refund and has not decided it yet. */
  isRefundAccepted(ref: RefundRef): Promise<boolean>;
}

/**
 * Runs the workflows of payments outside the billing cycles, of refunds and of saved cards. The caller must have
 * committed the rows. If there is no outcome after 25 s, a call returns `pending`. A later repeat of the call returns
 * the outcome.
 *
 * If Temporal does not accept an order within 4.5 s, the call throws `DomainError('service_unavailable')`.
 * The order may still be executed, once. A repeat of the call returns its outcome.
 */
export interface PaymentWorkflows {
  /** Charges an intent once per order. Does not wait for a payer at the bank. Rules: D-35, D-36, D-40. */
  pay(order: PaymentOrder): Promise<PaymentOutcome>;
  /** Executes a refund once. Does not wait for a gateway that has accepted the refund and decides it later. */
  refund(ref: RefundRef): Promise<RefundOutcome>;
  /** Saves a card for a setup session, once per token. */
  saveMethod(order: SetupOrder): Promise<SetupOutcome>;
}

/**
 * Operations for the sweeps, for events of gateways and for late charges. A `resume…` function returns true if it
 * started a workflow or replaced a stuck one, false if one already runs. All operations throw if Temporal does not
 * accept a call within 4.5 s.
 */
export interface PaymentResumption {
  resumePayment(ref: IntentRef): Promise<boolean>;
  resumeRefund(ref: RefundRef): Promise<boolean>;
  isPaymentRunning(ref: IntentRef): Promise<boolean>;
  isRefundRunning(ref: RefundRef): Promise<boolean>;
  /**
   * Makes the payment's workflow call its activity now, and starts a workflow if none runs. For use after a
   * decision of manual review, after an event of the gateway, and after an outage of the gateway.
   */
  wakePayment(ref: IntentRef): Promise<void>;
  /** Like {@link wakePayment}, for a refund. */
  wakeRefund(ref: RefundRef): Promise<void>;
  /**
   * Starts the late-charge watch of an attempt that is settled as not paid. Returns false if the watch
   * already runs.
   */
  watchLateCharge(ref: AttemptRef): Promise<boolean>;
  /** Makes the late-charge watch of an attempt look now, and starts a watch if none runs. */
  wakeLateCharge(ref: AttemptRef): Promise<void>;
}

export interface PaymentWorkflowsDeps {
  client: Client;
  rows: PaymentRows;
  /** These workflows run on `<prefix>checkout`. */
  taskQueuePrefix: string;
  logger: Logger;
  /** Time in ms for which the workflow tasks of a run must fail before the run is replaced. Default: 60,000. */
  stuckAfterMs?: number;
}

export function createPaymentWorkflows(
  deps: PaymentWorkflowsDeps,
): PaymentWorkflows & PaymentResumption {
  return new TemporalPaymentWorkflows(deps);
}

/**
 * Time in ms between two reads of a refund's row, which show whether the gateway decides the refund later. Most
 * refunds are decided before the first read.
 */
const ACCEPTED_LOOK_MS = 3_000;

/** Time in ms between two reads of an attempt's row, which show whether the bank waits for the payer. */
const PAYER_LOOK_MS = 300;

const MERCHANT_ID = defineSearchAttributeKey('MerchantId', SearchAttributeType.KEYWORD);

/** The result of a workflow. `paymentToken` identifies the order that the run executed. */
interface Result<Outcome> {
  outcome: Outcome;
  paymentToken?: string | null;
}

class TemporalPaymentWorkflows implements PaymentWorkflows, PaymentResumption {
  private readonly client: Client;
  private readonly rows: PaymentRows;
  private readonly taskQueue: string;
  private readonly stuck: StuckOptions;

  constructor(deps: PaymentWorkflowsDeps) {
    const { client, rows, logger, taskQueuePrefix, stuckAfterMs = STUCK_AFTER_MS } = deps;
    this.client = client;
    this.rows = rows;
    this.stuck = { stuckAfterMs, logger };
    // A payer or a merchant waits for these workflows, so their tasks must not wait behind renewals.
    this.taskQueue = `${taskQueuePrefix}checkout`;
  }

  async pay(order: PaymentOrder): Promise<PaymentOutcome> {
    const { token } = order;
    const result = this.resultForOrder<PaymentOutcome>(
      paymentStart(order),
      ({ paymentToken }) => paymentToken === (token?.paymentToken ?? null),
      () => this.rows.paymentOutcome(order, Date.now()),
    );
    if (token === null) return (await result) ?? { kind: 'pending' };
    const isAwaited = () => this.rows.isPayerAwaited(order);
    const pending: PaymentOutcome = { kind: 'pending' };
    return (await resultUnless(result, isAwaited, PAYER_LOOK_MS, pending)) ?? pending;
  }

  async refund(ref: RefundRef): Promise<RefundOutcome> {
    const result = this.resultForOrder<RefundOutcome>(
      refundStart(ref),
      () => true,
      () => this.rows.refundOutcome(ref),
    );
    const isAccepted = () => this.rows.isRefundAccepted(ref);
    const accepted: RefundOutcome = { kind: 'pending', isAccepted: true };
    const outcome = await resultUnless(result, isAccepted, ACCEPTED_LOOK_MS, accepted);
    return outcome ?? { kind: 'pending' };
  }

  async saveMethod(order: SetupOrder): Promise<SetupOutcome> {
    const outcome = await this.resultForOrder<SetupOutcome>(
      setupStart(order),
      ({ paymentToken }) => paymentToken === order.paymentToken,
      async () => null,
    );
    return outcome ?? { kind: 'pending' };
  }

  resumePayment(ref: IntentRef): Promise<boolean> {
    return this.startUnlessRunning(paymentStart({ ...ref, token: null }));
  }

  resumeRefund(ref: RefundRef): Promise<boolean> {
    return this.startUnlessRunning(refundStart(ref));
  }

  isPaymentRunning({ intentId }: IntentRef): Promise<boolean> {
    return isRunning(this.client, paymentWorkflowId(intentId));
  }

  isRefundRunning({ refundId }: RefundRef): Promise<boolean> {
    return isRunning(this.client, refundWorkflowId(refundId));
  }

  wakePayment(ref: IntentRef): Promise<void> {
    return this.recheck(paymentStart({ ...ref, token: null }));
  }

  wakeRefund(ref: RefundRef): Promise<void> {
    return this.recheck(refundStart(ref));
  }

  watchLateCharge(ref: AttemptRef): Promise<boolean> {
    return this.startUnlessRunning(lateChargeStart(ref));
  }

  wakeLateCharge(ref: AttemptRef): Promise<void> {
    return this.recheck(lateChargeStart(ref));
  }

  /**
   * Returns the outcome of an order; null if there is no outcome after 25 s. If the rows have no outcome yet,
   * starts a workflow, replaces a stuck one or joins the running one. If the joined run was for another order, starts
   * again.
   */
  private async resultForOrder<Outcome>(
    start: OrderStart,
    isOwn: (result: Result<Outcome>) => boolean,
    known: () => Promise<Outcome | null>,
  ): Promise<Outcome | null> {
    const answerBy = Date.now() + ANSWER_WITHIN_MS;
    do {
      const before = await known();
      if (before !== null) return before;
      failpoint('before_hand_over');
      try {
        await this.startUnlessRunning(start);
      } catch (error) {
        // Temporal may have accepted the call despite the error, and the workflow may have ended.
        const after = await known();
        if (after !== null) return after;
        if (!(error instanceof ServiceError)) throw error;
        throw new DomainError('service_unavailable', undefined, { cause: error });
      }
      const result = await this.resultOf<Outcome>(start.workflowId, answerBy);
      if (result === null) return known();
      if (isOwn(result)) return result.outcome;
    } while (Date.now() < answerBy);
    return known();
  }

  /** Throws `WorkflowExecutionAlreadyStartedError` if the workflow runs. */
  private async start(start: OrderStart): Promise<void> {
    const options = { ...this.optionsOf(start), workflowIdConflictPolicy: 'FAIL' as const };
    await this.client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      this.client.workflow.start(start.type, options),
    );
  }

  private async recheck(start: OrderStart): Promise<void> {
    const options = { ...this.optionsOf(start), signal: recheck, signalArgs: [] as [] };
    await this.client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      this.client.workflow.signalWithStart(start.type, options),
    );
  }

  private optionsOf({ workflowId, merchantId, memo, input }: OrderStart): WorkflowStartOptions {
    return {
      workflowId,
      taskQueue: this.taskQueue,
      args: [input],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      typedSearchAttributes: [{ key: MERCHANT_ID, value: merchantId }],
      memo,
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
      priority: { priorityKey: 2, fairnessKey: merchantId },
    };
  }

  /**
   * Starts the workflow if none runs, and replaces a stuck run. Returns true if it started a run. The new run reads in
   * the rows what earlier runs have done.
   */
  private async startUnlessRunning(start: OrderStart): Promise<boolean> {
    try {
      await this.start(start);
      return true;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
    const description = await describeWorkflow(this.client, start.workflowId);
    if (description === null || !hasFailedTask(description)) return false;
    if (!(await terminateIfStuck(this.client, description, this.stuck))) return false;
    return this.startUnlessRunning(start);
  }

  /**
   * Returns the run's result. Null if there is no result by `answerBy`, or if the workflow failed: then the
   * rows decide.
   */
  private async resultOf<Outcome>(
    workflowId: string,
    answerBy: number,
  ): Promise<Result<Outcome> | null> {
    const handle = this.client.workflow.getHandle(workflowId);
    try {
      const result: unknown = await this.client.withDeadline(answerBy, () => handle.result());
      return result as Result<Outcome>;
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

/**
 * Returns the result, or `instead` as soon as the rows show that the result is decided later. Reads the rows every
 * `lookMs`. A failed read counts as false.
 */
async function resultUnless<T>(
  result: Promise<T>,
  isLater: () => Promise<boolean>,
  lookMs: number,
  instead: T,
): Promise<T> {
  const done = new AbortController();
  const later = async (): Promise<T> => {
    for (;;) {
      await sleep(lookMs, undefined, { signal: done.signal });
      if (await isLater().catch(() => false)) return instead;
    }
  };
  try {
    return await Promise.race([result, later()]);
  } finally {
    done.abort();
  }
}

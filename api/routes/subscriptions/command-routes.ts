import { z } from 'zod';
import {
  findCommand,
  findSubscription,
  hasSubscription,
} from '../../../db/repositories/subscriptions/row.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import type { Command, CommandResult } from '../../../domain/subscription/commands.ts';
import {
  dateTime,
  declineCode,
  declineMessage,
  doneAnswer,
  EXTENSION,
  SUBSCRIPTION_ID,
} from '../../answer-fields.ts';
import { notFound, ok } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  amount,
  changedCurrency,
  gatewayAmountProblems,
  idText,
  instant,
  optional,
} from '../../fields.ts';
import { problemsError } from '../../http/body.ts';
import type { Fields, Problem, Shape } from '../../http/body.ts';
import { executeOnce } from '../../http/idempotency.ts';
import type { Execution } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import type { Call } from '../../http/route.ts';
import { editProblems, editsNothing } from '../../../domain/subscription/edit-problems.ts';
import type { EditFields } from '../../../domain/subscription/edit-problems.ts';
import { cycleCount, interval, intervalCount } from './create.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { SubscriptionWorkflows } from '../../../temporal/subscriptions/workflows.ts';

const subscriptionId = idText().describe('Id of the subscription.');

const subscriptionIdBody = {
  fields: { subscriptionId },
  examples: { 'By id': { subscriptionId: SUBSCRIPTION_ID } },
};

const refusals = [
  'operation_not_allowed',
  'resource_not_found',
  'payment_outcome_pending',
] as const;

export const cancelSubscription = route({
  operationId: 'cancelSubscription',
  method: 'post',
  path: '/subscription/merchant/cancel',
  tag: 'Subscriptions',
  summary: 'Cancel a subscription',
  description:
    'Allowed in every status except ENDED. The subscription ends at once, and no further attempt is ' +
    'made. The outcome of a charge that was already sent is still recorded, and its events are sent. ' +
    '`atPeriodEnd: true` is allowed in TRIALING, ACTIVE and PAUSED: nothing is charged any more, and the ' +
    'subscription ends at `currentPeriodEnd`, at once if that has passed; a date at which its pause would end is dropped. Until then ' +
    '`POST /subscription/merchant/resume` withdraws the cancellation.',
  idempotencyKey: 'listed',
  body: {
    fields: {
      subscriptionId,
      atPeriodEnd: optional(z.boolean())
        .meta(EXTENSION)
        .describe('Whether the subscription ends at the end of the paid period. Default: false.'),
    },
    examples: {
      ...subscriptionIdBody.examples,
      'At the end of the period': { subscriptionId: SUBSCRIPTION_ID, atPeriodEnd: true },
    },
  },
  answer: doneAnswer(
    'The subscription is ENDED. With `atPeriodEnd: true` it ends at its `cancelAt`.',
  ),
  refusals,
  handle: (call, deps) =>
    withCommand(call, deps, ({ commandId }) => ({
      kind: 'cancel',
      commandId,
      reason: 'cancelled',
      ...(call.body.atPeriodEnd === true ? { atPeriodEnd: true } : {}),
    })),
});

export const resumeSubscription = route({
  operationId: 'resumeSubscription',
  method: 'post',
  path: '/subscription/merchant/resume',
  tag: 'Subscriptions',
  summary: 'Withdraw a cancellation at the end of the period',
  description:
    'Allowed in TRIALING, ACTIVE and PAUSED until the `cancelAt` of the subscription. Billing continues on the same ' +
    'dates; a paused subscription stays paused. Of the dates that passed meanwhile, one is charged at once, and the others are not billed.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: subscriptionIdBody,
  answer: doneAnswer('The cancellation was withdrawn.'),
  refusals,
  handle: (call, deps) =>
    withCommand(call, deps, ({ commandId }) => ({ kind: 'resume', commandId })),
});

export const pauseSubscription = route({
  operationId: 'pauseSubscription',
  method: 'post',
  path: '/subscription/merchant/pause',
  tag: 'Subscriptions',
  summary: 'Pause a subscription',
  description:
    'Allowed in TRIALING, ACTIVE and UNPAID. Nothing is charged until the subscription is unpaused. With ' +
    '`resumeAt` it is unpaused at that instant. In PAUSED a call with `resumeAt` changes that instant.',
  isExtension: true,
  idempotencyKey: 'honoured',
  body: {
    fields: {
      subscriptionId,
      resumeAt: optional(instant).describe(
        'Epoch milliseconds in the future. At this instant the pause ends and one charge is made. Without ' +
          'this field, only a call of unpause ends the pause.',
      ),
    },
    examples: {
      ...subscriptionIdBody.examples,
      'Until a date': { subscriptionId: SUBSCRIPTION_ID, resumeAt: 1_798_761_600_000 },
    },
  },
  answer: doneAnswer('The subscription is PAUSED.'),
  refusals,
  handle: (call, deps) =>
    withCommand(call, deps, ({ commandId }) => ({
      kind: 'pause',
      commandId,
      ...(call.body.resumeAt === undefined ? {} : { resumeAt: call.body.resumeAt }),
    })),
});

/** The workflow checks that the date is in the future, by the test clock if there is one. */
export const unpauseSubscription = route({
  operationId: 'unpauseSubscription',
  method: 'post',
  path: '/subscription/merchant/unpause',
  tag: 'Subscriptions',
  summary: 'Unpause a subscription',
  description:
    'Allowed in PAUSED. One charge is made at `newNextPaymentDate`: the owed cycle if there is one, ' +
    'else the next cycle. Later dates are counted from that date. A date before `currentPeriodEnd` is accepted: the payer ' +
    'then pays the next cycle early, and loses the rest of the paid period. After a hard decline with an unchanged card, ' +
    'nothing is charged: the subscription becomes UNPAID until the payer gives another card.',
  idempotencyKey: 'honoured',
  body: {
    fields: {
      subscriptionId,
      newNextPaymentDate: instant.describe(
        'Epoch milliseconds in the future. Always required, because a charge follows: for one at once, send an instant ' +
          'some seconds ahead.',
      ),
    },
    examples: {
      'Continue on a date': {
        subscriptionId: SUBSCRIPTION_ID,
        newNextPaymentDate: 1_798_761_600_000,
      },
    },
  },
  answer: doneAnswer(
    'The subscription is ACTIVE, or UNPAID if its payment method cannot be charged.',
  ),
  refusals,
  handle: (call, deps) =>
    withCommand(call, deps, ({ commandId }) => ({
      kind: 'unpause',
      commandId,
      newNextPaymentAt: call.body.newNextPaymentDate,
    })),
});

export const retrySubscription = route({
  operationId: 'retrySubscriptionPayment',
  method: 'post',
  path: '/subscription/manual-retry',
  tag: 'Subscriptions',
  summary: 'Retry a failed payment now',
  description:
    'Allowed in UNPAID, at most once in 4 hours. A retry before that is answered `bad_request`, and ' +
    '`errorDescription` and `retryAt` name the earliest time of the next retry. A declined payment is answered 200 with ' +
    '`success: false`.',
  idempotencyKey: 'listed',
  body: subscriptionIdBody,
  answer: {
    description: 'The payment was attempted.',
    schema: z.object({
      success: z.boolean().meta({ description: 'Whether the payment succeeded.' }),
      minManualRetryDate: dateTime(
        'Earliest time of the next manual retry. Null if the subscription is ENDED. A retry before it is refused, and ' +
          'the error has the same time as `retryAt`.',
      ).nullable(),
      status: z.enum(['ACTIVE', 'UNPAID', 'ENDED']).meta({
        description:
          'Status after the attempt. ENDED when the attempt paid the last remaining cycle.',
      }),
      errorCode: declineCode.nullable(),
      errorMessage: declineMessage.nullable(),
    }),
    examples: {
      Paid: {
        success: true,
        minManualRetryDate: '2026-11-20T16:00:00.000Z',
        status: 'ACTIVE',
        errorCode: null,
        errorMessage: null,
      },
      'Declined again': {
        success: false,
        minManualRetryDate: '2026-11-20T16:00:00.000Z',
        status: 'UNPAID',
        errorCode: 'card_declined',
        errorMessage: 'The card was declined.',
      },
    },
  },
  refusals,
  handle: (call, deps) =>
    withCommand(
      call,
      deps,
      ({ commandId }) => ({ kind: 'manualRetry', commandId }),
      presentManualRetry,
    ),
});

function presentManualRetry(result: CommandResult) {
  if (result.kind !== 'manualRetry') throw new Error(`not a retry's result: ${result.kind}`);
  const { success, minManualRetryAt, status, errorCode } = result;
  return {
    success,
    minManualRetryDate: minManualRetryAt === null ? null : formatInstant(minManualRetryAt),
    status,
    errorCode,
    errorMessage: messageOf(errorCode),
  };
}

type SubscriptionCall = Call<string, Shape, { subscriptionId: typeof subscriptionId }>;

/** All calls with one Idempotency-Key have the same command id, so the command is executed once. */
async function withCommand<Body = Record<string, never>>(
  call: SubscriptionCall,
  deps: ApiDeps,
  commandOf: (execution: Execution) => Command | Promise<Command>,
  present: (result: CommandResult) => Body = () => ({}) as Body,
) {
  const ref = { merchantId: call.merchant.id, subscriptionId: call.body.subscriptionId };
  return executeOnce(
    call,
    deps,
    async (execution) => {
      if (!(await hasSubscription(deps.db, ref))) throw notFound('subscription');
      const result = await executeCommand(deps.workflows, ref, await commandOf(execution));
      const isDeclined = result.kind === 'manualRetry' && !result.success;
      return { ...ok(present(result)), isDeclined };
    },
    { hasBegun: async (commandId) => (await findCommand(deps.db, ref, commandId)) !== null },
  );
}

export const editFields = {
  subscriptionId,
  newAmount: optional(amount).describe(
    'Amount of each later cycle. More than 1 USD or its equivalent.',
  ),
  newCycleCount: optional(cycleCount).describe(
    'Total number of billing cycles. Must exceed the number of charged cycles.',
  ),
  newNextPaymentDate: optional(instant).describe(
    'The next due date, in epoch milliseconds in the future. Later due dates are counted from this date. In TRIALING ' +
      'this date is the end of the trial. In UNPAID the date replaces the rest of the retry plan, and is refused ' +
      'after a decline that stops the retries. If the outcome of a charge is not known yet, and it is declined, the ' +
      'date is that of its retry.',
  ),
  interval: optional(interval).describe('Unit of the time between two billings.'),
  intervalCount: optional(intervalCount).describe('Number of intervals between two billings.'),
};

type Given = Partial<Fields<typeof editFields>>;

export const editSubscription = route({
  operationId: 'editSubscription',
  method: 'post',
  path: '/subscription/edit',
  tag: 'Subscriptions',
  summary: 'Edit a subscription',
  description:
    'Allowed in TRIALING, ACTIVE, UNPAID and PAUSED. Takes effect at once. A payment intent that already ' +
    'exists keeps its amount. To change the interval, send `interval`, `intervalCount` and ' +
    '`newNextPaymentDate` together.',
  idempotencyKey: 'listed',
  body: {
    fields: editFields,
    problems: editRequestProblems,
    examples: {
      'Another amount': { subscriptionId: SUBSCRIPTION_ID, newAmount: 2_499 },
      'Yearly from a date on': {
        subscriptionId: SUBSCRIPTION_ID,
        interval: 'YEAR',
        intervalCount: 1,
        newNextPaymentDate: 1_798_761_600_000,
      },
    },
  },
  answer: doneAnswer('The subscription was edited.'),
  refusals,
  limits: async ({ merchant, body: { newAmount, subscriptionId: id } }, deps) => {
    const currency = newAmount === undefined ? null : await currencyOf(deps, merchant.id, id);
    if (currency === null) return [];
    return gatewayAmountProblems(deps, merchant.id, { newAmount }, currency);
  },
  handle: async (call, deps) => {
    const edit = editOf(call.body);
    if (editsNothing(edit)) throw problemsError([NOTHING_TO_EDIT]);
    const { newAmount, subscriptionId: id } = call.body;
    return withCommand(call, deps, async ({ commandId }) => {
      const command = { kind: 'edit', commandId, ...edit } as const;
      const currency =
        newAmount === undefined ? null : await currencyOf(deps, call.merchant.id, id);
      const currencyRow = currency === null ? undefined : changedCurrency(currency);
      return { ...command, ...(currencyRow && { currencyRow }) };
    });
  },
});

async function currencyOf({ db }: ApiDeps, merchantId: string, id: string): Promise<string | null> {
  return (await findSubscription(db, merchantId, id))?.state.terms.currency ?? null;
}

export const NOTHING_TO_EDIT: Problem = {
  field: 'body',
  message: 'must have newAmount, newCycleCount, newNextPaymentDate or interval',
};

const WIRE_NAMES: Readonly<Record<keyof EditFields, keyof typeof editFields>> = {
  newAmountMinor: 'newAmount',
  newCycleCount: 'newCycleCount',
  newNextPaymentAt: 'newNextPaymentDate',
  interval: 'interval',
  intervalCount: 'intervalCount',
};

export function editOf({
  newAmount,
  newCycleCount,
  newNextPaymentDate,
  ...given
}: Given): EditFields {
  return {
    newAmountMinor: newAmount,
    newCycleCount,
    newNextPaymentAt: newNextPaymentDate,
    interval: given.interval,
    intervalCount: given.intervalCount,
  };
}

/** The workflow checks what depends on the subscription, such as the currency's minimum. */
export function editRequestProblems(given: Given): Problem[] {
  return editProblems(editOf(given)).map(({ field, message }) => ({
    field: WIRE_NAMES[field],
    message,
  }));
}

/**
 * Sends a command to the subscription's workflow. A repeat with the same command id returns the same result.
 * @throws DomainError with the refusal, `payment_outcome_pending`, or `service_unavailable` if it is unknown whether
 * the command was executed.
 */
export async function executeCommand(
  workflows: SubscriptionWorkflows,
  ref: SubscriptionRef,
  command: Command,
): Promise<CommandResult> {
  const { merchantId, subscriptionId } = ref;
  const answer = await workflows.execute({ merchantId, subscriptionId }, command);
  switch (answer.kind) {
    case 'result':
      return answer.result;
    case 'pending':
      throw new DomainError('payment_outcome_pending');
    case 'refused':
      throw new DomainError(answer.code, answer.message, { retryAt: answer.retryAt });
  }
}

import { editProblems, editsNothing } from '../../../domain/subscription/edit-problems.ts';
import type { EditFields } from '../../../domain/subscription/edit-problems.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/read.ts';
import { changedCurrency, gatewayAmountProblems } from '../../amounts.ts';
import { nothing } from '../../answer-fields.ts';
import { idText, instant, optional, problemsError, refuseProblems } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { amount } from '../../payment-fields.ts';
import { route } from '../../route.ts';
import { withCommand } from './commands.ts';
import { cycleCount, interval, intervalCount } from './fields.ts';
import { SUBSCRIPTION_ID } from './read.ts';

export const editFields = {
  subscriptionId: idText().describe('Id of the subscription.'),
  newAmount: optional(amount).describe(
    'Amount of each later cycle. More than 1 USD or its equivalent.',
  ),
  newCycleCount: optional(cycleCount).describe(
    'Total number of billing cycles. Must exceed the number of charged cycles.',
  ),
  newNextPaymentDate: optional(instant).describe(
    'The next due date, in epoch milliseconds in the future. Later due dates are counted from this date. In TRIALING ' +
      'this date is the end of the trial. In UNPAID the date replaces the rest of the retry plan, and is refused ' +
      'after a decline that stops the retries. A date is also refused if it is too early for the limit of 15 automatic ' +
      'attempts on one billing cycle in 30 days.',
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
    examples: [
      { summary: 'Another amount', value: { subscriptionId: SUBSCRIPTION_ID, newAmount: 2_499 } },
      {
        summary: 'Yearly from a date on',
        value: {
          subscriptionId: SUBSCRIPTION_ID,
          interval: 'YEAR',
          intervalCount: 1,
          newNextPaymentDate: 1_798_761_600_000,
        },
      },
    ],
  },
  answer: {
    description: 'The subscription was edited.',
    schema: nothing,
    examples: [{ summary: 'Done', value: {} }],
  },
  refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  handle: async (call, deps) => {
    const edit = editOf(call.body);
    if (editsNothing(edit)) throw problemsError([NOTHING_TO_EDIT]);
    const edited =
      edit.newAmountMinor === undefined
        ? null
        : await findSubscription(deps.db, call.merchant.id, call.body.subscriptionId);
    const currency = edited?.state.terms.currency;
    if (currency !== undefined) {
      const { newAmount } = call.body;
      refuseProblems(await gatewayAmountProblems(deps, call.merchant.id, { newAmount }, currency));
    }
    const currencyRow = currency === undefined ? undefined : changedCurrency(currency);
    return withCommand(call, deps, ({ commandId }) => ({
      kind: 'edit',
      commandId,
      ...edit,
      ...(currencyRow && { currencyRow }),
    }));
  },
});

const NOTHING_TO_EDIT: Problem = {
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

function editOf({ newAmount, newCycleCount, newNextPaymentDate, ...given }: Given): EditFields {
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

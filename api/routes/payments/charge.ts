import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import {
  findIntent,
  insertPayment,
  withdrawPayment,
} from '../../../db/repositories/payments/orders.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import { DomainError, ERRORS } from '../../../domain/errors.ts';
import type { IntentRef, PaymentOutcome } from '../../../domain/payment-intent.ts';
import {
  declineCode,
  declineMessage,
  EXTENSION,
  id,
  SUBSCRIPTION_ID,
} from '../../answer-fields.ts';
import type { Answer } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Fields, Shape } from '../../http/body.ts';
import type { Call } from '../../http/route.ts';
import { chargeStatus, INTENT_ID } from './intent.ts';
import { idOfCommand } from '../../../domain/ids.ts';
import { outsideRequest } from '../../../runtime/request-scope.ts';
import { executeOnce } from '../../http/idempotency.ts';
import type { KeyedCall, OutcomeAnswer } from '../../http/idempotency.ts';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { findMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { found, notFound, ok } from '../../http/request.ts';
import {
  chargeFields,
  chargeProblems,
  comments,
  gatewayChargeProblems,
  idText,
  optional,
  ownPairs,
  receiptId,
  storeFrontId,
} from '../../fields.ts';
import { route } from '../../http/route.ts';
import { findChargeable } from '../../../db/repositories/subscriptions/row.ts';
import { validateOneTimeCharge } from '../../../domain/subscription/validate-command.ts';

const chargeError = z
  .enum([...declineCode.options, 'payment_outcome_pending'])
  .meta({ description: 'Why the charge has not succeeded.' });

export const OneTimeCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError.nullable().meta({ description: 'Null on success.' }),
  errorMessage: declineMessage.nullable().meta({ description: 'Null on success.' }),
});

const TokenisedCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError
    .optional()
    .meta({ description: 'Present only when the charge has not succeeded.' }),
});

export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

function presentCharge(intentId: string, charged: Charged): z.input<typeof OneTimeCharge> {
  switch (charged.kind) {
    case 'succeeded':
      return { intentId, status: 'SUCCESS', errorCode: null, errorMessage: null };
    case 'declined': {
      const { errorCode } = charged;
      return { intentId, status: 'FAILED', errorCode, errorMessage: messageOf(errorCode) };
    }
    case 'pending': {
      const errorCode = 'payment_outcome_pending';
      return { intentId, status: 'PENDING', errorCode, errorMessage: ERRORS[errorCode].message };
    }
  }
}

type ChargeCall = Call<string, Shape, typeof chargeFields>;

interface ChargeKind<Body> {
  /** Writes the intent inside a transaction. Not called again if the intent exists. */
  readonly insert: (tx: Db, ref: IntentRef) => Promise<void>;
  readonly answer: (intentId: string, charged: Charged) => Answer<Body>;
}

/**
 * Charges a saved method and answers with the outcome. All calls with one Idempotency-Key have the same intent, which
 * is charged once. A pending outcome is not stored under the key.
 */
async function withCharge<Body>(
  call: ChargeCall,
  deps: ApiDeps,
  { insert, answer }: ChargeKind<Body>,
): Promise<Answer<Body>> {
  const { db, orders } = deps;
  const refOf = (intentId: string) => ({ merchantId: call.merchant.id, intentId });
  return withOrder(call, deps, {
    prefix: 'in',
    isWritten: async (intentId) => (await findIntent(db, call.merchant.id, intentId)) !== null,
    write: (tx, intentId) => insert(tx, refOf(intentId)),
    give: (intentId) => orders.execute('payment', { ...refOf(intentId), token: null }),
    withdraw: (intentId) => withdrawPayment(db, refOf(intentId)),
    answer: (intentId, outcome) => {
      if (outcome.kind === 'refused') {
        const { code, message, retryAt } = outcome;
        throw new DomainError(code, message, { retryAt });
      }
      const { kind } = outcome;
      const flags = { isDefinite: kind !== 'pending', isDeclined: kind === 'declined' };
      return { ...answer(intentId, outcome), ...flags };
    },
  });
}

/** Time limit in ms to void an order. Less than the 3 s between `giveUp` and the 503. */
const WITHDRAW_WITHIN_MS = 2_000;

interface OrderExecution<Outcome> {
  readonly give: () => Promise<Outcome>;
  /** Voids the order unless its execution has begun. True if the order will never be executed. */
  readonly withdraw: () => Promise<boolean>;
}

/** An order to charge or refund. `id`: the id of its intent or refund, the same for all calls with one key. */
interface MerchantOrder<Outcome, Body> {
  readonly prefix: 'in' | 'rf';
  readonly isWritten: (id: string) => Promise<boolean>;
  readonly write: (tx: Db, id: string) => Promise<void>;
  readonly give: (id: string) => Promise<Outcome>;
  readonly withdraw: (id: string) => Promise<boolean>;
  readonly answer: (id: string, outcome: Outcome | { kind: 'pending' }) => OutcomeAnswer<Body>;
}

/** Writes an order, hands it over to its workflow, and answers with the outcome. A repeat with the key goes on. */
export async function withOrder<Outcome, Body>(
  call: KeyedCall,
  deps: ApiDeps,
  { prefix, isWritten, write, give, withdraw, answer }: MerchantOrder<Outcome, Body>,
): Promise<Answer<Body>> {
  return executeOnce(
    call,
    deps,
    async ({ commandId, isBegun, giveUp }) => {
      const id = idOfCommand(prefix, commandId);
      if (!isBegun) await deps.db.transaction((tx) => write(tx, id));
      const order = { give: () => give(id), withdraw: () => withdraw(id) };
      return answer(id, await handOver(order, giveUp));
    },
    { orderPrefix: prefix, hasBegun: (commandId) => isWritten(idOfCommand(prefix, commandId)) },
  );
}

/**
 * Starts the workflow of an order and waits for its outcome. Without a key, the order is voided if the start fails or
 * `giveUp` aborts; `pending` if it could not be voided within 2 s.
 */
export async function handOver<Outcome>(
  { give, withdraw }: OrderExecution<Outcome>,
  giveUp: AbortSignal | null,
  withdrawWithinMs: number = WITHDRAW_WITHIN_MS,
): Promise<Outcome | { kind: 'pending' }> {
  try {
    return await (giveUp === null ? give() : unlessAborted(giveUp, give));
  } catch (error) {
    if (giveUp === null || !mayHaveArrived(error)) throw error;
    if (await tryWithdraw(withdraw, withdrawWithinMs)) throw error;
    return { kind: 'pending' };
  }
}

async function tryWithdraw(withdraw: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  // Runs also after a 503: the order could be executed in addition to the caller's next request.
  const signal = AbortSignal.timeout(withinMs);
  return unlessAborted(signal, () => outsideRequest(withdraw)).catch(() => false);
}

/** Throws `service_unavailable` when `signal` aborts. Does not start `work` after that. */
async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const unavailable = () => new DomainError('service_unavailable');
  if (signal.aborted) throw unavailable();
  const done = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(unavailable()), { signal: done.signal });
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    done.abort();
  }
}

/** True if the workflow may have received the order despite the error. False only for a refusal. */
function mayHaveArrived(error: unknown): boolean {
  return !(error instanceof DomainError) || error.code === 'service_unavailable';
}

const tokenisedFields = {
  pmId: idText().describe(
    'Id of the saved payment method, from the callback, the event or the customer’s list.',
  ),
  customerId: idText().describe('Id of the customer that the payment method belongs to.'),
  currency: chargeFields.currency,
  amount: chargeFields.amount,
  receiptId: optional(receiptId).meta({ description: 'Your own order id.', ...EXTENSION }),
  storeFrontId,
  metadata: ownPairs,
};

export const chargeTokenised = route({
  operationId: 'chargeTokenisedPaymentMethod',
  method: 'post',
  path: '/payments/charge-tokenised-pm',
  tag: 'Payments',
  summary: 'Charge a saved payment method',
  description:
    'The payment method must belong to the customer. A declined charge is answered 200 with status ' +
    'FAILED.',
  idempotencyKey: 'listed',
  body: {
    fields: tokenisedFields,
    problems: chargeProblems,
    examples: {
      'A teapot': {
        pmId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
        customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
        currency: 'USD',
        amount: 4_900,
      },
    },
  },
  answer: {
    description: 'The charge was attempted.',
    schema: TokenisedCharge,
    examples: {
      Paid: { intentId: INTENT_ID, status: 'SUCCESS' },
      Declined: { intentId: INTENT_ID, status: 'FAILED', errorCode: 'expired_card' },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) =>
    withCharge(call, deps, {
      insert: (tx, ref) => insertTokenised(tx, ref, call.body, deps.now()),
      answer: (id, charged) => {
        const { intentId, status, errorCode } = presentCharge(id, charged);
        return ok({ intentId, status, ...(errorCode === null ? {} : { errorCode }) });
      },
    }),
});

async function insertTokenised(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: Fields<typeof tokenisedFields>,
  nowAt: number,
): Promise<void> {
  const { pmId: paymentMethodId, customerId, amount, ...order } = body;
  const customer = found(await findCustomer(tx, merchantId, customerId), 'customer');
  const method = await findMethod(tx, merchantId, paymentMethodId);
  const isLive = method?.status === 'LIVE' && method.customerId === customer.id;
  if (!isLive) throw notFound('payment method');
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'tokenised',
    customerId: customer.id,
    paymentMethodId,
    amountMinor: amount,
    customerDetails: customer.details,
    ...order,
    nowAt,
  });
}

const oneTimeFields = {
  subscriptionId: idText().describe('Id of the subscription.'),
  ...chargeFields,
  comments: optional(comments).describe('Your own note.'),
};

export const chargeSubscriptionOnce = route({
  operationId: 'chargeSubscriptionOnce',
  method: 'post',
  path: '/subscription/merchant/one-time-charge',
  tag: 'Subscriptions',
  summary: 'Charge a subscription’s payment method once',
  description:
    'Allowed in TRIALING, ACTIVE, UNPAID and PAUSED. Changes neither the cycles nor the status. A ' +
    'declined charge is answered 200 with status FAILED.',
  idempotencyKey: 'listed',
  body: {
    fields: oneTimeFields,
    problems: chargeProblems,
    examples: {
      'An extra': {
        subscriptionId: SUBSCRIPTION_ID,
        amount: 750,
        currency: 'USD',
        comments: 'A box of biscuits',
      },
    },
  },
  answer: {
    description: 'The charge was attempted.',
    schema: OneTimeCharge,
    examples: {
      Paid: { intentId: INTENT_ID, status: 'SUCCESS', errorCode: null, errorMessage: null },
      Declined: {
        intentId: INTENT_ID,
        status: 'FAILED',
        errorCode: 'insufficient_funds',
        errorMessage: 'The account does not hold enough money for this payment.',
      },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) =>
    withCharge(call, deps, {
      insert: (tx, ref) => insertOneTime(tx, ref, call.body, deps.now()),
      answer: (intentId, charged) => ok(presentCharge(intentId, charged)),
    }),
});

/**
 * Writes the intent, and locks the subscription's row until the transaction ends. Throws a DomainError if the
 * subscription is unknown or may not be charged.
 */
async function insertOneTime(
  tx: Db,
  { merchantId, intentId }: IntentRef,
  body: Fields<typeof oneTimeFields>,
  nowAt: number,
): Promise<void> {
  const { subscriptionId, amount, ...order } = body;
  const subscription = found(await findChargeable(tx, merchantId, subscriptionId), 'subscription');
  const { state, customerId, customerDetails } = subscription;
  const decision = validateOneTimeCharge(state);
  if (!decision.ok) throw new DomainError(decision.code, decision.message);
  await insertPayment(tx, {
    merchantId,
    intentId,
    kind: 'one_time',
    subscriptionId,
    customerId,
    paymentMethodId: state.paymentMethodId,
    amountMinor: amount,
    customerDetails,
    ...order,
    nowAt,
  });
}

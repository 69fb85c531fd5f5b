import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findIntent, withdrawPayment } from '../../../db/repositories/payments/orders.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import { DomainError, ERRORS } from '../../../domain/errors.ts';
import type { IntentRef, PaymentOutcome } from '../../../domain/payment-intent.ts';
import { declineCode, declineMessage, id } from '../../answer-fields.ts';
import type { Answer } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Shape } from '../../http/body.ts';
import type { chargeFields } from '../../fields.ts';
import type { Call } from '../../http/route.ts';
import { chargeStatus } from './intent.ts';
import { idOfCommand } from '../../../domain/ids.ts';
import { outsideRequest } from '../../../runtime/request-scope.ts';
import { executeOnce } from '../../http/idempotency.ts';
import type { KeyedCall, OutcomeAnswer } from '../../http/idempotency.ts';

const chargeError = z
  .enum([...declineCode.options, 'payment_outcome_pending'])
  .meta({ id: 'ChargeErrorCode', description: 'Why the charge has not succeeded.' });

export const OneTimeCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError.nullable().meta({ description: 'Null on success.' }),
  errorMessage: declineMessage.nullable().meta({ description: 'Null on success.' }),
});

export const TokenisedCharge = z.object({
  intentId: id('in', 'payment intent'),
  status: chargeStatus,
  errorCode: chargeError
    .optional()
    .meta({ description: 'Present only when the charge has not succeeded.' }),
});

export type Charged = Exclude<PaymentOutcome, { kind: 'refused' }>;

export function presentCharge(intentId: string, charged: Charged): z.input<typeof OneTimeCharge> {
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
export async function withCharge<Body>(
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
      if (outcome.kind === 'refused') throw new DomainError(outcome.code, outcome.message);
      const { kind } = outcome;
      const flags = { isDefinite: kind !== 'pending', isDeclined: kind === 'declined' };
      return { ...answer(intentId, outcome), ...flags };
    },
  });
}

/** Time limit in ms to void an order. Less than the 3 s between `giveUp` and the 503. */
const WITHDRAW_WITHIN_MS = 2_000;

interface Order<Outcome> {
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
  { give, withdraw }: Order<Outcome>,
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

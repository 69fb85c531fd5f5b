import { Stripe } from 'stripe';
import { GatewayRejectedRequest } from '../port.ts';
import type {
  ChargeOutcome,
  ChargeRef,
  ChargeRequest,
  LookupOutcome,
  PrepareOutcome,
  WithdrawOutcome,
} from '../port.ts';
import { stripeAmount } from './amounts.ts';
import { declinedBeforeBank } from './declines.ts';
import { failureOf, isUnexpectedState, outcomeOf, refusedCharge, unknown } from './outcomes.ts';

/**
 * Creates the PaymentIntent of a charge and does not confirm it. Moves no money. A repeat within Stripe's key lifetime
 * returns the same PaymentIntent, also after the database has lost its id.
 */
export async function prepare(stripe: Stripe, request: ChargeRequest): Promise<PrepareOutcome> {
  const scaled = stripeAmount(request.amountMinor, request.currency);
  if ('problem' in scaled) return declined(scaled.problem, null);
  const creation = creationOf(request, scaled.amount);
  try {
    const intent = await createUnder(request.key, (idempotencyKey) =>
      stripe.paymentIntents.create(creation, { idempotencyKey }),
    );
    return { kind: 'prepared', gatewayChargeId: intent.id };
  } catch (error) {
    const removed = removedMethod(error);
    if (removed) return removed;
    const refused = refusedCharge(error) ?? failureOf(error);
    return 'code' in refused ? declined(refused.code, null) : refused;
  }
}

/** Returns the decline for a payment that Stripe refused definitely, with Stripe's code. */
function declined(gatewayCode: string, gatewayChargeId: string | null) {
  return { ...declinedBeforeBank('processing_error', gatewayCode), gatewayChargeId };
}

/** A decline is read together with its charge, whose outcome says whether Stripe has asked the bank. */
const WITH_CHARGE = { expand: ['latest_charge'] };

/** Confirms the PaymentIntent, off-session without a payer. If it was confirmed or cancelled, returns its outcome. */
export async function charge(stripe: Stripe, request: ChargeRequest): Promise<ChargeOutcome> {
  const id = chargeIdOf(request);
  try {
    return undecidedIfAbsent(
      outcomeOf(await stripe.paymentIntents.confirm(id, confirmationOf(request))),
    );
  } catch (error) {
    const isDeclined = error instanceof Stripe.errors.StripeCardError;
    if (!isDeclined && !isUnexpectedState(error)) {
      return removedMethod(error) ?? (await refusedConfirmation(stripe, request, error));
    }
  }
  try {
    const intent = await stripe.paymentIntents.retrieve(id, WITH_CHARGE);
    if (isAmountOf(intent, request)) return undecidedIfAbsent(outcomeOf(intent));
  } catch (error) {
    return unknown(failureOf(error).reason);
  }
  throw new GatewayRejectedRequest(400, 'amount_differs');
}

/**
 * Returns the outcome after Stripe refused a confirmation. Another confirmation may still be in progress, so a definite
 * refusal is a decline only after the PaymentIntent was cancelled.
 */
async function refusedConfirmation(
  stripe: Stripe,
  request: ChargeRequest,
  error: unknown,
): Promise<ChargeOutcome> {
  const refused = refusedCharge(error) ?? failureOf(error);
  if (!('code' in refused)) return refused;
  const ended = await withdraw(stripe, request);
  return ended.kind === 'withdrawn' ? declined(refused.code, request.gatewayChargeId) : ended;
}

/** Reads the PaymentIntent. A charge without an id was never sent. */
export async function lookup(stripe: Stripe, ref: ChargeRef): Promise<LookupOutcome> {
  if (ref.gatewayChargeId === null) return { kind: 'absent' };
  try {
    const intent = await stripe.paymentIntents.retrieve(ref.gatewayChargeId, WITH_CHARGE);
    if (isAmountOf(intent, ref)) return outcomeOf(intent);
    const held = `${intent.amount} ${intent.currency.toUpperCase()}`;
    const reason = `under this key the gateway has a charge of ${held}`;
    return { kind: 'another_charge', reason };
  } catch (error) {
    return unknown(failureOf(error).reason);
  }
}

/** Cancels the PaymentIntent for good. If it is decided already, returns its outcome. */
export async function withdraw(stripe: Stripe, ref: ChargeRef): Promise<WithdrawOutcome> {
  const id = chargeIdOf(ref);
  try {
    return withdrawalOf(await stripe.paymentIntents.cancel(id, WITH_CHARGE));
  } catch (error) {
    if (!isUnexpectedState(error)) return unknown(failureOf(error).reason);
  }
  try {
    return withdrawalOf(await stripe.paymentIntents.retrieve(id, WITH_CHARGE));
  } catch (error) {
    return unknown(failureOf(error).reason);
  }
}

/** Returns the outcome that a PaymentIntent shows after the request to cancel it. */
function withdrawalOf(intent: Stripe.PaymentIntent): WithdrawOutcome {
  if (intent.status === 'canceled' && !intent.last_payment_error) return { kind: 'withdrawn' };
  const outcome = outcomeOf(intent);
  if (outcome.kind === 'succeeded' || outcome.kind === 'declined') return outcome;
  return unknown(`it cannot be cancelled while it is ${intent.status}`);
}

/** After a confirmation or its refusal, a PaymentIntent that reads as not confirmed has no known outcome. */
function undecidedIfAbsent(outcome: ReturnType<typeof outcomeOf>): ChargeOutcome {
  return outcome.kind === 'absent' ? unknown('it was sent and reads as not confirmed') : outcome;
}

function confirmationOf({ payer }: ChargeRequest): Stripe.PaymentIntentConfirmParams {
  return payer === undefined
    ? { off_session: true }
    : {
        return_url: payer.returnUrl,
        ...(payer.savesMethod ? { setup_future_usage: 'off_session' as const } : {}),
      };
}

function chargeIdOf({ key, gatewayChargeId }: ChargeRef): string {
  if (gatewayChargeId === null) throw new Error(`${key} was not prepared`);
  return gatewayChargeId;
}

function creationOf(
  { key, currency, gatewayMethodId, reference, description, statementSuffix }: ChargeRequest,
  amount: number,
): Stripe.PaymentIntentCreateParams {
  const [customer, method] = partsOf(gatewayMethodId);
  const { merchantId, intentId, subscriptionId, cycleNumber, paymentMethodId } = reference;
  return {
    amount,
    currency: currency.toLowerCase(),
    ...(customer === null ? {} : { customer }),
    payment_method: method,
    payment_method_types: ['card'],
    ...(typeof description === 'string' && { description: description.slice(0, 1_000) }),
    ...(typeof statementSuffix === 'string' && { statement_descriptor_suffix: statementSuffix }),
    metadata: {
      key,
      merchantId,
      intentId,
      paymentMethodId,
      ...(subscriptionId === null ? {} : { subscriptionId }),
      ...(cycleNumber ? { cycleNumber: String(cycleNumber) } : {}),
    },
  };
}

/** Splits `cus_…/pm_…`, the id of a payment method together with its customer at Stripe. */
export function partsOf(gatewayMethodId: string): [customer: string | null, method: string] {
  const [first = '', second] = gatewayMethodId.split('/');
  return second === undefined ? [null, first] : [first, second];
}

function isAmountOf(intent: Stripe.PaymentIntent, charge: ChargeRef): boolean {
  const scaled = stripeAmount(charge.amountMinor, charge.currency);
  return (
    'amount' in scaled &&
    scaled.amount === intent.amount &&
    intent.currency === charge.currency.toLowerCase()
  );
}

/** Returns the decline for a payment method that was detached, or whose customer was deleted; else null. */
function removedMethod(error: unknown) {
  const isRemoved =
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    (error.param === 'payment_method' ||
      (error.param === 'customer' && error.code === 'resource_missing') ||
      error.message.includes('was detached from a Customer'));
  if (!isRemoved) return null;
  return {
    ...declinedBeforeBank('payment_method_removed', error.code ?? null),
    gatewayChargeId: null,
  };
}

const REPLAYS_MAX = 3;

/**
 * Creates an object under `key`, or under one of three further keys while Stripe replays a stored 500. A repeat tries the
 * keys in the same order, so it finds the same object.
 */
async function createUnder<Created>(
  key: string,
  create: (idempotencyKey: string) => Promise<Created>,
  replays = 0,
): Promise<Created> {
  try {
    return await create(replays === 0 ? key : `${key}:after500:${replays}`);
  } catch (error) {
    if (replays === REPLAYS_MAX || !isReplayed500(error)) throw error;
    return createUnder(key, create, replays + 1);
  }
}

/** True if Stripe has stored a 500 under the idempotency key, and answers it as long as it keeps the key. */
function isReplayed500(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeError &&
    (error.statusCode ?? 0) >= 500 &&
    error.headers?.['idempotent-replayed'] === 'true'
  );
}

import { markSending } from '../db/repositories/attempts.ts';
import type { Attempt, Settlement } from '../db/repositories/attempts.ts';
import type { Db } from '../db/client.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { GatewayRejectedRequest } from '../gateways/port.ts';
import type {
  ChargeOutcome,
  LookupOutcome,
  PaymentGateway,
  UnknownOutcome,
} from '../gateways/port.ts';

export interface ExchangeDeps {
  db: Db;
  gateway: PaymentGateway;
}

/** No new send or question starts after this; with the gateway's own limit it stays under 15 s. */
const NEW_SENDS_FOR_MS = 6_000;
const PAUSE_BETWEEN_QUESTIONS_MS = 1_000;
/** Resends stop at this share of the time for which the gateway honours a key. Design §4. */
const KEY_LIFETIME_SHARE = 0.8;

/** Until when an activity that begins now may begin something with the gateway. */
export function sendsUntil(): number {
  return performance.now() + NEW_SENDS_FOR_MS;
}

/** Waits before asking once more. False, at once, when no time is left for it. */
export async function pauseBefore(stopAt: number): Promise<boolean> {
  if (performance.now() + PAUSE_BETWEEN_QUESTIONS_MS > stopAt) return false;
  await new Promise((resolve) => setTimeout(resolve, PAUSE_BETWEEN_QUESTIONS_MS));
  return true;
}

/** Real time: the gateway counts the age of a key from its first send. */
export function isKeyTooOld(firstSentAt: number | null, gateway: PaymentGateway): boolean {
  return (
    firstSentAt !== null &&
    Date.now() - firstSentAt > gateway.capabilities.keyLifetimeMs * KEY_LIFETIME_SHARE
  );
}

/**
 * A request that the gateway refuses as such is our own fault or a wrong setting: nothing is known of
 * what it was about, and a person reads the reason.
 */
export async function unlessRejected<T>(call: () => Promise<T>): Promise<T | UnknownOutcome> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof GatewayRejectedRequest) return { kind: 'unknown', reason: error.message };
    throw error;
  }
}

/**
 * The attempt's outcome: from its row, or else from the gateway, which is sent the charge and asked
 * about it until `stopAt`. What may be there is asked for before it is sent again, always under the
 * same key and with the stored amount, so that running this again, or twice at once, charges once.
 */
export async function collect(
  { db, gateway }: ExchangeDeps,
  attempt: Attempt,
  subscriptionId: string | null,
  stopAt: number,
): Promise<Settlement> {
  if (attempt.state === 'SUCCEEDED') {
    return { kind: 'succeeded', gatewayChargeId: attempt.gatewayChargeId ?? '' };
  }
  if (attempt.state === 'DECLINED') {
    const { errorCode, gatewayChargeId } = attempt;
    return { kind: 'declined', code: errorCode ?? 'card_declined', gatewayChargeId };
  }
  if (attempt.state === 'REVIEW') return { kind: 'unknown', reason: 'waits for a person' };

  let mayBeThere = attempt.state !== 'CREATED';
  for (;;) {
    const exchange = { db, gateway, attempt, subscriptionId };
    const outcome = await unlessRejected(() => sendOrAsk(exchange, mayBeThere));
    switch (outcome.kind) {
      case 'succeeded':
      case 'declined':
        return outcome;
      case 'absent':
        if (isKeyTooOld(attempt.firstSentAt, gateway)) {
          return {
            kind: 'unknown',
            reason: 'not at the gateway, and its key is too old to resend',
          };
        }
        mayBeThere = false;
        continue;
      case 'not_sent':
      case 'in_progress':
      case 'unknown': {
        mayBeThere = mayBeThere || outcome.kind !== 'not_sent';
        const reason = outcome.kind === 'in_progress' ? 'still in progress' : outcome.reason;
        if (!(await pauseBefore(stopAt))) return { kind: 'unknown', reason };
      }
    }
  }
}

interface ChargeExchange extends ExchangeDeps {
  attempt: Attempt;
  subscriptionId: string | null;
}

/** One exchange with the gateway. One that cannot be asked gets the same key again. */
async function sendOrAsk(
  exchange: ChargeExchange,
  mayBeThere: boolean,
): Promise<ChargeOutcome | LookupOutcome> {
  const { gateway, attempt } = exchange;
  if (!mayBeThere) return send(exchange);
  if (!gateway.capabilities.lookup) return { kind: 'absent' };
  return gateway.lookup({ key: attempt.gatewayKey });
}

async function send({ db, gateway, attempt, subscriptionId }: ChargeExchange) {
  await markSending(db, attempt);
  failpoint('before_gateway');
  const outcome = await gateway.charge({
    key: attempt.gatewayKey,
    gatewayMethodId: attempt.gatewayMethodId,
    amountMinor: attempt.amountMinor,
    currency: attempt.currency,
    reference: {
      merchantId: attempt.merchantId,
      intentId: attempt.intentId,
      subscriptionId,
      paymentMethodId: attempt.paymentMethodId,
    },
  });
  failpoint('after_gateway');
  return outcome;
}

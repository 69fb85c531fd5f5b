import type { Db } from '../../db/client.ts';
import { failSpentSetup } from '../../db/repositories/setup-methods/sessions.ts';
import { admitTry, declineTry, tryKey } from '../../db/repositories/checkouts/tries.ts';
import {
  recordMethodChange,
  subscriptionsOfMethod,
} from '../../db/repositories/customers/payment-methods.ts';
import { markHandled, unhandledHints } from '../../db/repositories/gateway-events/events.ts';
import type { GatewayAccount } from '../../db/repositories/gateway-events/events.ts';
import {
  findNamedAttempt,
  findNamedMethod,
  findNamedRefund,
  findNamedSession,
  isUndecided,
} from '../../db/repositories/gateway-events/subjects.ts';
import type { NamedSession } from '../../db/repositories/gateway-events/subjects.ts';
import { recordDispute, recordFraudWarning } from '../../db/repositories/payments/disputes.ts';
import { lookAtPayment } from '../../db/repositories/payments/charges.ts';
import { noteGatewayEvent } from '../../db/repositories/subscriptions/attempts.ts';
import {
  hasReplacedCard,
  recordNewDetails,
} from '../../db/repositories/subscriptions/method-updates.ts';
import { findCommand } from '../../db/repositories/subscriptions/row.ts';
import type { GatewayHint, GatewaySubject } from '../../domain/gateway-hint.ts';
import { CARD_TRIES_MAX } from '../../domain/payment-method.ts';
import type { SavedCard } from '../../gateways/port.ts';
import { submitCard } from '../../temporal/cards.ts';
import { outcomeUnknown } from '../failures.ts';
import type { ActivityDeps } from '../deps.ts';

type GatewayEventDeps = Pick<
  ActivityDeps,
  'db' | 'gateways' | 'subscriptionWorkflows' | 'orders' | 'wakeStream'
>;

type HintOf<Kind extends GatewayHint['kind']> = Extract<GatewayHint, { kind: Kind }>;

export function createGatewayEventActivities(deps: GatewayEventDeps) {
  return {
    /** Handles the stored events of one object. A repeat is safe. Throws a retryable error. */
    async handleGatewaySubject(input: GatewaySubject & { nowAt: number }): Promise<void> {
      const { nowAt, ...subject } = input;
      const hints = await unhandledHints(deps.db, subject);
      const [hint] = hints;
      if (!hint) return;
      await look(deps, subject, hint, nowAt);
      const eventIds = hints.map(({ eventId }) => eventId);
      await markHandled(deps.db, subject, eventIds);
    },
  };
}

function look(
  deps: GatewayEventDeps,
  account: GatewayAccount,
  hint: GatewayHint,
  nowAt: number,
): Promise<void> {
  switch (hint.kind) {
    case 'charge':
      return recheckCharge(deps, account, hint);
    case 'refund':
      return recheckRefund(deps, account, hint);
    case 'dispute':
      return lookAtDispute(deps, account, hint, nowAt);
    case 'fraud_warning':
      return lookAtFraudWarning(deps, account, hint, nowAt);
    case 'method':
      return lookAtMethod(deps, account, hint, nowAt);
    case 'card_entry':
      return takeEnteredCard(deps, account, hint, nowAt);
    case 'ignored':
      return Promise.resolve();
  }
}

/** Makes the attempt's workflow, or the late-charge watch that runs, look the charge up. */
async function recheckCharge(
  { db, subscriptionWorkflows, orders }: GatewayEventDeps,
  account: GatewayAccount,
  hint: HintOf<'charge'>,
): Promise<void> {
  const named = await findNamedAttempt(db, account, hint.gatewayChargeId);
  if (!named) return;
  const { attempt, subscriptionId, isWatched } = named;
  const { merchantId, intentId, id: attemptId } = attempt;
  if (isWatched) await orders.recheck('lateCharge', { merchantId, attemptId });
  if (!isUndecided(attempt)) return;
  await noteGatewayEvent(db, attempt);
  if (subscriptionId !== null) await subscriptionWorkflows.recheck({ merchantId, subscriptionId });
  else await orders.recheck('payment', { merchantId, intentId, token: null });
}

async function recheckRefund(
  { db, orders }: GatewayEventDeps,
  account: GatewayAccount,
  hint: HintOf<'refund'>,
): Promise<void> {
  const refundId = await findNamedRefund(db, account, hint);
  const { merchantId } = account;
  if (refundId !== null) await orders.recheck('refund', { merchantId, refundId });
}

async function lookAtDispute(
  { db, gateways, subscriptionWorkflows, wakeStream }: GatewayEventDeps,
  account: GatewayAccount,
  { gatewayDisputeId, gatewayChargeId }: HintOf<'dispute'>,
  nowAt: number,
): Promise<void> {
  const named = await findNamedAttempt(db, account, gatewayChargeId);
  const gateway = await gateways.of(account.merchantId, account.gateway);
  if (!named || !gateway.lookupDispute) return;
  const found = await gateway.lookupDispute(gatewayDisputeId);
  if (found.kind === 'unknown') throw outcomeUnknown(found.reason);
  if (found.kind === 'absent' || found.dispute.gatewayChargeId !== gatewayChargeId) return;
  const { attempt } = named;
  const recorded = await recordDispute(db, attempt, gatewayDisputeId, found.dispute, nowAt);
  // The transaction has changed the timeline in the row, which the workflow must read again.
  if (recorded.subscription) await subscriptionWorkflows.recheck(recorded.subscription);
  await wakeStream(recorded.stream);
}

async function lookAtFraudWarning(
  { db, gateways, wakeStream }: GatewayEventDeps,
  account: GatewayAccount,
  { gatewayWarningId, gatewayChargeId }: HintOf<'fraud_warning'>,
  nowAt: number,
): Promise<void> {
  const named = await findNamedAttempt(db, account, gatewayChargeId);
  const gateway = await gateways.of(account.merchantId, account.gateway);
  if (!named || !gateway.lookupFraudWarning) return;
  const found = await gateway.lookupFraudWarning(gatewayWarningId);
  if (found.kind === 'unknown') throw outcomeUnknown(found.reason);
  if (found.kind === 'absent' || found.gatewayChargeId !== gatewayChargeId) return;
  await wakeStream(await recordFraudWarning(db, named.attempt, found.fraudType, nowAt));
}

const hasNewDetails = (known: Details, { lastFourDigit, expiryMonth, expiryYear }: Details) =>
  known.lastFourDigit !== lastFourDigit ||
  known.expiryMonth !== expiryMonth ||
  known.expiryYear !== expiryYear;

type Details = Pick<SavedCard, 'lastFourDigit' | 'expiryMonth' | 'expiryYear'>;

async function lookAtMethod(
  { db, gateways, subscriptionWorkflows, wakeStream }: GatewayEventDeps,
  account: GatewayAccount,
  hint: HintOf<'method'>,
  nowAt: number,
): Promise<void> {
  const method = await findNamedMethod(db, account, hint.gatewayMethodId);
  const gateway = await gateways.of(account.merchantId, account.gateway);
  if (!method) return;
  const found = await gateway.lookupMethod(method.gatewayMethodId);
  if (found.kind === 'unknown') throw outcomeUnknown(found.reason);
  const { merchantId, id } = method;
  const card = found.kind === 'found' ? found.card : null;
  // Before the method's row, so that a repeat after a crash finds the same difference.
  if (card !== null && hasNewDetails(method, card)) {
    for (const ref of await subscriptionsOfMethod(db, method)) {
      if (await recordNewDetails(db, ref, card, nowAt)) await subscriptionWorkflows.recheck(ref);
    }
  }
  await recordMethodChange(db, { merchantId, id }, card, nowAt);
  await wakeStream({ merchantId, streamId: id });
}

/** Submits a card of the gateway's page, as its return may, too: the token is the command's id. */
async function takeEnteredCard(
  deps: GatewayEventDeps,
  { merchantId, gateway: name }: GatewayAccount,
  { token, session: sessionId }: HintOf<'card_entry'>,
  nowAt: number,
): Promise<void> {
  const { db } = deps;
  const session = await findNamedSession(db, merchantId, sessionId);
  if (!session || (await isOver(db, session))) return;
  const ref = { merchantId, sessionId, key: tryKey(token) };
  const { capabilities } = await deps.gateways.of(merchantId, name);
  const limit = CARD_TRIES_MAX[capabilities.mode];
  if (!(await admitTry(db, ref, { limit, nowAt }))) return;
  const { purpose, subscriptionId, intentId, setupMethodId } = session;
  const subjectId = subscriptionId ?? intentId ?? setupMethodId;
  if (subjectId === null) throw new Error(`the session ${sessionId} has no subject`);
  const takers = { workflows: deps.subscriptionWorkflows, orders: deps.orders };
  const outcome = await submitCard(takers, { merchantId, sessionId, purpose, subjectId }, token);
  if (outcome.kind === 'waiting') throw outcomeUnknown('another card is undecided');
  if (outcome.kind === 'pending' && !(await isTaken(db, session, token, nowAt))) {
    throw outcomeUnknown('the card is not taken yet');
  }
  if (outcome.kind !== 'declined' || !(await declineTry(db, ref, outcome.errorCode))) return;
  if (setupMethodId !== null) {
    await failSpentSetup(db, { merchantId, sessionId, setupMethodId }, limit);
  }
}

/** True if the rows have the card. Until then, the work that a caller has stopped waiting for may still fail. */
async function isTaken(
  db: Db,
  { merchantId, id: checkoutSessionId, subscriptionId, intentId }: NamedSession,
  paymentToken: string,
  nowAt: number,
): Promise<boolean> {
  if (subscriptionId !== null) {
    return (await findCommand(db, { merchantId, subscriptionId }, paymentToken)) !== null;
  }
  if (intentId === null) return false;
  const token = { paymentToken, checkoutSessionId };
  const { kind } = await lookAtPayment(db, { merchantId, intentId, token }, nowAt);
  return kind === 'goOn' || kind === 'settled';
}

/** True if the payer has replaced the card: a late event must not restore an older card. */
async function isOver(db: Db, session: NamedSession): Promise<boolean> {
  const { merchantId, id: sessionId, purpose, subscriptionId } = session;
  if (purpose !== 'update_method' || subscriptionId === null) return false;
  return hasReplacedCard(db, { merchantId, sessionId, subscriptionId });
}

import { randomBytes } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { emailNormalForm } from '../../../domain/email.ts';
import { intentEventBody, isIntentEvent, subscriptionEventBody } from '../../../domain/events.ts';
import type { EventDraft, IntentFacts, SubscriptionFacts } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import { chargeKey, shownKind } from '../../../domain/payment-intent.ts';
import type { RetryPlan } from '../../../domain/retry-plan.ts';
import { intentEvent } from '../../../domain/subscription/change.ts';
import type { Change } from '../../../domain/subscription/change.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import { paymentIntents } from '../../schema/payment-intents.ts';
import { paymentMethods } from '../../schema/payment-methods.ts';
import { subscriptionCommands } from '../../schema/subscription-commands.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import type { Attempt, ChargeableState, Opening } from './attempts.ts';
import type { Settlement } from '../../../domain/settlement.ts';
import { cardOf } from '../payments/events.ts';
import type { EventToStore } from '../webhooks/outbox.ts';
import {
  commandPart,
  json,
  movedPart,
  outboxParts,
  timestamp,
  undone,
  withParts,
} from './statement-parts.ts';
import { isRecord } from '../is-record.ts';

/**
 * The usual charge in three round trips and two commits: read, open, settle. In every unusual case, these
 * statements change nothing, and the caller uses the transactions in `attempts.ts` instead. Unusual cases are a
 * repeat, another run that changed the subscription, and an intent of the cycle that was inserted after the read.
 */

/** An attempt that this call opened and may send at once, with the data for its settlement. */
export interface FreshAttempt {
  attempt: Attempt;
  facts: ChargeFacts;
}

/** Data for the events of a charge. The data does not change during the charge. */
interface ChargeFacts {
  intent: IntentFacts;
  subscription: Pick<SubscriptionFacts, 'receiptId' | 'metadata'>;
  retryPlan: RetryPlan;
}

/**
 * Records the opening and the attempt, as SENDING, in one statement. If the process dies before the send, a
 * later run looks up the charge. Returns null if nothing was recorded; the caller must then use
 * `openAttemptRow`.
 */
export async function openFreshAttempt(
  db: Db,
  state: ChargeableState,
  opening: Opening | null,
): Promise<FreshAttempt | null> {
  if (!opening || Object.keys(opening.effects).length > 0) return null;
  const found = await readFacts(db, state, opening.command?.commandId ?? '');
  if (!found || found.version !== state.version - 1 || found.knownCommandId !== null) return null;
  const attempt = newAttempt(state, found);
  const created = intentEvent(
    'intent.created',
    state.owed.intentId,
    state.openAttempt.startedAt,
    'CREATED',
  );
  // `intent.created` comes before the first attempt, so the event has no card.
  const toStore = eventsToStore(state, {
    ...found.facts,
    intent: { ...found.facts.intent, card: null },
  });
  const parts = [
    movedPart(state, state.version - 1, opening.transitionId),
    ...(opening.command ? [commandPart(opening.command, opening.nowAt)] : []),
    found.isNewIntent ? newIntentPart(state, found) : pendingIntentPart(attempt),
    attemptPart(attempt),
    ...outboxParts(found.isNewIntent ? [created].map(toStore) : []),
  ];
  const query = withParts(parts, sql`select count(*)::int as moved from moved`);
  const [answer] = await db.execute<{ moved: number }>(query).catch(undone);
  return answer?.moved === 1 ? { attempt, facts: found.facts } : null;
}

/**
 * Records the outcome of a fresh attempt and all consequences, in one statement. Changes nothing and returns
 * false if `change` has an effect other than `livePaymentMethodId`, or if another process has changed the attempt
 * or the subscription.
 */
export async function settleFreshAttempt(
  db: Db,
  { attempt, facts }: FreshAttempt,
  settled: {
    state: ChargeableState;
    settlement: Extract<Settlement, { kind: 'succeeded' | 'declined' }>;
    change: Change;
    result: CommandResult | null;
    nowAt: number;
  },
): Promise<boolean> {
  const { state, settlement, change, result, nowAt } = settled;
  const { livePaymentMethodId, ...others } = change.effects;
  if (Object.keys(others).length > 0) return false;
  const isPaid = settlement.kind === 'succeeded';
  const errorCode = isPaid ? null : settlement.code;
  const { commandId } = state.openAttempt;
  const parts = [
    movedPart(change.state, state.version, `${state.subscriptionId}:${change.state.version}`),
    // Reads from `moved`, so that the subscription's row is locked before the attempt's row.
    sql`settled as (
      update payment_attempt a set state = ${isPaid ? 'SUCCEEDED' : 'DECLINED'},
        gateway_charge_id = coalesce(${settlement.gatewayChargeId}::text, a.gateway_charge_id),
        error_code = ${errorCode},
        gateway_code = ${isPaid ? null : (settlement.gatewayCode ?? null)},
        settled_at = now()
      from moved m
      where a.merchant_id = m.merchant_id and a.id = ${attempt.id} and a.state = 'SENDING'
      returning a.id)`,
    sql`intent as (
      update payment_intent i set status = ${isPaid ? 'SUCCESS' : 'FAILED'},
        error_code = ${errorCode}, updated_at = now(),
        succeeded_at = coalesce(${timestamp(isPaid ? nowAt : null)}, i.succeeded_at)
      from moved m where i.merchant_id = m.merchant_id and i.id = ${attempt.intentId})`,
    ...(commandId !== null && result ? [commandResultPart(commandId, result)] : []),
    ...(livePaymentMethodId === undefined ? [] : [liveMethodPart(livePaymentMethodId)]),
    ...outboxParts(change.events.map(eventsToStore(state, facts))),
  ];
  // If `settled` or `moved` changed no row, the division by zero rolls back the whole statement.
  const isWhole = sql`(select count(*) from settled) = 1 and (select count(*) from moved) = 1`;
  const query = withParts(parts, sql`select 1 / (case when ${isWhole} then 1 else 0 end) as whole`);
  return (await db.execute(query).catch(undone)).length === 1;
}

type FoundFacts = NonNullable<Awaited<ReturnType<typeof readFacts>>>;

async function readFacts(db: Db, state: ChargeableState, commandId: string) {
  const { merchantId, subscriptionId, owed, openAttempt } = state;
  const [row] = await db
    .select({
      version: subscriptions.version,
      customerDetails: subscriptions.customerDetails,
      metadata: subscriptions.metadata,
      receiptId: subscriptions.receiptId,
      presentmentCurrency: subscriptions.presentmentCurrency,
      method: paymentMethods,
      settings: merchants.settings,
      intent: paymentIntents,
      knownCommandId: subscriptionCommands.commandId,
    })
    .from(subscriptions)
    .innerJoin(merchants, eq(merchants.id, subscriptions.merchantId))
    .innerJoin(
      paymentMethods,
      isRecord(paymentMethods, subscriptions.merchantId, openAttempt.paymentMethodId),
    )
    .leftJoin(paymentIntents, isRecord(paymentIntents, subscriptions.merchantId, owed.intentId))
    .leftJoin(
      subscriptionCommands,
      and(
        eq(subscriptionCommands.merchantId, subscriptions.merchantId),
        eq(subscriptionCommands.subscriptionId, subscriptions.id),
        eq(subscriptionCommands.commandId, commandId),
      ),
    )
    .where(isRecord(subscriptions, merchantId, subscriptionId));
  if (!row) return null;
  const { intent, method, settings, version, knownCommandId, metadata, ...terms } = row;
  const facts: ChargeFacts = {
    intent: {
      kind: shownKind(
        { kind: 'cycle', cycleNumber: owed.cycleNumber },
        state.terms.upfrontAmountMinor !== null,
      ),
      comments: null,
      amountMinor: intent?.amountMinor ?? owed.amountMinor,
      currency: intent?.currency ?? state.terms.currency,
      presentmentCurrency: intent?.presentmentCurrency ?? terms.presentmentCurrency,
      receiptId: intent ? intent.receiptId : terms.receiptId,
      subscriptionId,
      customerDetails: intent?.customerDetails ?? terms.customerDetails,
      metadata: intent ? intent.metadata : metadata,
      card: cardOf(method),
    },
    subscription: { receiptId: terms.receiptId, metadata },
    retryPlan: settings.retryPlan,
  };
  return { version, knownCommandId, isNewIntent: intent === null, method, facts };
}

function newAttempt(state: ChargeableState, { method }: FoundFacts): Attempt {
  const { merchantId, owed, openAttempt } = state;
  const { attemptNumber, trigger, startedAt, sessionId = null } = openAttempt;
  const sentAt = Date.now();
  return {
    merchantId,
    id: newId('att', startedAt, randomBytes),
    intentId: owed.intentId,
    attemptNumber,
    commandId: null,
    sessionId,
    trigger,
    gateway: method.gateway,
    gatewayKey: chargeKey(owed.intentId, attemptNumber),
    gatewayMethodId: method.gatewayMethodId,
    paymentMethodId: method.id,
    state: 'SENDING',
    amountMinor: owed.amountMinor,
    currency: state.terms.currency,
    gatewayChargeId: null,
    errorCode: null,
    gatewayCode: null,
    reason: null,
    payerUrl: null,
    payerAskedAt: null,
    payerLeftAt: null,
    createdAt: startedAt,
    firstSentAt: sentAt,
    lastSentAt: sentAt,
    settledAt: null,
    unansweredAt: null,
    rechecks: 0,
    noRecheckBeforeAt: null,
  };
}

function attemptPart(attempt: Attempt): SQL {
  return sql`attempt as (
    insert into payment_attempt (merchant_id, id, intent_id, attempt_number, session_id, trigger, gateway,
      gateway_key, gateway_method_id, payment_method_id, state, amount_minor, currency, created_at,
      first_sent_at, last_sent_at)
    select merchant_id, ${attempt.id}, ${attempt.intentId}, ${attempt.attemptNumber}::int, ${attempt.sessionId}::text,
      ${attempt.trigger}, ${attempt.gateway}, ${attempt.gatewayKey}, ${attempt.gatewayMethodId},
      ${attempt.paymentMethodId}, ${attempt.state}, ${attempt.amountMinor}::bigint,
      ${attempt.currency}, ${timestamp(attempt.createdAt)}, now(), now()
    from moved)`;
}

function newIntentPart(state: ChargeableState, { facts, method }: FoundFacts): SQL {
  const { owed, openAttempt, customerId, terms } = state;
  return sql`intent as (
    insert into payment_intent (merchant_id, id, subscription_id, cycle_number, customer_id,
      payment_method_id, amount_minor, currency, presentment_currency, status, receipt_id, metadata,
      customer_details, normal_email, created_at, due_at)
    select merchant_id, ${owed.intentId}, id, ${owed.cycleNumber}::int, ${customerId}, ${method.id},
      ${owed.amountMinor}::bigint, ${terms.currency}, ${facts.intent.presentmentCurrency}, 'PENDING',
      ${facts.intent.receiptId}, ${json(facts.intent.metadata)}::json,
      ${json(facts.intent.customerDetails)}::json,
      ${emailNormalForm(facts.intent.customerDetails.email)}::text,
      ${timestamp(openAttempt.startedAt)}, ${timestamp(owed.dueAt)}
    from moved)`;
}

function pendingIntentPart(attempt: Attempt): SQL {
  return sql`intent as (
    update payment_intent i set status = 'PENDING', payment_method_id = ${attempt.paymentMethodId},
      updated_at = now()
    from moved m where i.merchant_id = m.merchant_id and i.id = ${attempt.intentId})`;
}

function commandResultPart(commandId: string, result: CommandResult): SQL {
  return sql`command as (
    update subscription_command c set result = ${JSON.stringify(result)}::jsonb
    from moved m where c.merchant_id = m.merchant_id and c.subscription_id = m.id
      and c.command_id = ${commandId} and c.result is null)`;
}

function liveMethodPart(paymentMethodId: string): SQL {
  return sql`method as (
    update payment_method p set status = 'LIVE'
    from moved m where p.merchant_id = m.merchant_id and p.id = ${paymentMethodId})`;
}

function eventsToStore(
  state: ChargeableState,
  facts: ChargeFacts,
): (draft: EventDraft) => EventToStore {
  const { subscriptionId, customerId } = state;
  const ofSubscription = { subscriptionId, customerId, ...facts.subscription };
  return (draft) => ({
    type: draft.type,
    occurredAt: draft.at,
    body: (envelope) =>
      isIntentEvent(draft)
        ? intentEventBody(draft, envelope, facts.intent)
        : subscriptionEventBody(draft, envelope, ofSubscription),
  });
}

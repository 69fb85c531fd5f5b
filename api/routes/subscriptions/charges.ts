import { z } from 'zod';
import { listCycleAttempts } from '../../../db/repositories/payments/cycle-attempts.ts';
import type { CycleAttempt } from '../../../db/repositories/payments/cycle-attempts.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { declineMessage as messageOf } from '../../../domain/declines.ts';
import { ATTEMPT_TRIGGERS, SETTLED_BY } from '../../../domain/payment-intent.ts';
import { actorOfCause, causeText } from '../../../domain/subscription/charge-cause.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../../db/client.ts';
import type { ChargeCause } from '../../../domain/subscription/charge-cause.ts';
import type { AttemptTrigger } from '../../../domain/payment-intent.ts';
import {
  actor,
  count,
  currencyCode,
  dateTime,
  declineCode,
  declineMessage,
  epochMs,
  id,
  minorAmount,
  pageAnswer,
  subscriptionStatus,
} from '../../answer-fields.ts';
import { AdviceAnswer, presentAdvice } from '../../advice.ts';
import { notFound, withoutNulls } from '../../http/request.ts';
import { answerNumbered, numberedQuery } from '../../lists.ts';
import { ATTEMPT_STATUS, chargeStatus, DisputeAnswer, presentDispute } from '../payments/intent.ts';
import { presentRefund, RefundAnswer } from '../payments/refunds.ts';
import { route } from '../../http/route.ts';
import { interval } from './create.ts';
import { refOf, subscriptionIdParam, subscriptionOf } from './read.ts';
import { refundsOf } from '../../../db/repositories/payments/refunds.ts';
import { hasSubscription, listEntries } from '../../../db/repositories/subscriptions/row.ts';
import type { RecordedEntry } from '../../../db/repositories/subscriptions/row.ts';
import { textOf } from '../../../domain/subscription/entries.ts';

const RULES = ['due_date', 'retry_plan', 'set_date', 'command', 'payer', 'adopted'] as const;

const Cause = z
  .object({
    text: z
      .string()
      .meta({ description: 'The cause in one sentence, with the arithmetic of its date.' }),
    actor: actor,
    rule: z.enum(RULES).meta({
      description:
        '`due_date`: date `index` of the calendar that began at `anchor`. `retry_plan`: retry `retry` of `retries`. ' +
        '`set_date`: a command, a new payment method or the bank’s advice had set the date. `command`: a manual retry. ' +
        '`adopted`: it was copied from the book of the payment gateway after a restore.',
    }),
    anchor: dateTime('Date 0 of the calendar.').optional(),
    index: count('Number of the date in the calendar, from 0.').optional(),
    interval: interval.optional(),
    intervalCount: count('Number of intervals from one date to the next.').optional(),
    plannedAt: dateTime('When the attempt was planned.').optional(),
    retry: count('Number of the retry, from 1.').optional(),
    retries: count('Number of retries of the plan.').optional(),
    previousAt: dateTime('The automatic attempt from which the delay counts.').optional(),
    commandId: z.string().optional(),
  })
  .meta({ id: 'ChargeCause' });

const Charge = z
  .object({
    cycleNumber: count('Number of the cycle, from 1.'),
    attempt: count('Number of the attempt on the cycle, from 1.'),
    xIntentId: id('in', 'payment intent'),
    amount: minorAmount('Amount of the charge.'),
    currency: currencyCode,
    trigger: z.enum(ATTEMPT_TRIGGERS),
    cause: Cause.optional().meta({
      description:
        'Absent for a declined attempt that was copied from the book of the payment gateway.',
    }),
    dueAt: dateTime('When the cycle was due.').optional(),
    createdAt: dateTime('When the attempt was opened.'),
    sentAt: z.array(z.string()).meta({
      description:
        'Real time before each send, ISO 8601. Every send has the same `gatewayKey`, so at most one charges.',
    }),
    lookups: count('Number of sends and look-ups that ended without an outcome.'),
    gateway: z.string(),
    gatewayKey: z.string().meta({ description: 'Idempotency key at the payment gateway.' }),
    gatewayChargeId: z.string().optional(),
    status: chargeStatus,
    errorCode: declineCode.optional(),
    errorMessage: declineMessage.optional(),
    gatewayCode: z.string().optional(),
    networkCode: z.string().optional().meta({
      description:
        'Code of the card network or the bank for the decline, if the gateway reports it.',
    }),
    advice: AdviceAnswer.optional(),
    settledAt: dateTime('Real time at which the outcome was recorded.').optional(),
    settledBy: z
      .enum(SETTLED_BY)
      .optional()
      .meta({
        description:
          'Where the outcome came from. `gateway`: the answer to the charge. `look_up`: a later question. `event`: the ' +
          'same, after an event of the gateway. `person`: manual review. `void`: a command voided the attempt before it was charged.',
      }),
    refunds: z.array(RefundAnswer),
    disputes: z.array(DisputeAnswer),
  })
  .meta({ id: 'Charge' });

const exampleCharge = {
  cycleNumber: 2,
  attempt: 1,
  xIntentId: 'in_0002sSOLuRz8kF5dGhJ3lMnB',
  amount: 1_999,
  currency: 'USD',
  trigger: 'scheduled' as const,
  cause: {
    text: 'its date had come: 2026-11-20T12:00:00.000Z + 1 month = 2026-12-20T12:00:00.000Z',
    actor: 'schedule' as const,
    rule: 'due_date' as const,
    anchor: '2026-11-20T12:00:00.000Z',
    index: 1,
    interval: 'MONTH' as const,
    intervalCount: 1,
  },
  dueAt: '2026-12-20T12:00:00.000Z',
  createdAt: '2026-12-20T12:00:00.000Z',
  sentAt: ['2026-12-20T12:00:00.041Z'],
  lookups: 0,
  gateway: 'sandbox',
  gatewayKey: 'charge:in_0002sSOLuRz8kF5dGhJ3lMnB:1',
  gatewayChargeId: 'ch_sandbox_0002sSOLuRz8kF5d',
  status: 'SUCCESS' as const,
  settledAt: '2026-12-20T12:00:00.093Z',
  settledBy: 'gateway' as const,
  refunds: [],
  disputes: [],
};

export const getCharges = route({
  operationId: 'subscriptionCharges',
  method: 'get',
  path: '/subscription/charges/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read every charge of a subscription, and why it was made',
  description:
    'One record for each attempt on a billing cycle, oldest first: what caused it, when it was sent, and how its outcome ' +
    'became known. No record is ever deleted.',
  isExtension: true,
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  query: numberedQuery('attempts'),
  answer: pageAnswer('A page of attempts.', Charge, exampleCharge, {
    summary: 'A renewal',
    order: 'Oldest first.',
  }),
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const ref = refOf(call);
    if (!(await hasSubscription(db, ref))) throw notFound('subscription');
    return answerNumbered(
      call,
      (query) => listCycleAttempts(db, ref, query),
      (_, position) => position,
      presentCharge,
    );
  },
});

function presentCharge({ attempt, cycleNumber, dueAt, refunds, disputes }: CycleAttempt) {
  const { errorCode, gatewayCode, gatewayChargeId, settledBy, cause, settledAt } = attempt;
  return {
    cycleNumber,
    attempt: attempt.attemptNumber,
    xIntentId: attempt.intentId,
    amount: attempt.amountMinor,
    currency: attempt.currency,
    trigger: attempt.trigger,
    createdAt: formatInstant(attempt.createdAt),
    sentAt: attempt.sentAt.map(formatInstant),
    lookups: attempt.lookups,
    gateway: attempt.gateway,
    gatewayKey: attempt.gatewayKey,
    status: ATTEMPT_STATUS[attempt.state],
    ...withoutNulls({
      cause: cause && presentCause(cause, attempt.trigger),
      dueAt: dueAt === null ? null : formatInstant(dueAt),
      settledAt: settledAt === null ? null : formatInstant(settledAt),
      gatewayChargeId,
      errorCode,
      errorMessage: messageOf(errorCode),
      gatewayCode,
      networkCode: attempt.networkCode,
      advice: presentAdvice(attempt.advice),
      settledBy,
    }),
    refunds: refunds.map(presentRefund),
    disputes: disputes.map(presentDispute),
  };
}

function presentCause(cause: ChargeCause, trigger: AttemptTrigger) {
  const said = { text: causeText(cause, trigger), actor: actorOfCause(cause), rule: cause.rule };
  switch (cause.rule) {
    case 'due_date': {
      const { anchorAt, index, interval: unit, intervalCount } = cause;
      return { ...said, anchor: formatInstant(anchorAt), index, interval: unit, intervalCount };
    }
    case 'retry_plan':
      return {
        ...said,
        plannedAt: formatInstant(cause.plannedAt),
        retry: cause.retry,
        retries: cause.delaysMs.length,
        previousAt: formatInstant(cause.previousAt),
      };
    case 'set_date': {
      const { plannedAt, setBy } = cause;
      const commandId = 'commandId' in setBy ? setBy.commandId : null;
      return { ...said, plannedAt: formatInstant(plannedAt), ...withoutNulls({ commandId }) };
    }
    case 'command':
      return { ...said, commandId: cause.commandId };
    case 'payer':
    case 'adopted':
      return said;
  }
}

export const getTimeline = route({
  operationId: 'subscriptionTimeline',
  method: 'get',
  path: '/subscription/timeline/:subscriptionId',
  tag: 'Subscriptions',
  summary: 'Read the timeline of a subscription',
  description:
    'Every change of the subscription with its time and reason, in human-readable text, oldest first. No entry is ever ' +
    'changed or deleted; the entry of a paid cycle has the refunds that followed.',
  isExtension: true,
  isReadLimited: true,
  params: { subscriptionId: subscriptionIdParam },
  query: numberedQuery('entries'),
  answer: pageAnswer(
    'A page of the timeline.',
    z.object({
      date: epochMs('When the change happened.'),
      what: z.string(),
      why: z.string(),
      status: subscriptionStatus.meta({ description: 'The status after it.' }),
      actor: actor.meta({
        description: 'Cause of the change. `operator`: an operator of the service.',
      }),
      refunds: z
        .array(RefundAnswer)
        .optional()
        .meta({ description: 'Of the payment that the entry records. Absent without a refund.' }),
    }),
    {
      date: 1_795_176_000_000,
      what: 'created',
      why: 'the merchant asked for it',
      status: 'CREATED',
      actor: 'merchant',
    },
    { summary: 'Just created', order: 'Oldest first.' },
  ),
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const ref = refOf(call);
    const { state } = await subscriptionOf(db, call);
    return answerNumbered(
      call,
      async ({ after, limit }) =>
        withRefunds(db, ref, await listEntries(db, ref, { afterVersion: after, limit })),
      ({ entry }) => entry.version,
      ({ entry, refunds }) => ({
        date: entry.at,
        ...textOf(entry, state.terms),
        status: entry.statusAfter,
        actor: entry.actor,
        ...(refunds.length > 0 && { refunds: refunds.map(presentRefund) }),
      }),
    );
  },
});

async function withRefunds(
  db: Db,
  { merchantId }: SubscriptionRef,
  entries: readonly RecordedEntry[],
) {
  const paid = entries.flatMap((entry) => (entry.kind === 'paid' ? [entry.intentId] : []));
  const made = await refundsOf(db, merchantId, paid);
  return entries.map((entry) => ({
    entry,
    refunds: made.filter(
      ({ intentId, lateAttemptId }) =>
        entry.kind === 'paid' && intentId === entry.intentId && lateAttemptId === null,
    ),
  }));
}

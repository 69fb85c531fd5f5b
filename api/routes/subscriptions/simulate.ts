import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import type { PaymentMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { unpaidAttempts } from '../../../db/repositories/subscriptions/attempts.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/row.ts';
import type { MerchantSettings } from '../../../db/schema/merchants.ts';
import { UnknownGateway } from '../../../gateways/registry.ts';
import { invariant } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { noticeRulesOf } from '../../../domain/notice-rules.ts';
import { cardExpiresAt } from '../../../domain/payment-method.ts';
import { ATTEMPT_TRIGGERS } from '../../../domain/payment-intent.ts';
import { AFTER_EXHAUSTED, readDelays, UNPAID_FROM } from '../../../domain/retry-plan.ts';
import type { RetryPlan } from '../../../domain/retry-plan.ts';
import { creationStep, simulateByStep } from '../../../domain/subscription/simulate.ts';
import type { Script, SimulatedStep } from '../../../domain/subscription/simulate.ts';
import {
  initialJitter,
  newSubscription,
  nextPaymentAt,
} from '../../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import { checkUnanswered } from '../../../runtime/request-scope.ts';
import {
  count,
  currencyCode,
  declineCode,
  endReason,
  epochMs,
  eventType,
  minorAmount,
  SUBSCRIPTION_ID,
  subscriptionStatus,
} from '../../answer-fields.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  currency,
  customerDetails,
  gatewayAmountProblems,
  idText,
  instant,
  optional,
} from '../../fields.ts';
import { hasFields, refuseProblems } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { found, ok, withoutNulls } from '../../http/request.ts';
import { route } from '../../http/route.ts';
import {
  creationTime,
  cycleCount,
  datedProblems,
  interval,
  intervalCount,
  termsFields,
  termsFieldsProblems,
  termsOf,
} from './create.ts';
import {
  checkoutOf,
  commandsOf,
  newAmountsOf,
  outcomesOf,
  SCRIPT_MAX,
  scriptEntry,
  scriptProblems,
} from './simulate-script.ts';

const RUNNING = {
  subscriptionId: optional(idText()).describe(
    'A subscription, from its present state on. Absent: a new one, with the fields of the request to create it.',
  ),
};

const ASSUMED = {
  retryPlan: optional(z.array(z.string())).describe(
    'Delay of each retry after the attempt before it, such as `4h` or `2d`; an empty list: no retries. Default: yours.',
  ),
  afterExhausted: optional(z.enum(AFTER_EXHAUSTED)).describe(
    'What happens after the last retry. Default: your setting.',
  ),
  unpaidFrom: optional(z.enum(UNPAID_FROM)).describe(
    'When a declined subscription becomes UNPAID. Default: your setting.',
  ),
  script: optional(z.array(scriptEntry).max(SCRIPT_MAX)).describe(
    'Outcomes and commands. Every attempt without an outcome is paid.',
  ),
};

const NEW = {
  ...termsFields,
  amount: optional(termsFields.amount).describe('Amount of each cycle.'),
  currency: optional(currency),
  interval: optional(interval),
  intervalCount: optional(intervalCount),
  cycleCount: optional(cycleCount),
  callbackUrl: optional(termsFields.callbackUrl).describe('Changes nothing here.'),
  customerDetails: optional(customerDetails).describe('Changes nothing here.'),
  startDate: optional(instant).describe(
    'When a new subscription is created, and its payer enters a card. Default: the time of its test clock, else now.',
  ),
  testClockId: optional(idText()).describe('The test clock of a new subscription.'),
};

const fields = { ...RUNNING, ...NEW, ...ASSUMED };

type Given = Fields<typeof fields>;

const REQUIRED = ['amount', 'currency', 'interval', 'intervalCount', 'cycleCount'] as const;

function requestProblems(given: Partial<Given>, { now }: ApiDeps): Problem[] {
  const assumed = [...scriptProblems(given.script ?? []), ...retryPlanProblems(given)];
  if (given.subscriptionId !== undefined) return [...assumed, ...unusedProblems(given)];
  const { startDate: startAt = given.testClockId === undefined ? now() : null } = given;
  const missing = REQUIRED.filter((field) => given[field] === undefined);
  return [
    ...assumed,
    ...missing.map((field) => ({ field, message: 'is required without subscriptionId' })),
    ...termsFieldsProblems(given),
    ...(startAt === null ? [] : datedProblems(given, startAt)),
  ];
}

/** A running subscription has its own terms: a plan with others would look like an answer to them. */
function unusedProblems(given: Partial<Given>): Problem[] {
  return (Object.keys(NEW) as (keyof typeof NEW)[])
    .filter((field) => given[field] !== undefined && given[field] !== false)
    .map((field) => ({ field, message: 'cannot be given with subscriptionId' }));
}

function retryPlanProblems({ retryPlan }: Partial<Given>): Problem[] {
  const delays = retryPlan === undefined ? [] : readDelays(retryPlan);
  return typeof delays === 'string' ? [{ field: 'retryPlan', message: delays }] : [];
}

function retryPlanOf({ retryPlan, afterExhausted, unpaidFrom }: Given, own: RetryPlan): RetryPlan {
  const delaysMs = retryPlan === undefined ? own.delaysMs : readDelays(retryPlan);
  invariant(typeof delaysMs !== 'string', '`requestProblems` refuses such delays');
  return {
    ...own,
    delaysMs,
    ...(afterExhausted !== undefined && { afterExhausted }),
    ...(unpaidFrom !== undefined && { unpaidFrom }),
  };
}

const Step = z
  .object({
    at: epochMs('When it happens.'),
    what: z.string(),
    why: z.string(),
    status: subscriptionStatus.meta({ description: 'The status after it.' }),
    currentPeriodEnd: epochMs('Until when the payer has access after it.').optional(),
    eventTypes: z.array(eventType).meta({ description: 'Events that are sent, in order.' }),
    cycleNumber: count('Number of the cycle that an attempt charges, from 1.').optional(),
    attempt: count('Number of the attempt on the cycle, from 1.').optional(),
    amount: minorAmount('Amount of the attempt.').optional(),
    currency: currencyCode.optional(),
    trigger: z.enum(ATTEMPT_TRIGGERS).optional(),
    cause: z.string().optional().meta({ description: 'Why the attempt is made, in one sentence.' }),
    errorCode: declineCode.optional().meta({ description: 'Only of a declined attempt.' }),
    refusal: z
      .object({ errorCode: z.string(), errorDescription: z.string() })
      .optional()
      .meta({ description: 'The answer to a command that would be refused. It changes nothing.' }),
  })
  .meta({ id: 'SimulatedStep' });

export const simulateSubscription = route({
  operationId: 'simulateSubscription',
  method: 'post',
  path: '/subscription/simulate',
  isReading: true,
  isReadLimited: true,
  isCostly: true,
  tag: 'Subscriptions',
  summary: 'See what a subscription will do',
  description:
    'Plays the future of a new or a running subscription by the rules that charge it: every date, amount, status and ' +
    'event, until its end or for 120 cycles. In CREATED the payer enters a card at once. Nothing is stored, sent or charged.',
  isExtension: true,
  body: {
    fields,
    problems: requestProblems,
    refusesUnknown: true,
    examples: {
      'Two declines in the third month, then a pause': {
        amount: 1_999,
        currency: 'USD',
        interval: 'MONTH',
        intervalCount: 1,
        cycleCount: 12,
        startDate: 1_798_761_600_000,
        script: [
          { cycle: 3, outcome: 'insufficient_funds', times: 2 },
          { at: 1_808_000_000_000, command: 'pause' },
        ],
      },
      'A running subscription': { subscriptionId: SUBSCRIPTION_ID },
    },
  },
  answer: {
    description: 'What will happen, in order.',
    schema: z.object({
      data: z.array(Step),
      status: subscriptionStatus,
      endReason: endReason.optional(),
      nextPaymentDate: epochMs('The next charge after the last step.').optional(),
      isComplete: z.boolean().meta({ description: 'False if more follows after 120 cycles.' }),
    }),
    examples: {
      'The last cycle': {
        data: [
          {
            at: 1_824_033_660_000,
            what: 'cycle 12 paid, 19.99 USD',
            why: 'its date had come (attempt 1)',
            status: 'ENDED',
            currentPeriodEnd: 1_826_712_060_000,
            eventTypes: [
              'intent.created',
              'intent.success',
              'subscription.cycle_charged',
              'subscription.ended',
            ],
            cycleNumber: 12,
            attempt: 1,
            amount: 1_999,
            currency: 'USD',
            trigger: 'scheduled',
            cause:
              'its date had come: 2026-11-20T12:01:00.000Z + 13 months = 2027-12-20T12:01:00.000Z',
          },
        ],
        status: 'ENDED',
        endReason: 'completed',
        isComplete: true,
      },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async ({ merchant, body }, deps) => {
    const settings = await loadSettings(deps.db, merchant.id);
    const { state, nowAt, before, ...ofCard } = await startOf(deps, merchant.id, settings, body);
    const { currency: code } = state.terms;
    await refuseAmounts(deps, merchant.id, body, code);
    const script = {
      outcomes: outcomesOf(body.script),
      commands: [...checkoutOf(state, nowAt), ...commandsOf(body.script, code)],
      ...ofCard,
      noticeRules: noticeRulesOf(settings),
      ...(settings.cardLimits && { cardLimits: settings.cardLimits }),
    };
    const retryPlan = retryPlanOf(body, settings.retryPlan);
    const {
      steps,
      state: last,
      isComplete,
    } = await inParts(simulateByStep(state, nowAt, retryPlan, script));
    return ok({
      data: [...before, ...steps].map((step) => presentStep(step, code)),
      status: last.status,
      ...withoutNulls({ endReason: last.endReason, nextPaymentDate: nextPaymentAt(last) }),
      isComplete,
    });
  },
});

/** A step takes up to 0.1 ms. */
const STEPS_AT_ONCE = 20;

/** Lets other requests proceed after every 20 steps. */
export async function inParts<Result>(steps: Generator<unknown, Result>): Promise<Result> {
  for (let count = 1; ; count += 1) {
    const { done, value } = steps.next();
    if (done) return value;
    if (count % STEPS_AT_ONCE !== 0) continue;
    await setImmediate();
    checkUnanswered();
  }
}

/** The state to begin with. A new subscription's payer enters a card at its creation. */
async function startOf(
  { db, gateways, now, random, checkoutExpiryMs }: ApiDeps,
  merchantId: string,
  { jitterMs = null }: MerchantSettings,
  body: Given,
): Promise<
  {
    state: SubscriptionState;
    nowAt: number;
    before: SimulatedStep[];
  } & Pick<Script, 'declineOf' | 'declinedAt' | 'card'>
> {
  const { testClockId = null } = body;
  if (body.subscriptionId !== undefined) {
    const ref = { merchantId, subscriptionId: body.subscriptionId };
    const view = await findSubscription(db, merchantId, body.subscriptionId);
    const { state, paymentMethod } = found(view, 'subscription');
    const nowAt = await businessNow(db, ref, now());
    const start = { state, nowAt, before: [] };
    if (!paymentMethod) return start;
    const declineOf = await expiryOf(gateways, paymentMethod);
    const card = { merchantId, paymentMethodId: paymentMethod.id, createdAt: nowAt };
    const { declinedAt } = await unpaidAttempts(db, card);
    const expiring = { id: paymentMethod.id, expiresAt: cardExpiresAt(paymentMethod) };
    return { ...start, declinedAt, card: expiring, ...(declineOf && { declineOf }) };
  }
  const createdAt = body.startDate ?? (await creationTime(db, { now }, merchantId, body));
  invariant(hasFields(body, REQUIRED), '`requestProblems` refuses a request without them');
  const subscriptionId = newId('sub', now(), random);
  const state = newSubscription({
    subscriptionId,
    merchantId,
    customerId: newId('cus', now(), random),
    terms: termsOf(body),
    createdAt,
    checkoutExpiresAt: createdAt + checkoutExpiryMs,
    testClockId,
    jitter: initialJitter({ subscriptionId, testClockId }, jitterMs),
  });
  return { state, nowAt: createdAt, before: [creationStep(state)] };
}

/** Null if the gateway does not decline the card by the date at which it expires, or is not the merchant's any more. */
async function expiryOf(
  gateways: ApiDeps['gateways'],
  card: PaymentMethod,
): Promise<NonNullable<Script['declineOf']> | null> {
  const gateway = await gateways.of(card.merchantId, card.gateway).catch((error: unknown) => {
    if (error instanceof UnknownGateway) return null;
    throw error;
  });
  if (gateway?.capabilities.declinesExpired !== true) return null;
  return ({ paymentMethodId }, _, at) =>
    paymentMethodId === card.id && at >= cardExpiresAt(card) ? 'expired_card' : null;
}

/** Refuses what the requests to create and to edit refuse: amounts that the merchant's gateway cannot charge. */
async function refuseAmounts(deps: ApiDeps, merchantId: string, body: Given, code: string) {
  const { amount, upfrontAmount, script } = body;
  const amounts = { amount, upfrontAmount, ...newAmountsOf(script) };
  if (Object.values(amounts).every((value) => value === undefined)) return;
  refuseProblems(await gatewayAmountProblems(deps, merchantId, amounts, code));
}

function presentStep(step: SimulatedStep, code: string) {
  const { at, what, why, status, events: eventTypes, charge, refusal, currentPeriodEndAt } = step;
  return {
    at,
    what,
    why,
    status,
    ...withoutNulls({ currentPeriodEnd: currentPeriodEndAt }),
    eventTypes,
    ...(charge && {
      cycleNumber: charge.cycleNumber,
      attempt: charge.attemptNumber,
      amount: charge.amountMinor,
      currency: code,
      trigger: charge.trigger,
      cause: charge.cause,
      ...withoutNulls({ errorCode: charge.errorCode }),
    }),
    ...(refusal && { refusal: { errorCode: refusal.code, errorDescription: refusal.message } }),
  };
}

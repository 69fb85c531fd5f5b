import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { loadRetryPlan } from '../../../db/repositories/merchants/settings.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/row.ts';
import { DECLINES } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { invariant } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { ATTEMPT_TRIGGERS } from '../../../domain/payment-intent.ts';
import type { Command, CommandKind } from '../../../domain/subscription/commands.ts';
import { readCommand } from '../../../domain/subscription/read-command.ts';
import { creationStep, simulateByStep } from '../../../domain/subscription/simulate.ts';
import type { ScriptedOutcome, SimulatedStep } from '../../../domain/subscription/simulate.ts';
import { newSubscription, nextPaymentAt } from '../../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
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
import { found, ok, withoutNulls } from '../../http/request.ts';
import {
  amount,
  changedCurrency,
  currency,
  idText,
  instant,
  optional,
  wholeNumber,
} from '../../fields.ts';
import type { ApiDeps } from '../../deps.ts';
import { hasFields, refuseProblems, withoutEmpty } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import { checkUnanswered } from '../../../runtime/request-scope.ts';
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

const SCRIPT_MAX = 100;

const KINDS = {
  edit: 'edit',
  pause: 'pause',
  unpause: 'unpause',
  cancel: 'cancel',
  resume: 'resume',
  retry: 'manualRetry',
  new_card: 'replacePaymentMethod',
} as const satisfies Record<string, CommandKind>;
type CommandName = keyof typeof KINDS;

const OUTCOMES = ['paid', ...(Object.keys(DECLINES) as DeclineCode[])] as const;

const entryFields = {
  at: optional(instant).describe(
    'When the command is executed, after the steps that are due by then; or the earliest attempt with the outcome.',
  ),
  cycle: optional(wholeNumber(1)).describe('The cycle whose attempts have the outcome, from 1.'),
  outcome: optional(z.enum(OUTCOMES)).describe(
    'Outcome of the next attempts. With `at` or `cycle`.',
  ),
  times: optional(wholeNumber(1)).describe('Number of attempts with the outcome. Default: 1.'),
  command: optional(z.enum(Object.keys(KINDS) as [CommandName])).describe(
    'A command, with the fields of its request. With `at`.',
  ),
  newAmount: optional(amount),
  newCycleCount: optional(cycleCount),
  newNextPaymentDate: optional(instant),
  interval: optional(interval),
  intervalCount: optional(intervalCount),
  resumeAt: optional(instant),
  atPeriodEnd: optional(z.boolean()),
};
const entry = z.preprocess(
  (given) => withoutEmpty(entryFields, given),
  z.object(entryFields).meta({ id: 'ScriptEntry' }),
);

const fields = {
  subscriptionId: optional(idText()).describe(
    'A subscription, from its present state on. Absent: a new one, with the fields of the request to create it.',
  ),
  amount: optional(amount).describe('Amount of each cycle.'),
  currency: optional(currency),
  interval: optional(interval),
  intervalCount: optional(intervalCount),
  cycleCount: optional(cycleCount),
  upfrontAmount: termsFields.upfrontAmount,
  trialPeriodCount: termsFields.trialPeriodCount,
  trialPeriodInterval: termsFields.trialPeriodInterval,
  startDate: optional(instant).describe(
    'When a new subscription is created, and its payer enters a card. Default: the time of its test clock, else now.',
  ),
  testClockId: optional(idText()).describe('The test clock of a new subscription.'),
  script: optional(z.array(entry).max(SCRIPT_MAX)).describe(
    'Outcomes and commands. Every attempt without an outcome is paid.',
  ),
};

type Given = Fields<typeof fields>;

const REQUIRED = ['amount', 'currency', 'interval', 'intervalCount', 'cycleCount'] as const;

function requestProblems(given: Partial<Given>, { now }: ApiDeps): Problem[] {
  const script = (given.script ?? []).flatMap(entryProblems);
  if (given.subscriptionId !== undefined) return script;
  const { startDate: startAt = given.testClockId === undefined ? now() : null } = given;
  const missing = REQUIRED.filter((field) => given[field] === undefined);
  return [
    ...script,
    ...missing.map((field) => ({ field, message: 'is required without subscriptionId' })),
    ...termsFieldsProblems(given),
    ...(startAt === null ? [] : datedProblems(given, startAt)),
  ];
}

function entryProblems(
  { at, cycle, outcome, command }: z.output<typeof entry>,
  index: number,
): Problem[] {
  const field = `script[${index}]`;
  const isOutcome = outcome !== undefined && (at === undefined) !== (cycle === undefined);
  const isCommand = command !== undefined && at !== undefined && cycle === undefined;
  return isOutcome !== isCommand && (outcome === undefined) !== (command === undefined)
    ? []
    : [{ field, message: 'must have outcome with at or cycle, or command with at' }];
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
  refusals: ['resource_not_found'],
  handle: async ({ merchant, body }, deps) => {
    const { state, nowAt, before } = await startOf(deps, merchant.id, body);
    const script = {
      outcomes: outcomesOf(body),
      commands: commandsOf(body, state, nowAt),
    };
    const retryPlan = await loadRetryPlan(deps.db, merchant.id);
    const {
      steps,
      state: last,
      isComplete,
    } = await inParts(simulateByStep(state, nowAt, retryPlan, script));
    return ok({
      data: [...before, ...steps].map((step) => presentStep(step, state.terms.currency)),
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
  { db, now, random, checkoutExpiryMs }: ApiDeps,
  merchantId: string,
  body: Given,
): Promise<{ state: SubscriptionState; nowAt: number; before: SimulatedStep[] }> {
  const { subscriptionId, testClockId = null } = body;
  if (subscriptionId !== undefined) {
    const view = await findSubscription(db, merchantId, subscriptionId);
    const { state } = found(view, 'subscription');
    const nowAt = await businessNow(db, { merchantId, subscriptionId }, now());
    return { state, nowAt, before: [] };
  }
  const createdAt = body.startDate ?? (await creationTime(db, { now }, merchantId, body));
  invariant(hasFields(body, REQUIRED), '`requestProblems` refuses a request without them');
  const state = newSubscription({
    subscriptionId: newId('sub', now(), random),
    merchantId,
    customerId: newId('cus', now(), random),
    terms: termsOf(body),
    createdAt,
    checkoutExpiresAt: createdAt + checkoutExpiryMs,
    testClockId,
  });
  return { state, nowAt: createdAt, before: [creationStep(state)] };
}

function outcomesOf({ script = [] }: Given): ScriptedOutcome[] {
  return script.flatMap(({ at: fromAt = 0, cycle, outcome, times = 1 }) => {
    if (outcome === undefined) return [];
    const code = outcome === 'paid' ? null : outcome;
    return [{ for: cycle === undefined ? { fromAt } : { cycleNumber: cycle }, code, times }];
  });
}

/** The payer of a subscription in CREATED enters a card at once, if the outcome of no earlier one is open. */
function commandsOf(body: Given, state: SubscriptionState, nowAt: number) {
  const { status, openAttempt, terms } = state;
  const checkout: { at: number; command: Command }[] =
    status === 'CREATED' && openAttempt === null
      ? [{ at: nowAt, command: cardCommand('completeCheckout', 'checkout') }]
      : [];
  const problems: Problem[] = [];
  const given = (body.script ?? []).flatMap(({ at, command: name, ...rest }, index) => {
    if (name === undefined || at === undefined) return [];
    const kind = KINDS[name];
    const commandId = `script[${index}]`;
    if (kind === 'replacePaymentMethod') return [{ at, command: cardCommand(kind, commandId) }];
    const { newAmount, newNextPaymentDate, ...same } = rest;
    const argument = {
      ...same,
      newAmountMinor: newAmount,
      newNextPaymentAt: newNextPaymentDate,
      ...(newAmount !== undefined && { currencyRow: changedCurrency(terms.currency) }),
    };
    const read = readCommand(kind, argument, commandId);
    if (read.ok) return [{ at, command: read.command }];
    problems.push({ field: commandId, message: read.message });
    return [];
  });
  refuseProblems(problems);
  return [...checkout, ...given.toSorted((a, b) => a.at - b.at)];
}

const cardCommand = (
  kind: 'completeCheckout' | 'replacePaymentMethod',
  commandId: string,
): Command => ({
  kind,
  commandId,
  paymentToken: commandId,
  checkoutSessionId: commandId,
});

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

import {
  ApplicationFailure,
  CancellationScope,
  condition,
  currentUpdateInfo,
  defineSignal,
  defineUpdate,
  setHandler,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import type { RedeemTokenResult } from '../../activities/charging/redeem-token.ts';
import { INSTANT_PROBLEM, isInstant } from '../../domain/calendar.ts';
import { assertNever } from '../../domain/errors.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import {
  actionForCommand,
  carriesToken,
  needsVerification,
} from '../../domain/subscription/actions.ts';
import type {
  Command,
  CommandKind,
  CommandResult,
  TokenCommand,
} from '../../domain/subscription/commands.ts';
import { memberOf, readCommand } from '../../domain/subscription/read-command.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import * as messages from './messages.ts';
import type { QueuedCommand, Run, UpdateOutcome } from './run.ts';
import type { StepResult, Steps } from './steps.ts';

/** The descriptions are those of the Web UI. */
const UPDATES: Readonly<Record<CommandKind, string>> = {
  edit: 'Change amount, cycles, next payment date or interval',
  cancel: 'End the subscription at once, or with atPeriodEnd: true at the end of its period',
  pause: 'Charge nothing until unpause, or until resumeAt (epoch ms)',
  resume: 'Undo a cancellation that takes effect at the end of the period',
  unpause: 'Charge again from newNextPaymentAt (epoch ms) on',
  manualRetry: 'Try to collect the owed cycle now',
  authenticatePayment: 'The payer wants to confirm the owed payment with the bank',
  completeCheckout: 'The payer has entered a card in the checkout',
  replacePaymentMethod: 'The payer has entered another payment method',
};

/** An operator's signal reads only `fields` of its argument. */
interface OperatorSignal {
  readonly description: string;
  readonly fields: readonly string[] | 'all';
}

const ARGUMENTS = 'Arguments like the update:';
const WITHOUT_FIELDS = { description: 'Like the update, without arguments', fields: [] };
const SIGNALS = {
  edit: {
    description: `${ARGUMENTS} { "newAmountMinor": 1999 }, { "newCycleCount": 24 }, …`,
    fields: 'all',
  },
  cancel: { description: `${ARGUMENTS} none, or { "atPeriodEnd": true }`, fields: ['atPeriodEnd'] },
  pause: { description: `${ARGUMENTS} none, or { "resumeAt": <epoch ms> }`, fields: ['resumeAt'] },
  resume: WITHOUT_FIELDS,
  unpause: { description: `${ARGUMENTS} { "newNextPaymentAt": <epoch ms> }`, fields: 'all' },
  manualRetry: WITHOUT_FIELDS,
} as const satisfies Partial<Record<CommandKind, OperatorSignal>>;

/** Must be called before the first await; otherwise the SDK refuses updates that arrive with the start. */
export function registerHandlers(run: Run): void {
  for (const [kind, text] of Object.entries(UPDATES)) onUpdate(run, kind as CommandKind, text);
  for (const [kind, signal] of Object.entries(SIGNALS)) onSignal(run, kind as CommandKind, signal);
  setHandler(
    messages.advanceClock,
    (input) => {
      const targetAt = memberOf(input, 'targetAt');
      if (isInstant(targetAt)) run.clock.sendTo(targetAt);
      else run.refuseSignal('advanceClock', `targetAt ${INSTANT_PROBLEM}`);
    },
    { description: 'Advance the test clock to targetAt (epoch ms)' },
  );
  setHandler(messages.recheck, () => run.recheck(), {
    description: 'Read the row again, and look up an unknown outcome at the gateway now',
  });
  setHandler(messages.stateQuery, () => ({ ...run.state, entries: run.entries }), {
    description: 'The whole state of the run',
  });
  onCancellationRequest(run);
}

function onUpdate(run: Run, kind: CommandKind, description: string): void {
  const commandOf = (fields: unknown): Command => {
    const given = memberOf(fields, 'commandId') ?? null;
    const read = readCommand(kind, fields, given ?? currentUpdateInfo()?.id ?? uuid4());
    if (!read.ok) throw refusal(read);
    // An operator's update has no `commandId`.
    return given === null ? byOperator(read.command) : read.command;
  };
  setHandler(
    defineUpdate<CommandResult, [unknown]>(kind),
    async (fields) => {
      const outcome = await submit(run, commandOf(fields));
      if (outcome.ok) return outcome.result;
      throw refusal(outcome);
    },
    {
      description,
      // Must be synchronous: the SDK ignores the rejection of an async validator. A refusal is final, so
      // the validator refuses by the run's state only if the state is in sync and the test clock stands
      // still. The loop validates every command again.
      validator: (fields) => {
        const command = commandOf(fields);
        if (!run.isInSync || run.clock.isBehind) return;
        const decision = validateCommand(run.state, command, run.clock.now);
        if (!decision.ok) throw refusal(decision);
      },
    },
  );
}

/** Accepts a command as a signal. Its sender gets no answer, so a refusal is logged and shown in the Web UI. */
function onSignal(run: Run, kind: CommandKind, { description, fields }: OperatorSignal): void {
  setHandler(
    defineSignal<[unknown]>(kind),
    (argument) => {
      const given = fields === 'all' ? argument : fieldsOf(argument, fields);
      const read = readCommand(kind, given, uuid4());
      if (read.ok) post(run, byOperator(read.command));
      else run.refuseSignal(kind, read.message);
    },
    { description },
  );
}

function byOperator(command: Command): Command {
  return { ...command, actor: 'operator' };
}

function fieldsOf(argument: unknown, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, memberOf(argument, name)]));
}

function refusal({ code: type, message, retryAt }: RefusalReason): ApplicationFailure {
  const details = retryAt === undefined ? [] : [retryAt];
  return ApplicationFailure.create({ type, message, details, nonRetryable: true });
}

function onCancellationRequest(run: Run): void {
  const { cancelRequested } = CancellationScope.current();
  void cancelRequested.catch(() => {
    const commandId = `temporal-cancel:${workflowInfo().runId}`;
    post(run, { kind: 'cancel', commandId, reason: 'cancelled', actor: 'operator' });
  });
}

/** Adds a command to the inbox, where it stays until the loop executes or refuses it. */
function post(run: Run, command: Command, isAwaited = false): QueuedCommand {
  const { pendingTargetAt: afterAdvanceTo } = run.clock;
  const queued: QueuedCommand = { command, isAwaited, afterAdvanceTo, outcome: null };
  run.inbox.push(queued);
  return queued;
}

async function submit(run: Run, command: Command): Promise<UpdateOutcome> {
  const queued = post(run, command, true);
  // A cancellation request must not end this wait, because the request becomes a command in this inbox.
  await CancellationScope.nonCancellable(() => condition(() => queued.outcome !== null));
  if (queued.outcome === null) throw new Error('the outcome was taken back');
  return queued.outcome;
}

const LIMIT_EXCEEDED = {
  kind: 'checkout',
  outcome: 'declined',
  errorCode: 'limit_exceeded',
} as const satisfies CommandResult;

const PENDING: UpdateOutcome = {
  ok: false,
  code: 'payment_outcome_pending',
  message: 'The outcome of the payment is not known yet.',
};

/**
 * Validates the oldest command again, because an earlier one may have changed the state, executes it and answers its
 * caller. It stays in the inbox if the row was newer or the activity failed.
 */
export async function takeFirstCommand(run: Run, steps: Steps): Promise<void> {
  const [first] = run.inbox;
  if (!first) return;
  const { command, isAwaited } = first;
  const refuse = (refused: RefusalReason): void => {
    run.answerFirst({ ...refused, ok: false });
    if (!isAwaited) run.refuseSignal(command.kind, refused.message);
  };
  const decision = validateCommand(run.state, command, run.clock.now);
  if (!decision.ok) {
    refuse(decision);
    return;
  }
  const done = await carryOut(run, steps, command);
  switch (done.kind) {
    case 'refused':
      // A payer may use another card.
      if (carriesToken(command)) run.answerFirst({ ok: true, result: LIMIT_EXCEEDED });
      else refuse(done.refusal);
      return;
    case 'stale':
      return;
    case 'unavailable':
      run.answerUnavailable();
      return;
    case 'done':
      run.answerFirst(done.result ? { ok: true, result: done.result } : PENDING);
      return;
    default:
      assertNever(done);
  }
}

async function carryOut(run: Run, steps: Steps, command: Command): Promise<StepResult> {
  let paymentMethodId: string | null = null;
  if (carriesToken(command)) {
    const redeemed = await redeem(run, steps, command);
    if (redeemed.kind !== 'saved') return redeemed;
    paymentMethodId = redeemed.paymentMethodId;
  }
  const action = actionForCommand(run.state, command, run.clock, paymentMethodId);
  return steps.act(action, command);
}

/** Redeems the command's token. A refused card is a result, not an error: the payer may try another card. */
async function redeem(
  run: Run,
  steps: Steps,
  command: TokenCommand,
): Promise<Extract<RedeemTokenResult, { kind: 'saved' }> | StepResult> {
  const { merchantId, subscriptionId, version, customerId } = run.state;
  try {
    const redeemed = await run.activities.redeemToken('save the payment method', {
      at: { merchantId, subscriptionId, version },
      merchantId,
      customerId,
      paymentToken: command.paymentToken,
      checkoutSessionId: command.checkoutSessionId,
      verify: needsVerification(run.state, command),
      nowAt: run.clock.now,
    });
    run.noteProgress();
    if (redeemed.kind === 'saved') return redeemed;
    if (redeemed.kind === 'adopt') {
      return { kind: steps.adoptRow(redeemed.state) ? 'stale' : 'unavailable' };
    }
    const { errorCode } = redeemed;
    return { kind: 'done', result: { kind: 'checkout', outcome: 'declined', errorCode } };
  } catch (error) {
    steps.backOffAfter(error);
    return { kind: 'unavailable' };
  }
}

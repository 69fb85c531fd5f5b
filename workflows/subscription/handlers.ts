import { INSTANT_PROBLEM, isInstant } from '../../domain/calendar.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import {
  ApplicationFailure,
  CancellationScope,
  currentUpdateInfo,
  defineSignal,
  defineUpdate,
  setHandler,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import type { Command, CommandKind, CommandResult } from '../../domain/subscription/commands.ts';
import { memberOf, readCommand } from '../../domain/subscription/read-command.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import * as messages from './messages.ts';
import type { Run } from './run.ts';

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
  registerWakeUps(run);
  registerQueries(run);
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
      const answer = await run.submit(commandOf(fields));
      if (answer.ok) return answer.result;
      throw refusal(answer);
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
  const post = (argument: unknown): void => {
    const given = fields === 'all' ? argument : fieldsOf(argument, fields);
    const read = readCommand(kind, given, uuid4());
    if (read.ok) run.post(byOperator(read.command));
    else run.refuseSignal(kind, read.message);
  };
  setHandler(defineSignal<[unknown]>(kind), post, { description });
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

function registerWakeUps(run: Run): void {
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
}

function registerQueries(run: Run): void {
  setHandler(messages.stateQuery, () => ({ ...run.state, entries: run.entries }), {
    description: 'The whole state of the run',
  });
}

export function onCancellationRequest(run: Run): void {
  const { cancelRequested } = CancellationScope.current();
  void cancelRequested.catch(() => {
    const commandId = `temporal-cancel:${workflowInfo().runId}`;
    run.post({ kind: 'cancel', commandId, reason: 'cancelled', actor: 'operator' });
  });
}

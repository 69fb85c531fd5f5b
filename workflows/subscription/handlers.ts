import { isInstant } from '../../domain/calendar.ts';
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
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { readCommand } from '../../domain/subscription/read-command.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import * as messages from './messages.ts';
import type { Run } from './run.ts';

/** The descriptions are those of the Web UI. An operator's signal reads only `fields` of its argument. */
interface CommandMessages {
  readonly kind: Command['kind'];
  readonly update: string;
  readonly signal?: { readonly description: string; readonly fields: readonly string[] | 'all' };
}

const WITHOUT_FIELDS = { description: 'Like the update, without arguments', fields: [] };

const COMMANDS: readonly CommandMessages[] = [
  {
    kind: 'edit',
    update: 'Change amount, cycles, next payment date or interval',
    signal: {
      description:
        'Arguments like the update: { "newAmountMinor": 1999 }, { "newCycleCount": 24 }, …',
      fields: 'all',
    },
  },
  {
    kind: 'cancel',
    update: 'End the subscription at once, or with atPeriodEnd: true at the end of its period',
    signal: {
      description: 'Arguments like the update: none, or { "atPeriodEnd": true }',
      fields: ['atPeriodEnd'],
    },
  },
  {
    kind: 'pause',
    update: 'Charge nothing until unpause, or until resumeAt (epoch ms)',
    signal: {
      description: 'Arguments like the update: none, or { "resumeAt": <epoch ms> }',
      fields: ['resumeAt'],
    },
  },
  {
    kind: 'resume',
    update: 'Undo a cancellation that takes effect at the end of the period',
    signal: WITHOUT_FIELDS,
  },
  {
    kind: 'unpause',
    update: 'Charge again from newNextPaymentAt (epoch ms) on',
    signal: {
      description: 'Arguments like the update: { "newNextPaymentAt": <epoch ms> }',
      fields: 'all',
    },
  },
  {
    kind: 'manualRetry',
    update: 'Try to collect the owed cycle now',
    signal: WITHOUT_FIELDS,
  },
  {
    kind: 'authenticatePayment',
    update: 'The payer wants to confirm the owed payment with the bank',
  },
  { kind: 'completeCheckout', update: 'The payer has entered a card in the checkout' },
  { kind: 'replacePaymentMethod', update: 'The payer has entered another payment method' },
];

/** Must be called before the first await; otherwise the SDK refuses updates that arrive with the start. */
export function registerHandlers(run: Run): void {
  for (const { kind, update } of COMMANDS) onUpdate(run, kind, update);
  for (const { kind, signal } of COMMANDS) if (signal) onSignal(run, kind, signal);
  registerWakeUps(run);
  registerQueries(run);
}

function onUpdate(run: Run, kind: Command['kind'], description: string): void {
  const commandOf = (fields: unknown): Command => {
    const given = asObject(fields)['commandId'] ?? null;
    const read = readCommand(kind, fields, given ?? currentUpdateInfo()?.id ?? uuid4());
    if (!read.ok) throw refusal(read.code, read.message);
    // An operator's update has no `commandId`.
    return given === null ? byOperator(read.command) : read.command;
  };
  setHandler(
    defineUpdate<CommandResult, [unknown]>(kind),
    async (fields) => {
      const answer = await run.submit(commandOf(fields));
      if (answer.ok) return answer.result;
      throw refusal(answer.code, answer.message);
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
        if (!decision.ok) throw refusal(decision.code, decision.message);
      },
    },
  );
}

/** Accepts a command as a signal. Its sender gets no answer, so a refusal is logged and shown in the Web UI. */
function onSignal(
  run: Run,
  kind: Command['kind'],
  { description, fields }: NonNullable<CommandMessages['signal']>,
): void {
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

/** Returns the fields with these names; none if the argument is not an object. */
function fieldsOf(argument: unknown, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(asObject(argument)).filter(([name]) => names.includes(name)),
  );
}

function refusal(code: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message, nonRetryable: true });
}

function registerWakeUps(run: Run): void {
  setHandler(
    messages.advanceClock,
    (input) => {
      const { targetAt } = asObject(input);
      if (isInstant(targetAt)) run.clock.sendTo(targetAt);
      else
        run.refuseSignal(
          'advanceClock',
          'targetAt must be epoch milliseconds before the year 2200',
        );
    },
    { description: 'Advance the test clock to targetAt (epoch ms)' },
  );
  setHandler(messages.recheck, () => run.recheck(), {
    description: 'Read the row again, and look up an unknown outcome at the gateway now',
  });
}

/** An argument may be any JSON value. A value that is not an object has no fields. */
function asObject(input: unknown): Record<string, unknown> {
  return typeof input === 'object' && input !== null ? { ...input } : {};
}

function registerQueries(run: Run): void {
  setHandler(messages.stateQuery, () => run.state, { description: 'The whole state of the run' });
}

/** Turns a cancellation request of Temporal into a `cancel` command. */
export function onCancellationRequest(run: Run): void {
  const { cancelRequested } = CancellationScope.current();
  void cancelRequested.catch(() => {
    const commandId = `temporal-cancel:${workflowInfo().runId}`;
    run.post({ kind: 'cancel', commandId, reason: 'cancelled', actor: 'operator' });
  });
}

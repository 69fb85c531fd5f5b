import { isInstant } from '../../domain/calendar.ts';
import type { UpdateDefinition } from '@temporalio/common';
import {
  ApplicationFailure,
  CancellationScope,
  currentUpdateInfo,
  setHandler,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  CancelCommand,
  Command,
  CommandResult,
  CompleteCheckoutCommand,
  EditCommand,
  ManualRetryCommand,
  PauseCommand,
  ReplacePaymentMethodCommand,
  UnpauseCommand,
} from '../../domain/subscription/commands.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import * as messages from './messages.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import type { Run } from './run.ts';

/**
 * Every message of the workflow. Called before the first await, so that nothing that waits for a
 * handler is turned away. Handlers put a command in the inbox and wait; they never throw anything
 * but a refusal.
 */
export function registerHandlers(run: Run): void {
  onUpdate<EditCommand>(
    run,
    messages.edit,
    'edit',
    'Change amount, cycles, next payment date or interval',
  );
  onUpdate<CancelCommand>(run, messages.cancel, 'cancel', 'End the subscription at once');
  onUpdate<PauseCommand>(run, messages.pause, 'pause', 'Charge nothing until unpause');
  onUpdate<UnpauseCommand>(
    run,
    messages.unpause,
    'unpause',
    'Charge again from newNextPaymentAt (epoch ms) on',
  );
  onUpdate<ManualRetryCommand>(
    run,
    messages.manualRetry,
    'manualRetry',
    'Try to collect the owed cycle now',
  );
  onUpdate<CompleteCheckoutCommand>(
    run,
    messages.completeCheckout,
    'completeCheckout',
    'The payer came back from the card form',
  );
  onUpdate<ReplacePaymentMethodCommand>(
    run,
    messages.replacePaymentMethod,
    'replacePaymentMethod',
    'The payer gave another method',
  );
  registerOperatorSignals(run);
  registerQueries(run);
}

function onUpdate<C extends Command>(
  run: Run,
  definition: UpdateDefinition<CommandResult, [messages.Input<C>]>,
  kind: C['kind'],
  description: string,
): void {
  // The definition ties the input to the kind; the compiler cannot see that through the generic.
  const toCommand = (input: messages.Input<C>) =>
    ({
      ...asObject(input),
      kind,
      // An operator's update comes without one.
      commandId: asObject(input).commandId ?? currentUpdateInfo()?.id ?? uuid4(),
    }) as unknown as C;
  setHandler(
    definition,
    async (input: messages.Input<C>) => {
      const answer = await run.inbox.submit(toCommand(input));
      if (answer.ok) return answer.result;
      throw refusal(answer.code, answer.message);
    },
    {
      description,
      // Synchronous: an async validator accepts everything. Its refusal is final, so it refuses only
      // what it is sure of; everything is judged again when its turn has come.
      validator: (input: messages.Input<C>) => {
        if (!run.isInSync) return;
        const decision = validateCommand(run.state, toCommand(input), run.clock.now);
        if (!decision.ok) throw refusal(decision.code, decision.message);
      },
    },
  );
}

function refusal(code: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message, nonRetryable: true });
}

/** The same commands for the Web UI's signal dialog; a refused one changes nothing and says nothing. */
function registerOperatorSignals(run: Run): void {
  const post = (command: Command): void => run.inbox.post(command);
  setHandler(
    messages.editSignal,
    (input) => post({ ...asObject(input), kind: 'edit', commandId: uuid4() }),
    { description: 'As the update: { "newAmountMinor": 1999 }, { "newCycleCount": 24 }, …' },
  );
  setHandler(
    messages.cancelSignal,
    () => post({ kind: 'cancel', commandId: uuid4(), reason: 'cancelled' }),
    { description: 'As the update, no arguments' },
  );
  setHandler(messages.pauseSignal, () => post({ kind: 'pause', commandId: uuid4() }), {
    description: 'As the update, no arguments',
  });
  setHandler(
    messages.unpauseSignal,
    (input) => post({ ...asObject(input), kind: 'unpause', commandId: uuid4() }),
    { description: 'As the update: { "newNextPaymentAt": <epoch ms> }' },
  );
  setHandler(messages.manualRetrySignal, () => post({ kind: 'manualRetry', commandId: uuid4() }), {
    description: 'As the update, no arguments',
  });
  setHandler(
    messages.advanceClock,
    (input) => {
      const { targetAt } = asObject(input);
      if (isInstant(targetAt)) run.clock.sendTo(targetAt);
    },
    { description: 'The test clock was sent to targetAt (epoch ms)' },
  );
  setHandler(messages.poke, () => run.poke(), { description: 'Look again at what is due' });
}

/** A signal's argument is whatever somebody typed; `validateCommand` looks at the fields. */
function asObject<T extends object>(input: T): T {
  return typeof input === 'object' && input !== null ? input : ({} as T);
}

function registerQueries(run: Run): void {
  setHandler(messages.stateQuery, () => run.state, { description: 'Everything it knows' });
  setHandler(messages.upcomingQuery, (input) => upcomingCharges(run.state, input?.limit ?? 12), {
    description: 'The next charges, with dates and amounts: { "limit": 12 }',
  });
  setHandler(messages.timelineQuery, () => run.state.log, {
    description: 'What happened last, when and why',
  });
}

/** Temporal's own cancellation request means the `cancel` command. */
export function onCancellationRequest(run: Run): void {
  const { cancelRequested } = CancellationScope.current();
  void cancelRequested.catch(() => {
    const commandId = `temporal-cancel:${workflowInfo().runId}`;
    run.inbox.post({ kind: 'cancel', commandId, reason: 'cancelled' });
  });
}

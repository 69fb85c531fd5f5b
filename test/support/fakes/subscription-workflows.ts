import type { ApiDeps } from '../../../api/deps.ts';
import {
  createChargingActivities,
  createTransitionActivities,
} from '../../../activities/subscription.ts';
import type { Db } from '../../../db/client.ts';
import {
  findCommand,
  loadSnapshot,
  recordClockReached,
} from '../../../db/repositories/subscriptions/row.ts';
import { writeChange } from '../../../db/repositories/subscriptions/write-change.ts';
import type { Snapshot } from '../../../domain/subscription/snapshot.ts';
import { DomainError } from '../../../domain/errors.ts';
import {
  actionForCommand,
  actionForStep,
  carriesToken,
  needsVerification,
} from '../../../domain/subscription/actions.ts';
import type { Change } from '../../../domain/subscription/change.ts';
import type { Command, CommandResult } from '../../../domain/subscription/commands.ts';
import { readCommand } from '../../../domain/subscription/read-command.ts';
import { validateCommand } from '../../../domain/subscription/validate-command.ts';
import { nextPaymentAt } from '../../../domain/subscription/state.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type {
  CommandAnswer,
  SubscriptionWorkflows,
} from '../../../temporal/subscriptions/workflows.ts';
import { activityDeps, createFakeGateway } from './gateway.ts';

/**
 * Creates a fake of the port to subscription workflows, without Temporal. The fake validates and executes a
 * command at once, with the rules and activities of the workflow and a gateway in memory.
 */
export function createFakeWorkflows(db: Db, now: () => number) {
  const faults = {
    isDown: false,
    holdExecute: Promise.resolve(),
    card: null as string | null,
    refund: null,
  };
  const deps = activityDeps(db, createFakeGateway(faults).gateway);
  const transitions = createTransitionActivities(deps);
  const charging = createChargingActivities(deps);
  const calls: { name: string; ref: object }[] = [];
  /** The end of the latest command of each subscription. */
  const turns = new Map<string, Promise<unknown>>();

  const workflows: SubscriptionWorkflows = {
    async start(ref) {
      calls.push({ name: 'start', ref });
      return !faults.isDown;
    },
    async execute(ref, command) {
      calls.push({ name: `execute ${command.kind} ${command.commandId}`, ref });
      await faults.holdExecute;
      if (faults.isDown) throw new DomainError('service_unavailable');
      // As the workflow does, one command after the other.
      const turn = Promise.resolve(turns.get(ref.subscriptionId))
        .catch(() => undefined)
        .then(() => executeNow(ref, received(command)));
      turns.set(ref.subscriptionId, turn);
      return turn;
    },
    async advanceClock(ref, targetAt) {
      calls.push({ name: `advanceClock ${targetAt}`, ref });
      if (faults.isDown) throw new DomainError('service_unavailable');
      const { version } = (await snapshotOf(ref)).state;
      await recordClockReached(db, { ...ref, version }, targetAt);
    },
    async recheck(ref) {
      calls.push({ name: 'recheck', ref });
    },
    recheckAll: async () => undefined,
    endPayerPriority: async () => undefined,
    holdCompleted: async () => undefined,
    recheckUnlessBusy: async () => true,
    replaceIfStuck: async () => false,
    ensureRunning: async () => false,
    closedSince: async () => [],
    countRunning: async () => 0,
  };
  const webhooks: ApiDeps['webhooks'] = {
    async wakeStream(stream) {
      calls.push({ name: 'wakeStream', ref: stream });
    },
    async breakerClosed(endpoint) {
      calls.push({ name: 'breakerClosed', ref: endpoint });
    },
    async ping(endpoint) {
      calls.push({ name: 'ping', ref: endpoint });
      return { httpStatus: 200, error: null, durationMs: 7, answer: 'ok' };
    },
  };
  return {
    ...workflows,
    webhooks,
    calls,
    faults,
    /** Charges the next cycle as on its due date. */
    async fallDue(ref: SubscriptionRef): Promise<void> {
      const { state } = await snapshotOf(ref);
      const dueAt = nextPaymentAt(state);
      if (dueAt === null) throw new Error('nothing falls due by itself');
      const step = { do: 'chargeCycle', dueAt } as const;
      const time = { now: dueAt, realNow: now() };
      await charge(actionForStep(state, step, time).change, null, dueAt);
    },
    /** Looks the open attempt up at the gateway in memory. */
    async lookUp(ref: SubscriptionRef): Promise<void> {
      const { state } = await snapshotOf(ref);
      await charging.chargeAttempt({
        state,
        opening: null,
        nowAt: now(),
        realNowAt: now(),
      });
    },
  };

  async function executeNow(ref: SubscriptionRef, command: Command): Promise<CommandAnswer> {
    const known = await findCommand(db, ref, command.commandId);
    if (known) return known.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
    const snapshot = await snapshotOf(ref);
    const nowAt = snapshot.clock?.nowAt ?? now();
    const decision = validateCommand(snapshot.state, command, nowAt);
    if (!decision.ok) return { ...decision, kind: 'refused' };
    return carryOut(ref, snapshot, command, nowAt);
  }

  async function snapshotOf(ref: SubscriptionRef): Promise<Snapshot> {
    const snapshot = await loadSnapshot(db, ref);
    if (!snapshot) throw new Error('the API asks for its own subscriptions only');
    return snapshot;
  }

  async function carryOut(
    ref: SubscriptionRef,
    { state }: Snapshot,
    command: Command,
    nowAt: number,
  ): Promise<CommandAnswer> {
    let paymentMethodId: string | null = null;
    if (carriesToken(command)) {
      const redeemed = await transitions.redeemToken({
        ...command,
        at: { ...ref, version: state.version },
        merchantId: ref.merchantId,
        customerId: state.customerId,
        verify: needsVerification(state, command),
        nowAt,
      });
      if (redeemed.kind === 'refused') return declined(redeemed.errorCode);
      if (redeemed.kind === 'adopt') throw new Error('another call has changed the row');
      paymentMethodId = redeemed.paymentMethodId;
    }
    const time = { now: nowAt, realNow: now() };
    const action = actionForCommand(state, command, time, paymentMethodId);
    return action.do === 'charge'
      ? charge(action.change, command, nowAt)
      : record(command, action.change, action.result, nowAt);
  }

  async function charge(
    { state, effects }: Change,
    command: Command | null,
    nowAt: number,
  ): Promise<CommandAnswer> {
    const { merchantId, subscriptionId, version } = state;
    const charged = await charging.chargeAttempt({
      state,
      opening: {
        effects,
        transitionId: command?.commandId ?? `${subscriptionId}:${version}`,
        command: command && { commandId: command.commandId, kind: command.kind, result: null },
        nowAt,
      },
      nowAt,
      realNowAt: now(),
    });
    if (charged.kind === 'refused') return { ...charged.refusal, kind: 'refused' };
    const ref = { merchantId, subscriptionId };
    const known = command && (await findCommand(db, ref, command.commandId));
    return known?.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
  }

  async function record(
    { commandId, kind }: Command,
    change: Change,
    result: CommandResult | null,
    nowAt: number,
  ): Promise<CommandAnswer> {
    const command = { commandId, kind, result };
    await writeChange(db, { change, transitionId: commandId, command, nowAt });
    return result ? { kind: 'result', result } : { kind: 'pending' };
  }
}

function declined(errorCode: string): CommandAnswer {
  return { kind: 'result', result: { kind: 'checkout', outcome: 'declined', errorCode } };
}

/** The command as the workflow reads it from its update, which has only the fields that it knows. */
function received(command: Command): Command {
  const read = readCommand(command.kind, command, command.commandId);
  if (!read.ok) throw new Error(read.message);
  return read.command;
}

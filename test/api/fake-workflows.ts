import { randomBytes } from 'node:crypto';
import { createChargingActivities } from '../../activities/charging.ts';
import { createTransitionActivities } from '../../activities/transitions.ts';
import type { Db } from '../../db/client.ts';
import {
  findCommand,
  loadSnapshot,
  recordClockReached,
  recordTransition,
} from '../../db/repositories/subscriptions.ts';
import type { Snapshot } from '../../db/repositories/subscriptions.ts';
import type { DeclineCode } from '../../domain/declines.ts';
import { DomainError } from '../../domain/errors.ts';
import { newId } from '../../domain/ids.ts';
import { openAttempt } from '../../domain/subscription/apply-attempt.ts';
import { applyCancel, applyTrialStart } from '../../domain/subscription/apply-command.ts';
import type { Change } from '../../domain/subscription/change.ts';
import type {
  Command,
  CommandResult,
  CompleteCheckoutCommand,
} from '../../domain/subscription/commands.ts';
import { judge } from '../../domain/subscription/judge.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { PaymentGateway } from '../../gateways/port.ts';
import type { CommandAnswer, SubscriptionWorkflows } from '../../runtime/subscription-workflows.ts';

/**
 * The port to subscription workflows without Temporal: commands are judged and carried out at once,
 * with the rules and the activities that the workflow uses. What the card does is in the token: one
 * that holds a decline code is declined with it, one that holds `unknown` has no known outcome.
 */
export function createFakeWorkflows(db: Db, now: () => number) {
  const gateway = fakeGateway();
  const transitions = createTransitionActivities({ db, gateway });
  const charging = createChargingActivities({ db, gateway });
  const calls: { name: string; ref: object }[] = [];
  const faults = { isDown: false, holdExecute: Promise.resolve() };

  const workflows: SubscriptionWorkflows = {
    async start(ref) {
      calls.push({ name: 'start', ref });
      return !faults.isDown;
    },
    async execute(ref, command) {
      calls.push({ name: `execute ${command.kind} ${command.commandId}`, ref });
      await faults.holdExecute;
      if (faults.isDown) throw new DomainError('service_unavailable');
      const known = await findCommand(db, ref, command.commandId);
      if (known)
        return known.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
      const snapshot = await loadSnapshot(db, ref);
      if (!snapshot) throw new Error('the API sends commands to its own subscriptions only');
      const nowAt = snapshot.clock?.nowAt ?? now();
      const verdict = judge(snapshot.state, command, nowAt);
      if (!verdict.ok) return { kind: 'refused', code: verdict.code, message: verdict.message };
      return carryOut(ref, snapshot, command, nowAt);
    },
    async advanceClock(ref, targetAt) {
      calls.push({ name: `advanceClock ${targetAt}`, ref });
      if (faults.isDown) throw new DomainError('service_unavailable');
      await recordClockReached(db, ref, targetAt);
    },
    async wakeStream(stream) {
      calls.push({ name: 'wakeStream', ref: stream });
    },
    revive: async () => undefined,
    restore: async () => undefined,
    lostSince: async () => [],
  };
  return { ...workflows, calls, faults };

  async function carryOut(
    ref: SubscriptionRef,
    { state }: Snapshot,
    command: Command,
    nowAt: number,
  ): Promise<CommandAnswer> {
    if (command.kind === 'cancel') {
      return record(command, applyCancel(state, command, nowAt), { kind: 'done' }, nowAt);
    }
    if (command.kind !== 'completeCheckout')
      throw new Error(`no such command yet: ${command.kind}`);
    const redeemed = await transitions.redeemToken({
      ...command,
      merchantId: ref.merchantId,
      customerId: state.customerId,
      verify: state.terms.trial !== null,
      nowAt,
    });
    if (redeemed.kind === 'refused') return declined(redeemed.errorCode);
    const { paymentMethodId } = redeemed;
    if (state.terms.trial) {
      const saved = { kind: 'checkout', outcome: 'saved', errorCode: null } as const;
      return record(command, applyTrialStart(state, paymentMethodId, nowAt), saved, nowAt);
    }
    return charge(ref, command, nowAt, {
      ...openAttempt(state, {
        trigger: 'checkout',
        commandId: command.commandId,
        now: nowAt,
        realNow: now(),
        paymentMethodId,
      }),
    });
  }

  async function charge(
    ref: SubscriptionRef,
    command: CompleteCheckoutCommand,
    nowAt: number,
    opening: Change,
  ): Promise<CommandAnswer> {
    const { commandId, kind } = command;
    await charging.chargeAttempt({
      state: opening.state,
      opening: { transitionId: commandId, command: { commandId, kind, result: null }, nowAt },
      nowAt,
      realNowAt: now(),
    });
    const known = await findCommand(db, ref, commandId);
    return known?.result ? { kind: 'result', result: known.result } : { kind: 'pending' };
  }

  async function record(
    { commandId, kind }: Command,
    change: Change,
    result: CommandResult,
    nowAt: number,
  ): Promise<CommandAnswer> {
    const command = { commandId, kind, result };
    await recordTransition(db, { change, transitionId: commandId, command, nowAt });
    return { kind: 'result', result };
  }
}

function declined(errorCode: string): CommandAnswer {
  return { kind: 'result', result: { kind: 'checkout', outcome: 'declined', errorCode } };
}

function fakeGateway(): PaymentGateway {
  const DAY_MS = 86_400_000;
  return {
    name: 'fake',
    capabilities: { lookup: true, refunds: false, keyLifetimeMs: DAY_MS, mode: 'test' },
    tokeniserUrl: '',
    testCards: [],
    async saveMethod({ token }) {
      const card = {
        gatewayMethodId: token,
        brand: 'visa',
        country: 'US',
        lastFourDigit: '4242',
        expiryMonth: 12,
        expiryYear: 2034,
      };
      return { kind: 'saved', card };
    },
    async charge({ gatewayMethodId }) {
      const code = /card_declined|insufficient_funds/.exec(gatewayMethodId)?.[0] as DeclineCode;
      if (code) return { kind: 'declined', code, gatewayChargeId: null };
      if (gatewayMethodId.includes('unknown')) return { kind: 'unknown', reason: 'asked for' };
      return { kind: 'succeeded', gatewayChargeId: newId('req', Date.now(), randomBytes) };
    },
    async lookup() {
      return { kind: 'unknown', reason: 'asked for' };
    },
    async refund() {
      return { kind: 'not_sent', reason: 'no refunds here' };
    },
  };
}

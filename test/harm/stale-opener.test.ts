import { describe, expect } from 'vitest';
import { actionForCommand, actionForStep } from '../../domain/subscription/actions.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import { isChargeable } from '../../domain/subscription/state.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import type { ChargeAttemptInput } from '../../activities/subscription.ts';
import { openAttemptRow } from '../../db/repositories/subscriptions/open-attempt.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { unpaidIn } from '../support/unpaid.ts';

/**
 * A worker opens an attempt and is killed. The run, which does not know this, then takes another transition of the
 * earlier state first. Two transitions of one version lead to the same version and to the same number of an attempt.
 */

const UNPAID_AT = Date.parse('2027-02-10T00:00:00Z');
const RETRY_AT = Date.parse('2027-02-10T04:00:00Z');

interface Transition {
  readonly input: ChargeAttemptInput;
  readonly paymentMethodId: string;
}

function transition(
  state: SubscriptionState,
  given: Command | 'automatic_retry',
  nowAt: number,
  newMethodId: string | null = null,
): Transition {
  const time = { now: nowAt, realNow: Date.now() };
  const isStep = given === 'automatic_retry';
  const { change } = isStep
    ? actionForStep(state, { do: 'retryAutomatically' }, time)
    : actionForCommand(state, given, time, newMethodId);
  const command = isStep ? null : { commandId: given.commandId, kind: given.kind, result: null };
  const transitionId = isStep ? `${state.subscriptionId}:${change.state.version}` : given.commandId;
  const opening = { effects: change.effects, transitionId, command, nowAt };
  return {
    input: { state: change.state, opening, nowAt, realNowAt: time.realNow },
    paymentMethodId: change.state.openAttempt?.paymentMethodId ?? '',
  };
}

/** Saves another card of the subscription's customer. */
async function newMethod(env: TestEnvironment, ref: SubscriptionRef): Promise<string> {
  const { customerId, merchantId } = await env.state(ref);
  const given = checkoutCommand(await env.token());
  const redeemed = await env.activities.redeemToken({
    at: await env.state(ref),
    merchantId,
    customerId,
    paymentToken: given.paymentToken,
    checkoutSessionId: given.checkoutSessionId,
    verify: false,
    nowAt: UNPAID_AT,
  });
  if (redeemed.kind !== 'saved') throw new Error(`the card was ${redeemed.kind}`);
  return redeemed.paymentMethodId;
}

async function open(env: TestEnvironment, { input }: Transition): Promise<void> {
  if (!isChargeable(input.state)) throw new Error('no attempt is open');
  expect(await openAttemptRow(env.db, input.state, input.opening)).toMatchObject({
    kind: 'opened',
  });
}

test.afterEach(async ({ env }) => {
  await env.startWorkers();
});

const retry = () => command('manualRetry');
const replacement = () =>
  command('replacePaymentMethod', { paymentToken: '', checkoutSessionId: '' });

describe('an opening of an attempt whose version has another transition', () => {
  test.for([
    ['an automatic retry', 'a manual retry'],
    ['a manual retry', 'an automatic retry'],
    ['a new card', 'a manual retry'],
    ['a manual retry', 'a new card'],
    ['a new card', 'another new card'],
  ] as const)(
    'sends nothing and takes the row, which has %s, in place of %s [D-30, D-32, D-33]',
    async ([first, second], { env }) => {
      const { ref } = await unpaidIn(env);
      await env.stopWorkers();
      const before = await env.state(ref);
      const transitionOf = async (name: string): Promise<Transition> => {
        if (name === 'an automatic retry') return transition(before, 'automatic_retry', RETRY_AT);
        if (name === 'a manual retry') return transition(before, retry(), RETRY_AT);
        return transition(before, replacement(), RETRY_AT, await newMethod(env, ref));
      };
      const opened = await transitionOf(first);
      const stale = await transitionOf(second);
      await open(env, opened);
      const row = await env.state(ref);
      expect(await env.activities.chargeAttempt(stale.input)).toEqual({
        kind: 'adopt',
        state: row,
        result: null,
      });
      expect(await env.state(ref)).toEqual(row);
      expect(await env.book(ref)).toHaveLength(2);

      // The run settles the attempt that its row has.
      const settle = { state: row, opening: null, nowAt: RETRY_AT, realNowAt: Date.now() };
      expect(await env.activities.chargeAttempt(settle)).toMatchObject({
        kind: 'settled',
        outcome: { kind: 'succeeded' },
      });
      expect(await env.state(ref)).toMatchObject({
        status: 'ACTIVE',
        cyclesCharged: 2,
        paymentMethodId: opened.paymentMethodId,
      });
      expect((await env.book(ref)).map(({ outcome, sentCount }) => [outcome, sentCount])).toEqual([
        ['succeeded', 1],
        ['declined', 1],
        ['succeeded', 1],
      ]);
    },
  );
});

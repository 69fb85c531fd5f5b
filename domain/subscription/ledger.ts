import { formatInstant } from '../calendar.ts';
import { intentIdOfCycle } from '../ids.ts';
import { actionForCommand, actionForStep, carriesToken } from './actions.ts';
import type { DueStep } from './actions.ts';
import { applyAdoption, applyOutcome } from './apply-attempt.ts';
import type { AttemptOutcome } from './apply-attempt.ts';
import type { Orderer } from './actor.ts';
import { changed } from './change.ts';
import type { Change } from './change.ts';
import type { ChargeCause } from './charge-cause.ts';
import type { Command } from './commands.ts';
import { decide, isChargeStep } from './decide.ts';
import type { Step } from './decide.ts';
import type { Entry } from './entries.ts';
import { applyCardLimit, applyDispute, applyLateCharge, applyNewDetails } from './notes.ts';
import { applyNotice } from './notices.ts';
import { newSubscription } from './state.ts';
import type { OpenAttempt, SubscriptionState } from './state.ts';
import type { AttemptTrigger } from '../payment-intent.ts';

/** Derives a subscription anew from its ledger and the opening of its attempts, by the rules that the workflow follows. */

export type Identity = Pick<
  SubscriptionState,
  'subscriptionId' | 'merchantId' | 'customerId' | 'testClockId'
>;

/** An attempt on a cycle, as it was opened. `openedAt` null: unknown in a history, or copied from the gateway's book. */
export interface OpenedAttempt {
  readonly intentId: string;
  readonly attemptNumber: number;
  readonly trigger: AttemptTrigger;
  readonly openedAt: number | null;
  /** Absent in a history. */
  readonly paymentMethodId?: string;
}

/** What the rules say about an attempt. */
export interface DerivedCharge {
  readonly intentId: string;
  readonly attemptNumber: number;
  readonly trigger: AttemptTrigger;
  readonly amountMinor: number;
  readonly dueAt: number;
  readonly cause: ChargeCause;
}

export interface Derived {
  readonly state: SubscriptionState;
  readonly charges: readonly DerivedCharge[];
}

/** Two facts that should be equal. */
export interface Difference {
  readonly what: string;
  readonly derived: unknown;
  readonly recorded: unknown;
}

export class UnderivableError extends Error {
  override readonly name = 'UnderivableError';
}

/** @throws UnderivableError at the first entry that the rules do not allow. */
export function derive(
  identity: Identity,
  entries: readonly Entry[],
  attempts: readonly OpenedAttempt[],
): Derived {
  const [first, ...rest] = entries;
  if (first === undefined) throw new UnderivableError('the ledger is empty');
  const derivation = new Derivation(identity, first, attempts);
  for (const entry of rest) derivation.add(entry);
  return derivation.end();
}

/** What only some entries have: older ones no method, newer ones no `waitsUntilAt`. */
const UNCOMPARED = { paymentMethodId: undefined, waitsUntilAt: undefined };

class Derivation {
  private state: SubscriptionState;
  private readonly charges: DerivedCharge[] = [];
  private readonly attempts: ReadonlyMap<string, OpenedAttempt>;

  constructor(identity: Identity, first: Entry, attempts: readonly OpenedAttempt[]) {
    this.state = asUnderivable(() => firstState(identity, first));
    this.compareLatest(first);
    this.attempts = new Map(attempts.map((each) => [keyOf(each), each]));
  }

  add(entry: Entry): void {
    const { version } = this.state;
    if (entry.version < version + 1 || entry.version > version + 2) {
      throw new UnderivableError(`version ${entry.version} follows version ${version}`);
    }
    // The transition between them opened an attempt.
    if (entry.version === version + 2) this.open(entry);
    this.move(() => changeOf(this.state, entry, (now) => this.stepAt(now, entry.kind)));
    this.compareLatest(entry);
  }

  private compareLatest(entry: Entry): void {
    const [difference] = differencesIn(
      '',
      { ...this.state.latest, ...UNCOMPARED },
      { ...entry, ...UNCOMPARED },
    );
    if (difference) {
      const { what, derived, recorded } = difference;
      const at = `version ${entry.version} (${entry.kind})`;
      throw new UnderivableError(
        `${at}: ${what} is ${jsonOf(recorded)}, by the rules ${jsonOf(derived)}`,
      );
    }
  }

  /** The latest transition may have opened an attempt, which has no entry. */
  end(): Derived {
    const next = this.attempts.get(this.nextKey());
    // A copied attempt has not been opened by the run yet.
    const isOpened = next !== undefined && next.openedAt !== null;
    if (this.state.openAttempt === null && isOpened) this.open(null);
    return { state: this.state, charges: this.charges };
  }

  private nextKey(): string {
    const { subscriptionId, cyclesCharged, owed } = this.state;
    const intentId = intentIdOfCycle(subscriptionId, cyclesCharged + 1);
    return keyOf({ intentId, attemptNumber: (owed?.attempts ?? 0) + 1 });
  }

  /** `following`: the entry of the next version. What opened a copied attempt is only in the entry of its outcome. */
  private open(following: Entry | null): void {
    const key = this.nextKey();
    const attempt = this.attempts.get(key);
    if (!attempt) throw new UnderivableError(`no attempt ${key}, but the ledger goes on after it`);
    const now = attempt.openedAt ?? following?.at ?? this.state.latest.at;
    const time = { now, realNow: now };
    const isCopied = attempt.openedAt === null;
    const { trigger } = isCopied && following && isOutcome(following) ? following : attempt;
    this.move(() => {
      if (trigger === 'checkout') {
        const methodId = attempt.paymentMethodId ?? 'of the checkout';
        return actionForCommand(this.state, tokenCommand('completeCheckout'), time, methodId)
          .change;
      }
      const step = this.stepAt(now, `attempt ${key} (${trigger})`);
      const isExpected =
        step.do === (trigger === 'scheduled' ? 'chargeCycle' : 'retryAutomatically');
      if (!isExpected) throw new Error(`${trigger} attempt ${key}: the due step is ${step.do}`);
      return actionForStep(this.state, step, time).change;
    });
  }

  private move(changed: () => { state: SubscriptionState }): void {
    const before = this.state.openAttempt;
    this.state = asUnderivable(changed).state;
    const { owed, openAttempt } = this.state;
    if (before === null && openAttempt !== null && owed !== null) {
      const { intentId, amountMinor, dueAt } = owed;
      const { attemptNumber, trigger, cause } = openAttempt;
      this.charges.push({ intentId, attemptNumber, trigger, amountMinor, dueAt, cause });
    }
  }

  /** Returns the step that is due at `now`. A lifted cooldown has no entry. */
  private stepAt(now: number, what: string): DueStep {
    let step: Step = decide(this.state, now, now);
    if (step.do === 'liftCooldown') {
      this.state = { ...this.state, cooldownUntilAt: null };
      step = decide(this.state, now, now);
    }
    return dueStep(step, now, what);
  }
}

function dueStep(step: Step, now: number, what: string): DueStep {
  if (step.do === 'wait') {
    const until = step.until === null ? 'a command' : formatInstant(step.until);
    throw new UnderivableError(`${what} at ${formatInstant(now)}: nothing is due until ${until}`);
  }
  if (step.do === 'finish' || step.do === 'settleAttempt' || step.do === 'liftCooldown') {
    throw new UnderivableError(`${what} at ${formatInstant(now)}: the next step is ${step.do}`);
  }
  return step;
}

/** Returns the change that made an entry which follows `state`. @throws UnderivableError if the rules do not allow it. */
export function changeBy(state: SubscriptionState, entry: Entry): Change {
  return asUnderivable(() =>
    changeOf(state, entry, (now) => dueStep(decide(state, now, now), now, entry.kind)),
  );
}

function asUnderivable<Value>(derived: () => Value): Value {
  try {
    return derived();
  } catch (error) {
    if (error instanceof UnderivableError) throw error;
    throw new UnderivableError(error instanceof Error ? error.message : String(error));
  }
}

function firstState(
  { subscriptionId, merchantId, customerId, testClockId }: Identity,
  entry: Entry,
): SubscriptionState {
  const identity = { subscriptionId, merchantId, customerId, testClockId };
  const { at: createdAt } = entry;
  if (entry.kind === 'created') {
    const { terms, checkoutExpiresAt } = entry;
    return newSubscription({ ...identity, terms, createdAt, checkoutExpiresAt });
  }
  if (entry.kind !== 'imported') throw new UnderivableError(`the ledger begins with ${entry.kind}`);
  const { terms, status, anchorAt, nextIndex, cyclesCharged, currentPeriodEndAt } = entry;
  const start = { status, anchorAt, nextIndex, cyclesCharged, currentPeriodEndAt };
  const created = newSubscription({ ...identity, terms, createdAt, checkoutExpiresAt: createdAt });
  return { ...created, ...start, owed: null, paymentMethodId: 'imported', latest: entry };
}

const tokenCommand = (kind: 'completeCheckout' | 'replacePaymentMethod'): Command => ({
  kind,
  commandId: '',
  paymentToken: '',
  checkoutSessionId: '',
});

function changeOf(
  state: SubscriptionState,
  entry: Entry,
  stepAt: (now: number) => DueStep,
): Change {
  const { at } = entry;
  const time = { now: at, realNow: at };
  const command = commandOf(entry);
  if (command) {
    // A method of its own, so that declines of the former do not stop the retries.
    const given = 'paymentMethodId' in entry ? entry.paymentMethodId : undefined;
    const methodId = carriesToken(command) ? (given ?? `of version ${entry.version}`) : null;
    return actionForCommand(state, command, time, methodId).change;
  }
  if (isOutcome(entry)) return applyOutcome(state, outcomeOf(entry), at, at);
  if (entry.kind === 'disputed') return applyDispute(state, entry, at);
  if (entry.kind === 'late_charge') return applyLateCharge(state, entry, at);
  if (entry.kind === 'details_updated') {
    // Else it has withdrawn a notice that the ledger does not have.
    return applyNewDetails(state, at) ?? changed(state, {}, entry);
  }
  if (entry.kind === 'notice_given' || entry.kind === 'notice_missed') {
    return applyNotice(state, entry, at);
  }
  if (entry.kind === 'adopted') return applyAdoption(state, entry, at, at);
  if (entry.kind === 'limited') {
    const step = stepAt(at);
    if (isChargeStep(step)) return applyCardLimit(state, step, entry, at);
  }
  if (entry.kind !== 'ended' && entry.kind !== 'unpaused') {
    throw new UnderivableError(`version ${entry.version} is ${entry.kind}`);
  }
  return actionForStep(state, stepAt(at), time).change;
}

type OutcomeEntry = Extract<Entry, Pick<OpenAttempt, 'attemptNumber'>>;

const isOutcome = (entry: Entry): entry is OutcomeEntry => 'attemptNumber' in entry;

function outcomeOf(entry: OutcomeEntry): AttemptOutcome {
  switch (entry.kind) {
    case 'paid':
      return { ...entry, kind: 'succeeded' };
    case 'declined':
      return { ...entry, retryPlan: entry.plan };
    case 'review':
    case 'unsent':
      return entry;
    case 'payer_asked':
      return { kind: 'unknown', awaitsPayer: true };
    case 'unanswered':
      return { kind: 'unknown' };
  }
}

/** Returns the command that made the entry; null if a date made it. */
function commandOf(entry: Entry): Command | null {
  const actor = entry.actor as Orderer;
  const commandId = 'commandId' in entry ? (entry.commandId ?? '') : '';
  const order = { commandId, actor };
  switch (entry.kind) {
    case 'edited': {
      const { amountMinor, cycleCount, every, nextPaymentAt } = entry;
      return {
        kind: 'edit',
        ...order,
        ...every,
        newAmountMinor: amountMinor,
        newCycleCount: cycleCount,
        newNextPaymentAt: nextPaymentAt,
      };
    }
    case 'cancellation_planned':
      return { kind: 'cancel', ...order, reason: 'cancelled', atPeriodEnd: true };
    case 'cancellation_withdrawn':
      return { kind: 'resume', ...order };
    case 'manual_retry':
      return { kind: 'manualRetry', ...order };
    case 'trial_begun':
      return tokenCommand('completeCheckout');
    case 'method_replaced':
      return tokenCommand('replacePaymentMethod');
    case 'authentication_begun':
      return { kind: 'authenticatePayment', commandId, checkoutSessionId: '' };
    case 'paused':
      return { kind: 'pause', ...order, resumeAt: entry.resumeAt ?? undefined };
    case 'ended': {
      if (entry.rule !== 'command') return null;
      const reason = entry.reason === 'checkout_cancelled' ? entry.reason : 'cancelled';
      return { kind: 'cancel', ...order, reason };
    }
    case 'unpaused':
      if (entry.rule === 'pause_end') return null;
      return { kind: 'unpause', ...order, newNextPaymentAt: entry.nextPaymentAt };
    case 'created':
    case 'imported':
    case 'paid':
    case 'declined':
    case 'limited':
    case 'unanswered':
    case 'payer_asked':
    case 'review':
    case 'unsent':
    case 'disputed':
    case 'late_charge':
    case 'details_updated':
    case 'adopted':
    case 'notice_given':
    case 'notice_missed':
      return null;
  }
}

const keyOf = ({ intentId, attemptNumber }: { intentId: string; attemptNumber: number }): string =>
  `${intentId} ${attemptNumber}`;

/** For texts about a difference. */
export const jsonOf = (value: unknown): string => JSON.stringify(value) ?? 'absent';

/** Returns the paths at which two JSON values differ. An absent member equals one that is undefined. */
export function differencesIn(path: string, derived: unknown, recorded: unknown): Difference[] {
  if (!isObject(derived) || !isObject(recorded)) {
    return Object.is(derived, recorded) ? [] : [{ what: path, derived, recorded }];
  }
  const names = new Set([...Object.keys(derived), ...Object.keys(recorded)]);
  return [...names].flatMap((name) =>
    differencesIn(path === '' ? name : `${path}.${name}`, derived[name], recorded[name]),
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Returns how the derived state differs from the row's, without what no entry has: look-ups, delays, some methods. */
export function stateDifferences(derived: SubscriptionState, row: SubscriptionState): Difference[] {
  // A cooldown that is over is lifted without a transition.
  const isLifted = derived.cooldownUntilAt === null || row.cooldownUntilAt === null;
  const cooldown = isLifted ? { cooldownUntilAt: null } : {};
  // No entry names the method of an import, nor an older entry any.
  const isUnnamed = derived.paymentMethodId?.startsWith('pmt_') === false;
  const method = isUnnamed ? { paymentMethodId: null } : {};
  return differencesIn(
    '',
    comparable({ ...derived, ...cooldown, ...method }),
    comparable({ ...row, ...cooldown, ...method }),
  );
}

function comparable(state: SubscriptionState) {
  const { owed, openAttempt, cooldownUntilAt, latest } = state;
  const { version, status, endReason, terms, anchorAt, nextIndex, cyclesCharged } = state;
  const { currentPeriodEndAt, cancelAtPeriodEnd, resumeAt, createdAt, checkoutExpiresAt } = state;
  return {
    version,
    status,
    endReason,
    terms,
    anchorAt,
    nextIndex,
    cyclesCharged,
    currentPeriodEndAt,
    cancelAtPeriodEnd,
    resumeAt,
    createdAt,
    checkoutExpiresAt,
    paymentMethodId: state.paymentMethodId,
    latest,
    // A cooldown that is over is lifted without a transition.
    cooldownUntilAt:
      cooldownUntilAt !== null && cooldownUntilAt > latest.at ? cooldownUntilAt : null,
    owed: owed && { ...owed, payer: undefined },
    openAttempt: openAttempt && {
      attemptNumber: openAttempt.attemptNumber,
      trigger: openAttempt.trigger,
      startedAt: openAttempt.startedAt,
      cause: openAttempt.cause,
      voidedBy: openAttempt.voidedBy,
      paysUntilAt: openAttempt.paysUntilAt,
    },
  };
}

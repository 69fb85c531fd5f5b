import { DEFAULT_CARD_LIMITS, limitReached, limitRefusal } from '../card-limits.ts';
import type { CardLimits, ReachedLimit } from '../card-limits.ts';
import { datedAdvice } from '../declines.ts';
import type { StatedAdvice } from '../declines.ts';
import type { EventType } from '../events.ts';
import type { NoticeRules } from '../notice-rules.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import type { RetryPlan } from '../retry-plan.ts';
import { actionForCommand, actionForStep, carriesToken } from './actions.ts';
import type { Action, DueStep } from './actions.ts';
import { applyOutcome } from './apply-attempt.ts';
import type { AttemptOutcome } from './apply-attempt.ts';
import { isSuperseded } from './authentication.ts';
import { causeText } from './charge-cause.ts';
import type { Change } from './change.ts';
import { entryEvents } from './change.ts';
import type { Command } from './commands.ts';
import { decide, isChargeStep } from './decide.ts';
import type { EntryText } from './entries.ts';
import { planNotices } from './plan-notices.ts';
import { textOf } from './entries.ts';
import { applyCardLimit } from './notes.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from './state.ts';
import type { SubscriptionStatus } from './status.ts';
import { validateCommand } from './validate-command.ts';
import type { RefusalReason } from '../errors.ts';

/** A subscription's future under a script, from the rules that the workflow follows. Nothing is written or sent. */

const SIMULATED_CYCLES_MAX = 120;
/** More steps than any script needs; a script of commands that never ends is cut. */
const STEPS_MAX = 5_000;

export interface Script {
  /**
   * An attempt gets the first outcome that is left for it. Every other one is paid, unless a command has voided it or the
   * payer has replaced its card.
   */
  readonly outcomes: readonly ScriptedOutcome[];
  /** In the order of their instants. Steps that are due at the same instant come first. */
  readonly commands: readonly ScriptedCommand[];
  /** The code of an attempt without a scripted outcome that nothing has voided; null or absent: none. */
  readonly declineOf?: (attempt: OpenAttempt, owed: OwedCycle, at: number) => string | null;
  /** Nothing after this instant is played. */
  readonly untilAt?: number;
  /** Default: those of every merchant. */
  readonly cardLimits?: CardLimits;
  /** Default: no further notices than those of the state. */
  readonly noticeRules?: NoticeRules;
  /** The card of the state. Others do not expire. */
  readonly card?: { readonly id: string; readonly expiresAt: number };
  /** The declined attempts on the state's payment method, latest first. Default: none. */
  readonly declinedAt?: readonly number[];
}

export interface ScriptedCommand {
  readonly at: number;
  /** How a refusal names the command. */
  readonly name: string;
  readonly command: Command;
}

/** For the next `times` attempts on a cycle, or from an instant on. `code` null: paid. */
export interface ScriptedOutcome {
  readonly for: { readonly cycleNumber: number } | { readonly fromAt: number };
  readonly code: string | null;
  readonly times: number;
  /** What the bank advises in the decline. Absent or null: nothing. */
  readonly advice?: StatedAdvice | null;
}

/** One transition, or a refused command. `status` and `currentPeriodEndAt` are those after it. */
export interface SimulatedStep extends EntryText {
  at: number;
  status: SubscriptionStatus;
  currentPeriodEndAt: number | null;
  events: EventType[];
  charge: SimulatedCharge | null;
  refusal: RefusalReason | null;
}

export interface SimulatedCharge {
  cycleNumber: number;
  attemptNumber: number;
  amountMinor: number;
  trigger: AttemptTrigger;
  cause: string;
  /** Null if it is paid. */
  errorCode: string | null;
}

export interface Simulated {
  steps: SimulatedStep[];
  state: SubscriptionState;
  /** False if it would go on after 120 cycles. */
  isComplete: boolean;
}

/** Plays `script` from `nowAt` on, until nothing is due any more, or else until `untilAt`, or 120 more cycles are paid. */
export function simulate(...from: ConstructorParameters<typeof Simulation>): Simulated {
  const simulation = simulateByStep(...from);
  for (;;) {
    const { done, value } = simulation.next();
    if (done) return value;
  }
}

/** As {@link simulate}; yields after each step, of which a simulation may have thousands. */
export function simulateByStep(
  ...from: ConstructorParameters<typeof Simulation>
): Generator<void, Simulated> {
  return new Simulation(...from).play();
}

/** The steps before the first due step of a new subscription: its creation. */
export function creationStep(state: SubscriptionState): SimulatedStep {
  const { createdAt: at, status, currentPeriodEndAt } = state;
  const created: EventType[] = state.owed === null ? [] : ['intent.created'];
  const events = [...created, ...entryEvents(null, state, at).map(({ type }) => type)];
  const rest = { status, currentPeriodEndAt, events, charge: null, refusal: null };
  return { at, ...textOf(state.latest, state.terms), ...rest };
}

/** A charge has its outcome at once. An attempt that a command has voided was not made. */
type SimulatedOutcome = Extract<AttemptOutcome, { kind: 'succeeded' | 'declined' }>;

class Simulation {
  private readonly steps: SimulatedStep[] = [];
  private readonly outcomes: { outcome: ScriptedOutcome; left: number }[];
  private readonly commands: ScriptedCommand[];
  private readonly script: Script;
  private readonly cyclesMax: number;
  private readonly retryPlan: RetryPlan;
  /** The declined attempts by payment method, latest first. */
  private readonly declined = new Map<string | null, readonly number[]>();
  private state: SubscriptionState;
  private now: number;

  constructor(state: SubscriptionState, nowAt: number, retryPlan: RetryPlan, script: Script) {
    this.state = state;
    this.now = nowAt;
    this.retryPlan = retryPlan;
    this.script = script;
    this.outcomes = script.outcomes.map((outcome) => ({ outcome, left: outcome.times }));
    this.commands = [...script.commands];
    this.declined.set(state.paymentMethodId, script.declinedAt ?? []);
    this.cyclesMax =
      script.untilAt === undefined ? state.cyclesCharged + SIMULATED_CYCLES_MAX : Infinity;
  }

  *play(): Generator<void, Simulated> {
    let isComplete = false;
    while (this.steps.length < STEPS_MAX && this.state.cyclesCharged < this.cyclesMax) {
      if (!this.advance()) {
        isComplete = true;
        break;
      }
      yield;
    }
    return {
      steps: this.steps,
      state: this.state,
      isComplete: isComplete || this.state.status === 'ENDED',
    };
  }

  /** Takes the next due step or command. Returns false if there is none. */
  private advance(): boolean {
    const [next] = this.commands;
    // The gateway answers at once: the wait for it is real time, which a test clock does not have.
    const step = decide(this.state, this.now, Infinity);
    if (step.do === 'wait' || step.do === 'finish') {
      const dueAt = step.do === 'wait' ? step.until : null;
      if (next && (dueAt === null || next.at < dueAt)) this.execute(next);
      else if (dueAt === null || dueAt > (this.script.untilAt ?? Infinity)) return false;
      else this.now = Math.max(this.now, dueAt);
      return true;
    }
    if (step.do === 'liftCooldown') this.state = { ...this.state, cooldownUntilAt: null };
    else if (step.do === 'settleAttempt') this.settle();
    else this.take(step);
    return true;
  }

  private get time() {
    return { now: this.now, realNow: this.now };
  }

  private execute({ at, name, command }: ScriptedCommand): void {
    this.commands.shift();
    this.now = Math.max(this.now, at);
    const decision = validateCommand(this.state, command, this.now);
    if (!decision.ok) {
      this.refuse(name, decision);
      return;
    }
    const methodId = carriesToken(command) ? `simulated:${command.commandId}` : null;
    const action = actionForCommand(this.state, command, this.time, methodId);
    const limit = this.limitOf(action);
    if (limit) this.refuse(name, limitRefusal(limit));
    else this.act(action);
  }

  private refuse(name: string, refusal: RefusalReason): void {
    const { status, currentPeriodEndAt } = this.state;
    const rest = { status, currentPeriodEndAt, events: [], charge: null, refusal };
    this.steps.push({ at: this.now, what: `${name} refused`, why: refusal.message, ...rest });
  }

  private take(step: DueStep): void {
    const action = actionForStep(this.state, step, this.time);
    const limit = this.limitOf(action);
    if (!limit || !isChargeStep(step)) this.act(action);
    else {
      const change = applyCardLimit(this.state, step, limit, this.now);
      this.act({ do: 'record', change, result: null });
    }
  }

  private limitOf({ do: what, change }: Action): ReachedLimit | null {
    if (what === 'record') return null;
    const declinedAt = this.declined.get(change.state.openAttempt?.paymentMethodId ?? null) ?? [];
    const unpaid = { declinedAt, undecided: 0 };
    return limitReached(unpaid, this.script.cardLimits ?? DEFAULT_CARD_LIMITS, this.now);
  }

  private act(action: Action): void {
    const before = this.state;
    this.move(action.change);
    const { owed } = this.state;
    // A cycle of which no attempt was opened has no intent yet; the checkout's has one.
    const isNewCycle =
      owed !== null &&
      before.status !== 'CREATED' &&
      (before.owed?.cycleNumber !== owed.cycleNumber || before.owed.attempts === 0);
    const events = [
      ...(action.do === 'charge' && isNewCycle ? (['intent.created'] as const) : []),
      ...typesOf(action.change),
    ];
    if (action.do === 'record' || this.state.latest !== before.latest) this.tell(events, null);
    if (action.do === 'charge')
      this.settle(action.change.state.latest === before.latest ? events : []);
  }

  private move({ state }: Change): void {
    const { noticeRules = [], card } = this.script;
    const facts = {
      cardExpiresAt: card?.id === state.paymentMethodId ? (card?.expiresAt ?? null) : null,
      formerAmountMinor: this.state.terms.amountMinor,
    };
    this.state = { ...state, ...planNotices(state, noticeRules, this.now, facts) };
  }

  /** The open attempt gets its outcome at once. `events`: those of its opening, which has no entry of its own. */
  private settle(events: readonly EventType[] = []): void {
    const { owed, openAttempt } = this.state;
    if (!owed || !openAttempt) throw new Error('no attempt is open');
    const outcome = this.outcomeOf(owed, openAttempt);
    const errorCode = outcome.kind === 'declined' ? outcome.code : null;
    if (outcome.kind === 'declined' && !outcome.isWithdrawn) {
      const { paymentMethodId } = openAttempt;
      const earlier = this.declined.get(paymentMethodId) ?? [];
      this.declined.set(paymentMethodId, [this.now, ...earlier]);
    }
    const change = applyOutcome(this.state, outcome, this.now, this.now);
    this.move(change);
    const { cycleNumber, amountMinor } = owed;
    const { attemptNumber, trigger } = openAttempt;
    const cause = causeText(openAttempt.cause, trigger);
    const charge = { cycleNumber, attemptNumber, amountMinor, trigger, cause, errorCode };
    this.tell([...events, ...typesOf(change)], charge);
  }

  private outcomeOf(owed: OwedCycle, attempt: OpenAttempt): SimulatedOutcome {
    const declined = { kind: 'declined', retryPlan: this.retryPlan } as const;
    const scripted = this.scriptedFor(owed);
    if (scripted?.code === null) return { kind: 'succeeded' };
    if (scripted) {
      const { code, advice } = scripted;
      return { ...declined, code, ...(advice && { advice: datedAdvice(advice, this.now) }) };
    }
    if (attempt.voidedBy !== null) {
      return { ...declined, code: 'processing_error', isWithdrawn: true };
    }
    // The bank had asked the payer, who entered another card and did not answer the bank.
    if (isSuperseded(this.state)) return { ...declined, code: 'authentication_required' };
    const unscripted = this.script.declineOf?.(attempt, owed, this.now) ?? null;
    return unscripted === null ? { kind: 'succeeded' } : { ...declined, code: unscripted };
  }

  /** Undefined: the script says nothing about the attempt. */
  private scriptedFor({ cycleNumber }: OwedCycle): ScriptedOutcome | undefined {
    const found = this.outcomes.find(({ outcome, left }) => {
      if (left === 0) return false;
      return 'fromAt' in outcome.for
        ? this.now >= outcome.for.fromAt
        : outcome.for.cycleNumber === cycleNumber;
    });
    if (found) found.left -= 1;
    return found?.outcome;
  }

  private tell(events: EventType[], charge: SimulatedCharge | null): void {
    const { status, currentPeriodEndAt, latest, terms } = this.state;
    const rest = { status, currentPeriodEndAt, events, charge, refusal: null };
    this.steps.push({ at: this.now, ...textOf(latest, terms), ...rest });
  }
}

function typesOf({ events }: Change): EventType[] {
  return events.map(({ type }) => type);
}

import {
  allHandlersFinished,
  log,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { backoffMs, jitterOf } from '../../domain/delays.ts';
import { ERRORS } from '../../domain/errors.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { decide } from '../../domain/subscription/decide.ts';
import type { Step } from '../../domain/subscription/decide.ts';
import { describe, ENTRIES_SHOWN } from '../../domain/subscription/describe.ts';
import type { RefusedSignal } from '../../domain/subscription/describe.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import { knownUntil } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import type { ClockPosition } from '../../domain/subscription/snapshot.ts';
import {
  DATABASE_WRITE,
  INSIDE_WORKFLOW_TASK,
  localFirst,
  MONEY_MOVEMENT,
  siblingTaskQueue,
} from '../activity-calls.ts';
import { attributesOf, productNameOf } from './messages.ts';
import type { SubscriptionInput } from './messages.ts';

export type UpdateOutcome = { ok: true; result: CommandResult } | ({ ok: false } & RefusalReason);

export interface QueuedCommand {
  readonly command: Command;
  /** True if a caller waits for the outcome. The caller can send the command again. */
  readonly isAwaited: boolean;
  /**
   * The target of a test clock that was behind it when the command arrived; else null. The clock moves first, because
   * the caller may have read from the row that it is reached.
   */
  readonly afterAdvanceTo: number | null;
  outcome: UpdateOutcome | null;
}

/** The command may or may not be recorded. A repeat with the same `commandId` gets the result. */
const UNAVAILABLE: UpdateOutcome = {
  ok: false,
  code: 'service_unavailable',
  message: ERRORS.service_unavailable.message,
};

/** Backoff in ms of a run that cannot read its row. Only an operator can repair the row. */
const HELD_MS = 3_600_000;

/** A run with this many events continues as new before it sleeps or moves its test clock. */
const HISTORY_EVENTS_MAX = 400;
/** An idle run with this many events, after six to ten renewals, continues as new: an uncached run is replayed. */
const HISTORY_EVENTS_LONG = 50;
/** Two runs differ by at most this number of events, so that not all of one wave continue as new in the same month. */
const LONG_WINDOW = 12;

/** The facts from which `plan` decides what a run does next. */
export interface Facts {
  /** True if the database may hold a later state than the run. */
  readonly needsResync: boolean;
  /** True if an activity has used up its retries, and the backoff after it is not over. */
  readonly isBackingOff: boolean;
  readonly hasCommand: boolean;
  /** True if a caller waits for the answer of a command. */
  readonly isCommandAwaited: boolean;
  /** True if the oldest command arrived after an advance of the test clock, and the clock has not reached the target. */
  readonly isCommandAfterAdvance: boolean;
  /** The next step of the billing schedule, from `decide`. */
  readonly step: Step;
  /** Null without a test clock. `reported`: the database knows that the clock is at its target. */
  readonly testClock: 'behind its target' | 'at its target' | 'reported' | null;
  /** False if the history is so long that the run must continue as new before it sleeps. */
  readonly hasRoom: boolean;
  /** True if no handler is in progress. */
  readonly isDrained: boolean;
  /** True if the run should continue as new now, provided that it is idle. */
  readonly isSuccessorDue: boolean;
}

/** The state of one workflow run, in memory. */
export class Run implements Facts {
  /** In the order of arrival. Handlers add, and only the loop removes: one command at a time. */
  inbox: QueuedCommand[] = [];
  readonly clock: Clock;
  readonly activities = localFirstActivities();
  /** Real time at which the backoff ends. A command whose caller waits is executed during a backoff, too. */
  backoffUntilAt = 0;
  /** True if the row may hold a later state. The run must read the row before it does anything else. */
  needsResync: boolean;
  /** True if a recheck was requested: after the next read of the row, an open attempt is looked up. */
  isRecheckWanted: boolean;
  /** True if the open attempt is looked up now, before the scheduled look-up. */
  isLookupWanted = false;
  /** True while an activity writes or reads the row. The row may then differ from `state`. */
  isWriting = false;
  private failures = 0;
  private current: SubscriptionState;
  private shown: Entry[];
  private refusedSignal: RefusedSignal | null = null;
  /** The reason why {@link hold} has stopped the run's work; null if the run is not held. */
  private heldBecause: string | null = null;
  private publishedText: string;

  constructor(input: SubscriptionInput) {
    this.current = input.state;
    this.shown = input.entries;
    this.needsResync = input.needsResync;
    this.isRecheckWanted = input.isRecheckWanted ?? false;
    this.clock = new Clock(input.clock);
    this.adopt(input.state);
    this.publishedText = this.attributesAsText();
  }

  get state(): SubscriptionState {
    return this.current;
  }

  /** The latest entries of the ledger that this run knows, for the Web UI. */
  get entries(): Entry[] {
    return this.shown;
  }

  get isBackingOff(): boolean {
    return this.clock.realNow < this.backoffUntilAt;
  }

  get hasCommand(): boolean {
    return this.inbox.length > 0;
  }

  get isCommandAwaited(): boolean {
    return this.inbox.some(({ isAwaited }) => isAwaited);
  }

  get isCommandAfterAdvance(): boolean {
    const target = this.inbox[0]?.afterAdvanceTo ?? null;
    return target !== null && this.clock.now < target;
  }

  get step(): Step {
    if (this.current.openAttempt && this.isLookupWanted) return { do: 'settleAttempt' };
    return decide(this.current, this.clock.now, this.clock.realNow);
  }

  get testClock(): Facts['testClock'] {
    if (!this.clock.isTestClock) return null;
    if (this.clock.isBehind) return 'behind its target';
    return this.clock.unreportedAt === null ? 'reported' : 'at its target';
  }

  get hasRoom(): boolean {
    return workflowInfo().historyLength < HISTORY_EVENTS_MAX;
  }

  get isDrained(): boolean {
    return allHandlersFinished();
  }

  /** A run on a test clock or with an unknown outcome is soon busy again, so it stays in the cache. */
  get isSuccessorDue(): boolean {
    if (this.clock.isTestClock || this.current.openAttempt !== null) return false;
    const limit = HISTORY_EVENTS_LONG + jitterOf(this.current.subscriptionId, LONG_WINDOW);
    return workflowInfo().historyLength >= limit;
  }

  /** True if `state` equals the row, as far as the run knows. */
  get isInSync(): boolean {
    return !this.needsResync && !this.isWriting;
  }

  /** Makes `state` the run's state, and shows it in the Web UI. `entries`: the latest ones of the row, if it was read. */
  adopt(state: SubscriptionState, entries: readonly Entry[] = withLatest(this.shown, state)): void {
    this.current = state;
    this.shown = entries.slice(-ENTRIES_SHOWN);
    // If a worker died after it wrote the row, the row's state may be ahead of the test clock.
    this.clock.catchUp(knownUntil(state));
    this.showDetails();
  }

  /** Logs why a signal is refused and shows the reason in the Web UI, because the sender gets no answer. */
  refuseSignal(signal: string, reason: string): void {
    log.warn('a signal was refused', { signal, reason });
    this.refusedSignal = { signal, reason, at: this.clock.now, version: this.state.version };
    this.showDetails();
  }

  /** Makes the run read its row again and look up an unknown outcome now. */
  recheck(): void {
    this.needsResync = true;
    this.isRecheckWanted = true;
    // The operator may have repaired the row.
    if (this.heldBecause !== null) this.backoffUntilAt = 0;
  }

  /** Stops the run's work for an hour or until a recheck. Logs each reason once. */
  hold(reason: string, remedy = 'Repair the row, then send the signal `recheck`'): void {
    const text = `${reason}. ${remedy}`;
    if (this.heldBecause !== text) log.error('held: an operator must repair the row', { reason });
    this.heldBecause = text;
    this.backoffUntilAt = this.clock.realNow + HELD_MS;
    this.showDetails();
  }

  release(): void {
    if (this.heldBecause === null) return;
    this.heldBecause = null;
    this.backoffUntilAt = 0;
    this.showDetails();
  }

  backOff(): void {
    this.failures += 1;
    this.backoffUntilAt =
      this.clock.realNow + backoffMs(this.failures, this.current.subscriptionId);
  }

  noteProgress(): void {
    this.failures = 0;
  }

  /** Removes the oldest command and gives its caller the outcome. */
  answerFirst(outcome: UpdateOutcome): void {
    const first = this.inbox.shift();
    if (first) first.outcome = outcome;
  }

  /** Answers every waiting caller `service_unavailable`. Commands without a waiting caller stay. */
  answerUnavailable(): void {
    for (const queued of this.inbox) if (queued.isAwaited) queued.outcome = UNAVAILABLE;
    this.inbox = this.inbox.filter(({ isAwaited }) => !isAwaited);
  }

  /** Writes the search attributes if any has changed since this run's last write. */
  publishAttributes(): void {
    const text = this.attributesAsText();
    if (text === this.publishedText) return;
    this.publishedText = text;
    upsertSearchAttributes(attributesOf(this.current));
  }

  private showDetails(): void {
    const { current, shown: entries, refusedSignal: refused, heldBecause } = this;
    const productName = productNameOf(workflowInfo());
    setCurrentDetails(
      describe(current, this.clock.now, { productName, refused, entries, heldBecause }),
    );
  }

  private attributesAsText(): string {
    return JSON.stringify(attributesOf(this.current));
  }
}

/** The workflow's time, or that of its test clock, which only the run moves. No other code reads a clock. */
export class Clock {
  private position: ClockPosition | null;

  constructor(position: ClockPosition | null) {
    this.position = position && { ...position };
  }

  get isTestClock(): boolean {
    return this.position !== null;
  }

  get now(): number {
    return this.position?.nowAt ?? this.realNow;
  }

  get realNow(): number {
    // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
    return Date.now();
  }

  get snapshot(): ClockPosition | null {
    return this.position && { ...this.position };
  }

  get isBehind(): boolean {
    return this.position !== null && this.position.nowAt < this.position.targetAt;
  }

  /** The target, if the test clock has not reached it; else null. */
  get pendingTargetAt(): number | null {
    return this.position !== null && this.isBehind ? this.position.targetAt : null;
  }

  /** The target, if the test clock has reached it and no row records this yet; else null. */
  get unreportedAt(): number | null {
    if (!this.position || this.isBehind) return null;
    return this.position.nowAt > this.position.reachedAt ? this.position.nowAt : null;
  }

  /** Call this after the database has recorded that the test clock reached `reachedAt`. */
  reported(reachedAt: number): void {
    if (this.position) this.position.reachedAt = reachedAt;
  }

  /** Sets the target. Ignores a target that is not later than the present target. */
  sendTo(targetAt: number): void {
    if (this.position && targetAt > this.position.targetAt) this.position.targetAt = targetAt;
  }

  /** Moves a test clock forward to `at`, the row's latest change, but not past its target. */
  catchUp(at: number): void {
    if (!this.position) return;
    const { nowAt, targetAt } = this.position;
    this.position.nowAt = Math.max(nowAt, Math.min(at, targetAt));
  }

  /**
   * Moves a test clock back to `at`, but not before the last recorded target. The run had moved the clock without the
   * steps of a row that it did not know.
   */
  moveBack(at: number): void {
    if (!this.position) return;
    const { nowAt, reachedAt } = this.position;
    this.position.nowAt = Math.min(nowAt, Math.max(at, reachedAt));
  }

  /**
   * Moves a test clock to `until`, the next due step, or to its earlier target; never past a due step. True if it
   * reached `until`.
   */
  stepTo(until: number | null): boolean {
    if (!this.position) return false;
    const { targetAt } = this.position;
    const isReached = until !== null && until <= targetAt;
    this.position.nowAt = Math.max(this.position.nowAt, isReached ? until : targetAt);
    return isReached;
  }
}

function withLatest(entries: readonly Entry[], { latest }: SubscriptionState): readonly Entry[] {
  return entries.at(-1)?.version === latest.version ? entries : [...entries, latest];
}

function localFirstActivities() {
  const local = proxyLocalActivities<Activities>(INSIDE_WORKFLOW_TASK);
  const taskQueue = siblingTaskQueue('charges');
  const charges = proxyActivities<Activities>({ ...MONEY_MOVEMENT, taskQueue });
  const records = proxyActivities<Activities>({ ...DATABASE_WRITE, taskQueue });
  return {
    chargeAttempt: localFirst(local.chargeAttempt, charges.chargeAttempt),
    redeemToken: localFirst(local.redeemToken, charges.redeemToken),
    record: localFirst(local.record, records.record),
    loadSubscription: localFirst(local.loadSubscription, records.loadSubscription),
    clockReached: localFirst(local.clockReached, records.clockReached),
    wakeStream: localFirst(local.wakeStream, records.wakeStream),
  };
}

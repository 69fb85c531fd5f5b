import {
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { ERRORS } from '../../domain/errors.ts';
import { describe } from '../../domain/subscription/describe.ts';
import { knownUntil, nextPaymentAt } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { localFirst } from '../local-first.ts';
import {
  DATABASE_WRITE,
  INSIDE_WORKFLOW_TASK,
  MONEY_MOVEMENT,
  WEBHOOK_DELIVERY,
} from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { Clock } from './clock.ts';
import { Inbox } from './inbox.ts';
import type { Answer } from './inbox.ts';
import { attributesOf } from './messages.ts';
import type { SubscriptionInput } from './messages.ts';

/** The command may or may not be recorded: the caller sends it again with its id to find out. */
const UNAVAILABLE: Answer = {
  ok: false,
  code: 'service_unavailable',
  message: ERRORS.service_unavailable.message,
};

/** What one run of the workflow holds in memory: the state, its time, its commands, its activities. */
export class Run {
  readonly inbox = new Inbox();
  readonly clock: Clock;
  readonly activities: ReturnType<typeof activitiesOf>;
  /** See `SubscriptionInput.isLocalFirst`. */
  readonly isLocalFirst: boolean;
  /** See `SubscriptionInput.shape`. */
  readonly isOfSecondShape: boolean;
  /** See `SubscriptionInput.hasLeftCheckout`. */
  readonly hasLeftCheckout: boolean;
  /** Real time of the end of a backoff, after an activity gave up. An awaited command does not wait for it. */
  backoffUntilAt = 0;
  /** The database may hold a later state: the row is read before anything else is done. */
  needsResync: boolean;
  /**
   * A caller was answered `service_unavailable`. The server repeats that answer to the same update id as
   * long as this run lasts, so the run makes room for one that carries the command out.
   */
  hasAnsweredUnavailable = false;
  /** A command or a step was taken. Only runs from before local activities ask. */
  isChanged = false;
  /** Real time at which this run, idle and long, hands over to its successor. */
  quietAt: number | null = null;
  /** An activity is writing the row, so the row may already differ from the state here. */
  isWriting = false;
  private current: SubscriptionState;
  /** The search attributes last written, as text. */
  private publishedText: string;

  constructor(input: SubscriptionInput) {
    this.current = input.state;
    this.needsResync = input.isInDoubt;
    this.clock = new Clock(input.clock);
    this.isLocalFirst = input.isLocalFirst === true;
    this.isOfSecondShape = input.shape === 2;
    this.hasLeftCheckout = input.hasLeftCheckout === true;
    this.activities = activitiesOf(this.isLocalFirst);
    this.adopt(input.state);
    this.publishedText = this.attributesAsText();
  }

  get state(): SubscriptionState {
    return this.current;
  }

  /** The state here is the recorded one, as far as the run knows. */
  get isInSync(): boolean {
    return !this.needsResync && !this.isWriting;
  }

  /** Goes on from `state`, which is recorded, and shows it in the Web UI. */
  adopt(state: SubscriptionState): void {
    this.current = state;
    // A row can be further than this run when the worker died before the workflow task was completed.
    this.clock.catchUp(knownUntil(state));
    setCurrentDetails(describe(state));
  }

  /** Reads the row again and plans from it. A sweep asks for this when the row says that a step is late. */
  recheck(): void {
    this.needsResync = true;
  }

  /** Answers every waiting caller `service_unavailable`. Commands without a waiting caller stay. */
  answerUnavailable(): void {
    this.inbox.answerAwaited(UNAVAILABLE);
    this.hasAnsweredUnavailable = true;
  }

  /** Writes the search attributes if they changed since this run last wrote them. */
  publishAttributes(): void {
    const text = this.attributesAsText();
    if (text === this.publishedText) return;
    this.publishedText = text;
    upsertSearchAttributes(attributesOf(this.current));
  }

  private attributesAsText(): string {
    const { current } = this;
    const attributes = attributesOf(current);
    // A run of the first shape wrote two attributes more, and has to write as often as it did.
    return JSON.stringify(
      this.isOfSecondShape
        ? attributes
        : [attributes, current.cyclesCharged, nextPaymentAt(current)],
    );
  }
}

function activitiesOf(isLocalFirst: boolean) {
  const local = isLocalFirst ? proxyLocalActivities<Activities>(INSIDE_WORKFLOW_TASK) : null;
  const taskQueue = siblingTaskQueue('charges');
  const charges = proxyActivities<Activities>({ ...MONEY_MOVEMENT, taskQueue });
  const records = proxyActivities<Activities>({ ...DATABASE_WRITE, taskQueue });
  const deliveries = proxyActivities<Activities>({
    ...WEBHOOK_DELIVERY,
    // A run neither ends nor sleeps before it: with no worker for webhooks it is given up.
    scheduleToStartTimeout: '30 seconds',
    taskQueue: siblingTaskQueue('webhooks'),
    summary: 'deliver webhooks',
  });
  return {
    chargeAttempt: localFirst(local && local.chargeAttempt, charges.chargeAttempt),
    redeemToken: localFirst(local && local.redeemToken, charges.redeemToken),
    record: localFirst(local && local.record, records.record),
    loadSubscription: localFirst(local && local.loadSubscription, records.loadSubscription),
    clockReached: localFirst(local && local.clockReached, records.clockReached),
    wakeStream: localFirst(local && local.wakeStream, records.wakeStream),
    deliverPending: deliveries.deliverPending,
  };
}

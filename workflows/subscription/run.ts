import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { describe } from '../../domain/subscription/describe.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { DATABASE_WRITE, MONEY_MOVEMENT, WEBHOOK_DELIVERY } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { Clock } from './clock.ts';
import { Inbox } from './inbox.ts';
import type { SubscriptionInput } from './messages.ts';

type Proxies = ReturnType<typeof proxies>;

/** What one run of the workflow holds in memory: the state, its time, its commands, its activities. */
export class Run {
  readonly inbox = new Inbox();
  readonly clock: Clock;
  readonly activities: Proxies;
  /** Real time before which nothing is tried again after an activity gave up; commands still are. */
  holdUntilAt = 0;
  /** The row may have moved on unheard: it is read before anything else is done. */
  isInDoubt: boolean;
  /** An activity is at the row: by now it may say something else than the state here. */
  isAtRow = false;
  private current: SubscriptionState;

  constructor(input: SubscriptionInput) {
    this.current = input.state;
    this.isInDoubt = input.isInDoubt;
    this.clock = new Clock(input.clock);
    this.activities = proxies();
    this.adopt(input.state);
  }

  get state(): SubscriptionState {
    return this.current;
  }

  /** What the state says is what is recorded, as far as anybody can know. */
  get isCertain(): boolean {
    return !this.isInDoubt && !this.isAtRow;
  }

  /** `state` is recorded (or about to be carried to its record): go on from it, and say so. */
  adopt(state: SubscriptionState): void {
    this.current = state;
    setCurrentDetails(describe(state));
  }

  /** Somebody thinks that something is late: look again, at the row too. */
  poke(): void {
    this.isInDoubt = true;
  }
}

function proxies() {
  return {
    charges: proxyActivities<Activities>({
      ...MONEY_MOVEMENT,
      taskQueue: siblingTaskQueue('charges'),
    }),
    records: proxyActivities<Activities>({
      ...DATABASE_WRITE,
      taskQueue: siblingTaskQueue('charges'),
    }),
    deliveries: proxyActivities<Activities>({
      ...WEBHOOK_DELIVERY,
      // A run neither ends nor sleeps before it: with no worker for webhooks it is given up.
      scheduleToStartTimeout: '30 seconds',
      taskQueue: siblingTaskQueue('webhooks'),
      summary: 'deliver webhooks',
    }),
  };
}

import { ActivityFailure, log } from '@temporalio/workflow';
import type { Run } from './run.ts';

/**
 * First delivery of events. The activity that records an event also passes it to its process's dispatcher, so
 * the workflow only begins the delivery of events from before its start. A run from before local activities
 * (`isLocalFirst` is absent) requests every delivery. At most one such round is in flight; a request during a
 * round causes another one after it.
 */
export class Deliveries {
  isInFlight = false;
  private readonly run: Run;
  private isWanted = false;

  constructor(run: Run) {
    this.run = run;
  }

  /** Begins the delivery of events that were recorded before the workflow was started. */
  async begin(): Promise<void> {
    const { merchantId, subscriptionId: streamId } = this.run.state;
    if (!this.run.isLocalFirst) {
      this.request();
      return;
    }
    try {
      await this.run.activities.wakeStream('begin to deliver', { merchantId, streamId });
    } catch (error) {
      noteFailure(error);
    }
  }

  request(): void {
    if (this.run.isLocalFirst) return;
    this.isWanted = true;
    if (!this.isInFlight) void this.deliver();
  }

  private async deliver(): Promise<void> {
    this.isInFlight = true;
    while (this.isWanted) {
      this.isWanted = false;
      const { merchantId, subscriptionId } = this.run.state;
      try {
        await this.run.activities.deliverPending({
          merchantId,
          streamId: subscriptionId,
          nowAt: this.run.clock.realNow,
          handOver: true,
        });
      } catch (error) {
        noteFailure(error);
      }
    }
    this.isInFlight = false;
  }
}

/** The sweep finds the events in the outbox. An error other than an activity's failure is a bug. */
function noteFailure(error: unknown): void {
  if (!(error instanceof ActivityFailure)) throw error;
  log.warn('first delivery gave up', { reason: error.cause?.message ?? error.message });
}

import { ActivityFailure, log } from '@temporalio/workflow';
import type { Run } from './run.ts';

/**
 * Starts the first delivery of events. The activity that records an event passes the event to the webhook dispatcher
 * of the worker process. The workflow therefore starts only the delivery of events that were recorded before the
 * workflow started.
 *
 * A run that an older release started, without local activities (`isLocalFirst` is absent), calls `deliverPending`
 * after every change. At most one such call is in flight; a request during a call causes another call after it.
 */
export class Deliveries {
  isInFlight = false;
  private readonly run: Run;
  private isWanted = false;

  constructor(run: Run) {
    this.run = run;
  }

  /** Starts the delivery of events that were recorded before the workflow started. */
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

/**
 * Logs the failure of an activity; the maintenance sweep delivers the events later. Throws any other error, which is a
 * bug.
 */
function noteFailure(error: unknown): void {
  if (!(error instanceof ActivityFailure)) throw error;
  log.warn('first delivery gave up', { reason: error.cause?.message ?? error.message });
}

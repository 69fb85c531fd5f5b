import { ActivityFailure, log } from '@temporalio/workflow';
import type { Run } from './run.ts';

/**
 * First delivery of the events that this run caused. At most one round is in flight; asking while one
 * is runs another after it, so no event waits for a later cause. It never holds up a command. What
 * a round leaves is the stream workflow's. Design §5.
 */
export class Deliveries {
  isInFlight = false;
  private readonly run: Run;
  private isWanted = false;

  constructor(run: Run) {
    this.run = run;
  }

  request(): void {
    this.isWanted = true;
    if (!this.isInFlight) void this.deliver();
  }

  private async deliver(): Promise<void> {
    this.isInFlight = true;
    while (this.isWanted) {
      this.isWanted = false;
      const { merchantId, subscriptionId } = this.run.state;
      try {
        await this.run.activities.deliveries.deliverPending({
          merchantId,
          streamId: subscriptionId,
          nowAt: this.run.clock.realNow,
          handOver: true,
        });
      } catch (error) {
        // The events stay in the outbox; the sweep wakes their stream.
        if (!(error instanceof ActivityFailure)) throw error;
        log.warn('first delivery gave up', { reason: error.cause?.message ?? error.message });
      }
    }
    this.isInFlight = false;
  }
}

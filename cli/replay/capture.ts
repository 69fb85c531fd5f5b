// Workflow interceptors of a replay: pass what the workflow code of this build orders to the process outside. They
// change nothing. No worker of the product has them.

import { proxySinks } from '@temporalio/workflow';
import type { Sinks, WorkflowInterceptors } from '@temporalio/workflow';

/** `seq`: the number of the timer or activity in its run. `summary`: its text in the Web UI. */
export type Captured =
  | { kind: 'timer'; seq: number; summary: string | undefined; durationMs: number }
  | {
      kind: 'activity' | 'local activity';
      seq: number;
      summary: string | undefined;
      type: string;
      args: unknown[];
    }
  | { kind: 'successor'; args: unknown[] }
  | { kind: 'answer'; updateId: string; answer: unknown };

export interface CaptureSinks extends Sinks {
  capture: { add: (captured: Captured) => void };
}

const { capture } = proxySinks<CaptureSinks>();

export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      handleUpdate(input, next) {
        const answered = next(input);
        // Not awaited: the order of the workflow's own steps must stay as it is.
        void answered.then(
          (answer) => capture.add({ kind: 'answer', updateId: input.updateId, answer }),
          () => undefined,
        );
        return answered;
      },
    },
  ],
  outbound: [
    {
      startTimer(input, next) {
        const { seq, durationMs, options } = input;
        capture.add({ kind: 'timer', seq, durationMs, summary: options?.summary });
        return next(input);
      },
      scheduleActivity(input, next) {
        const { seq, activityType: type, args, options } = input;
        capture.add({ kind: 'activity', seq, type, args, summary: options.summary });
        return next(input);
      },
      scheduleLocalActivity(input, next) {
        const { seq, activityType: type, args, options } = input;
        capture.add({ kind: 'local activity', seq, type, args, summary: options.summary });
        return next(input);
      },
      continueAsNew(input, next) {
        capture.add({ kind: 'successor', args: input.args });
        return next(input);
      },
    },
  ],
});

import { condition } from '@temporalio/workflow';
import type { Step, Wait } from '../../domain/subscription/decide.ts';
import { describeWait } from '../../domain/subscription/describe.ts';
import { interruptionOf } from './plan.ts';
import type { Run } from './run.ts';

/** Until `step` is due, the backoff is over, a message brings work, or the run must continue as new. */
export async function sleep(run: Run, step: Step): Promise<void> {
  const { clock } = run;
  // Messages may make the history too long. During a backoff a full run sleeps on, because a command in the inbox would
  // prevent continue-as-new, and the loop would run without a pause.
  const isFull = (): boolean => !run.hasRoom && !run.isBackingOff;
  const isOver = (): boolean => interruptionOf(run) !== null || isFull();
  // The next run writes them at its start.
  if (!run.isSuccessorDue) run.publishAttributes();
  const backoffMs = run.backoffUntilAt - clock.realNow;
  if (backoffMs > 0 || step.do !== 'wait') {
    await condition(isOver, Math.max(1, backoffMs), { summary: 'try again' });
    return;
  }
  const wait = timerFor(run, step);
  if (wait) await condition(isOver, wait.ms, { summary: wait.summary });
  else await condition(isOver);
}

function timerFor(run: Run, step: Wait): { ms: number; summary: string } | null {
  const { clock } = run;
  const isOnTestClock = clock.isTestClock && step.time === 'own';
  const now = step.time === 'real' ? clock.realNow : clock.now;
  return step.until === null || isOnTestClock
    ? null
    : { ms: step.until - now, summary: describeWait({ ...step, until: step.until }) };
}

/**
 * Points at which a process can be made to kill itself, in the order of a request and an attempt. They
 * are the rows of the crash tables in docs/architecture.md. A failpoint is inactive unless the variable
 * FAILPOINT names it.
 */
export const FAILPOINTS = [
  /** API: work and answer are written under the key, but not committed. */
  'before_claim_commits',
  /** API: work and answer are committed; the workflow is not started. */
  'after_commit',
  /** API: the key is claimed; no work is done. */
  'after_claim',
  /** API and sweeps: the row is committed; Temporal has not received it. */
  'before_hand_over',
  /** API: the outcome is recorded; the key has no answer. */
  'before_answer_stored',
  /** API: the key has its answer; the client does not. */
  'after_answer_stored',
  /** Worker: nothing of the attempt is written. */
  'before_opening',
  /** Worker: the attempt and its key are committed; nothing is sent. */
  'after_opening',
  /** Worker: no request has left for the gateway; the row of the attempt or refund is already SENDING. */
  'before_gateway',
  /** Worker: the gateway has answered; its answer is not recorded. */
  'after_gateway',
  /** Worker: the outcome is known; nothing of it is committed. */
  'before_settling_commits',
  /** Worker: the outcome is committed; the workflow does not know it. */
  'after_settling',
  /** Worker: a transition without a charge is committed; the workflow does not know it. */
  'after_transition',
  /** Worker: a receiver has its event; the delivery is not recorded. */
  'after_delivery',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

/** A failpoint, and which pass of it kills the process: 1 is the first. */
export interface ArmedFailpoint {
  readonly name: Failpoint;
  readonly time: number;
}

let armed: ArmedFailpoint | undefined;
let timesSeen = 0;

/** Called once by an entry point, with its setting. `config.ts` refuses it in production. */
export function armFailpoint(failpoint: ArmedFailpoint | undefined): void {
  armed = failpoint;
  timesSeen = 0;
}

/** Kills this process like `kill -9` if this failpoint is armed. */
export function failpoint(name: Failpoint): void {
  if (armed?.name !== name) return;
  timesSeen += 1;
  if (timesSeen === armed.time) process.kill(process.pid, 'SIGKILL');
}

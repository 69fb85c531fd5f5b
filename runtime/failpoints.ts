/**
 * Moments at which a process may be told to die, in the order of a request's and an attempt's life:
 * the rows of the crash tables in docs/architecture.md. Nothing happens at any of them unless the
 * variable FAILPOINT names it.
 */
export const FAILPOINTS = [
  /** API: work and answer are written under the key, and nothing is committed. */
  'before_claim_commits',
  /** API: work and answer are committed; the workflow is not started. */
  'after_commit',
  /** API: the key is claimed, no work is done. */
  'after_claim',
  /** API and sweeps: the row is there, and Temporal has not been told. */
  'before_hand_over',
  /** API: the outcome is recorded; the key has no answer. */
  'before_answer_stored',
  /** API: the key has its answer, the client does not. */
  'after_answer_stored',
  /** Worker: nothing is written of the attempt. */
  'before_opening',
  /** Worker: the attempt and its key are committed, nothing is sent. */
  'after_opening',
  /** Worker: nothing has left for the gateway; an attempt's or a refund's row says that it may have. */
  'before_gateway',
  /** Worker: the gateway has answered, and nobody knows. */
  'after_gateway',
  /** Worker: the outcome is known, nothing of it is committed. */
  'before_settling_commits',
  /** Worker: the outcome is committed; the workflow does not know. */
  'after_settling',
  /** Worker: a transition without a charge is committed; the workflow does not know. */
  'after_transition',
  /** Worker: a receiver has its event, and the delivery is not recorded. */
  'after_delivery',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

/** Where to die, and at which time of coming there: 1 is the first. */
export interface ArmedFailpoint {
  readonly name: Failpoint;
  readonly time: number;
}

let armed: ArmedFailpoint | undefined;
let timesSeen = 0;

/** Called once by an entry point, with what its settings say. Never in production: see `config.ts`. */
export function armFailpoint(failpoint: ArmedFailpoint | undefined): void {
  armed = failpoint;
  timesSeen = 0;
}

/** Ends this process without any farewell if it was told to die here, as `kill -9` would. */
export function failpoint(name: Failpoint): void {
  if (armed?.name !== name) return;
  timesSeen += 1;
  if (timesSeen === armed.time) process.kill(process.pid, 'SIGKILL');
}

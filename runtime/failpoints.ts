/**
 * Points at which a process can kill itself, chosen by FAILPOINT. An *order* is a subscription, a payment, a refund
 * or a saved card. docs/architecture.md describes the states that they leave.
 */
export const FAILPOINTS = [
  // API, in the order of docs/architecture.md.
  'before_claim_commits',
  'after_commit',
  'after_claim',
  /** API, or worker that handles a gateway's event: the order's workflow is not started, or the command not sent. */
  'before_hand_over',
  'before_answer_stored',
  'after_answer_stored',
  'before_event_stored',
  'after_event_stored',
  /** Worker: the attempt is not written. */
  'before_opening',
  /** Worker: the attempt and its key are committed; no charge is sent. */
  'after_opening',
  /** Worker: the gateway has prepared the charge; its id is not committed. */
  'after_prepare',
  /** Worker: the charge, refund or token redemption is not sent. The row of a charge or refund is SENDING. */
  'before_gateway',
  /** Worker: the gateway has answered; its answer is not recorded. */
  'after_gateway',
  /** Worker: the outcome is known and not committed. */
  'before_settling_commits',
  /** Worker: the outcome is committed; the workflow does not know the outcome. */
  'after_settling',
  /** Worker: a transition without a charge is committed; the workflow does not know the transition. */
  'after_transition',
  'after_delivery',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

/** A failpoint. `time`: the pass at which the process kills itself; 1 is the first. */
export interface ArmedFailpoint {
  readonly name: Failpoint;
  readonly time: number;
}

let armed: ArmedFailpoint | undefined;
let timesSeen = 0;

/** Activates a failpoint. `api/main.ts` and `worker.ts` call this once. In production `config.ts` refuses FAILPOINT. */
export function armFailpoint(failpoint: ArmedFailpoint | undefined): void {
  armed = failpoint;
  timesSeen = 0;
}

/** Kills this process with SIGKILL if this failpoint is active and this is its pass number `time`. */
export function failpoint(name: Failpoint): void {
  if (armed?.name !== name) return;
  timesSeen += 1;
  if (timesSeen === armed.time) process.kill(process.pid, 'SIGKILL');
}

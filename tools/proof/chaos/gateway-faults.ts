import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningStart } from '../../scripts/client/running-start.ts';
import { grouped } from '../../scripts/client/terminal.ts';
import type { Random } from './random.ts';

/** A result of a run: a label and a text. */
export type Figure = [label: string, text: string];

/** The faults of a gateway during the fault phase. */
export interface GatewayFaults {
  begin(): Promise<void>;
  /** Ends all faults, and returns how often each fault has hit. */
  end(): Promise<Figure[]>;
}

/** Number of requests that a fault may hit: more than a run has. */
export const FAULT_COUNT = 1_000_000;

/**
 * The sandbox's faults. A request gets at most one fault: the first fault of this list whose chance hits. Each
 * chance is therefore the wanted share of all charges, divided by the share that the earlier faults leave.
 */
const SANDBOX_FAULTS = [
  { operation: 'charge', fault: 'lose_answer', chance: 0.15 },
  { operation: 'charge', fault: 'lose_answer', effect: 'none', chance: 0.03 / 0.85 },
  // Longer than the gateway client's limit of 5 s.
  { operation: 'charge', fault: 'delay', chance: 0.05 / 0.82, delayMs: 6_000 },
  { operation: 'charge', fault: 'decline', chance: 0.15 / 0.77 },
  { operation: 'lookup', fault: 'error_500', chance: 0.05 },
  { operation: 'refund', fault: 'lose_answer', chance: 0.15 },
] as const;

/**
 * The faults of the sandbox that decides later. The worker repeats a request until the charge is decided, and every
 * request may get a fault. The chance of a decline is therefore lower than in `SANDBOX_FAULTS`. An event whose answer
 * is lost is sent again.
 */
const PENDING_FAULTS = [
  ...SANDBOX_FAULTS.filter(({ fault, operation }) => fault !== 'decline' && operation !== 'lookup'),
  { operation: 'charge', fault: 'decline', chance: 0.05 },
  { operation: 'event', fault: 'drop', chance: 0.2 },
  { operation: 'event', fault: 'lose_answer', chance: 0.2 / 0.8 },
  { operation: 'withdraw', fault: 'lose_answer', chance: 0.3 },
] as const;

/**
 * Range of the delay, in ms, after which the sandbox with the personality `pending` decides. The worker repeats its
 * request for at most 6 s, so some charges are decided after the last repeat.
 */
const DECIDE_AFTER = [0, 10_000] as const;
const NEW_DELAY_EVERY_MS = 3_000;

/** The faults of the sandbox. `isPending`: the sandbox decides charges and refunds later, and has no look-up. */
export function sandboxFaults(
  start: RunningStart,
  isPending: boolean,
  random: Random,
): GatewayFaults {
  const ordered = isPending ? PENDING_FAULTS : SANDBOX_FAULTS;
  const enough = new AbortController();
  let delays: Promise<void> = Promise.resolve();
  /** The gateway may fail while Postgres is down. Then the delay stays. */
  const changeDelays = async (): Promise<void> => {
    while (!enough.signal.aborted) {
      await start.decideAfter(random.between(...DECIDE_AFTER)).catch(() => undefined);
      await sleep(NEW_DELAY_EVERY_MS, undefined, { signal: enough.signal }).catch(() => undefined);
    }
  };
  return {
    begin: async () => {
      for (const fault of ordered) await start.addFault({ ...fault, count: FAULT_COUNT });
      if (isPending) delays = changeDelays();
    },
    end: async () => {
      enough.abort();
      await delays;
      if (isPending) await start.decideAfter(DECIDE_AFTER[0]);
      const faults = await start.faults();
      await start.clearFaults();
      return faults.map(({ operation, fault, effect, hits }) => {
        const before = fault === 'lose_answer' && effect === 'none' ? 'request lost' : fault;
        return [`gateway: ${before.replaceAll('_', ' ')} (${operation})`, grouped(hits)];
      });
    },
  };
}

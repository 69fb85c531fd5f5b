import type { RunningStart } from '../../scripts/client/running-start.ts';
import { grouped } from '../../../cli/command-line/terminal.ts';

export type Figure = [label: string, text: string];

export interface GatewayFaults {
  begin(): Promise<void>;
  end(): Promise<Figure[]>;
}

/** Number of requests that a fault may hit: more than a run has. */
export const FAULT_COUNT = 1_000_000;

const NOT_BEFORE = { kind: 'not_before', waitMs: 24 * 3_600_000 } as const;

/** A request gets the first fault whose chance hits: a chance is its share of what the earlier ones leave. */
const SANDBOX_FAULTS = [
  { operation: 'charge', fault: 'lose_answer', chance: 0.15 },
  { operation: 'charge', fault: 'lose_answer', effect: 'none', chance: 0.03 / 0.85 },
  // Longer than the gateway client's limit of 5 s.
  { operation: 'charge', fault: 'delay', chance: 0.05 / 0.82, delayMs: 6_000 },
  { operation: 'charge', fault: 'decline', chance: 0.07 / 0.77 },
  { operation: 'charge', fault: 'decline', chance: 0.02 / 0.7, advice: { kind: 'never' } },
  {
    operation: 'charge',
    fault: 'decline',
    chance: 0.02 / 0.68,
    advice: { kind: 'new_details_needed' },
  },
  { operation: 'charge', fault: 'decline', chance: 0.04 / 0.66, advice: NOT_BEFORE },
  { operation: 'lookup', fault: 'error_500', chance: 0.05 },
  { operation: 'refund', fault: 'lose_answer', chance: 0.15 },
] as const;

export function sandboxFaults(start: RunningStart): GatewayFaults {
  return {
    begin: async () => {
      for (const fault of SANDBOX_FAULTS) await start.addFault({ ...fault, count: FAULT_COUNT });
    },
    end: async () => {
      const faults = await start.faults();
      await start.clearFaults();
      return faults.map(({ operation, fault, effect, hits }) => {
        const before = fault === 'lose_answer' && effect === 'none' ? 'request lost' : fault;
        return [`gateway: ${before.replaceAll('_', ' ')} (${operation})`, grouped(hits)];
      });
    },
  };
}

import { jitterAt } from '../../domain/subscription/state.ts';
import type { ChargeAttemptInput, ChargeAttemptResult } from '../subscription/charge-attempt.ts';

export interface ChargeObserver {
  /**
   * Time in s from the instant of a renewal, after its delay, to the start of its charge; and whether the gateway has
   * decided this.
   */
  renewed(lateSeconds: number, isDecided: boolean): void;
  settled(outcome: { trigger: string; outcome: string; code: string }): void;
}

type Charge = (input: ChargeAttemptInput) => Promise<ChargeAttemptResult>;

/** Reports the recorded outcomes of `charge`, and how late a renewal began. A repeat after a crash is reported again. */
export function measuredCharges(charge: Charge, observer: ChargeObserver): Charge {
  return async (input) => {
    const startedAt = Date.now();
    const result = await charge(input);
    if (result.kind === 'adopt') return result;
    const { openAttempt } = input.state;
    const dueAt = renewalDueAt(input);
    if (dueAt !== null) observer.renewed(Math.max(0, startedAt - dueAt) / 1_000, isDecided(result));
    if (result.kind === 'settled') {
      const { outcome } = result;
      const code = outcome.kind === 'declined' ? outcome.code : '';
      observer.settled({ trigger: openAttempt?.trigger ?? '', outcome: outcome.kind, code });
    }
    return result;
  };
}

function isDecided(result: ChargeAttemptResult): boolean {
  return result.kind === 'settled' && ['succeeded', 'declined'].includes(result.outcome.kind);
}

/** Null if the call does not open the attempt of a due date, or if a test clock sets the date. */
function renewalDueAt({ state, opening }: ChargeAttemptInput): number | null {
  const cause = state.openAttempt?.cause;
  if (opening === null || cause?.rule !== 'due_date' || state.testClockId !== null) return null;
  return cause.dueAt + jitterAt(state, cause.dueAt);
}

import { availableParallelism } from 'node:os';
import { loadPace, savePace } from '../../db/repositories/subscriptions/renewal-pace.ts';
import type { Db } from '../../db/client.ts';
import { RenewalPace } from '../../domain/subscription/renewal-pace.ts';

/** Renewals a second for each core: before the first wave, and fewest. */
const START_PER_CORE = 20;
const LEAST_PER_CORE = 2;
/** A smaller change of the pace is not stored. */
const STORED_CHANGE = 0.05;

interface PaceDeps {
  readonly db: Db;
  /** `RENEWALS_PER_SECOND`: more are never planned. Absent: no limit. */
  readonly most: number | undefined;
}

/** Returns the pace that earlier processes have learned. */
export async function openPace({ db, most = Infinity }: PaceDeps): Promise<RenewalPace> {
  const cores = availableParallelism();
  const limits = { start: START_PER_CORE * cores, least: LEAST_PER_CORE * cores, most };
  return new RenewalPace(limits, await loadPace(db));
}

/** Returns a function that stores the pace if it has changed. A failed write is repeated by the next call. */
export function paceKeeper(db: Db, pace: RenewalPace, onKept: (perSecond: number) => void) {
  let kept = pace.learned ?? 0;
  return async (): Promise<void> => {
    const { learned } = pace;
    if (learned === null || Math.abs(learned - kept) <= STORED_CHANGE * learned) return;
    const before = kept;
    kept = learned;
    try {
      await savePace(db, learned);
      onKept(learned);
    } catch {
      kept = before;
    }
  };
}

import { TALLY, Violation } from './faults.ts';
import type { Tally } from './faults.ts';
import { Life } from './life.ts';
import { MERCHANTS, openWorld } from './world.ts';
import type { World, WorldOptions } from './world.ts';

export interface FuzzOptions extends Omit<WorldOptions, 'livesAtOnce'> {
  readonly lives: number;
  readonly seed: number;
  readonly report?: (livesDone: number) => void;
}

export interface FoundViolation {
  readonly life: number;
  readonly problems: readonly string[];
  /** What happened in the shortest life that was found with a violation. */
  readonly steps: readonly string[];
}

const LIVES_AT_ONCE = 8;
const BATCH = 48;
const STEPS = 32;
const SHORTENED_MAX = 60;

interface Lived {
  readonly number: number;
  readonly id: string;
  readonly log: readonly string[];
  readonly problem: string | null;
}

/** Lives random lives in batches, and compares all records after each batch. Stops at the first violation. */
export async function fuzzCrashes(
  options: FuzzOptions,
): Promise<{ tally: Tally; lives: number; violation: FoundViolation | null }> {
  const { lives, seed, report } = options;
  const world = await openWorld({ ...options, livesAtOnce: LIVES_AT_ONCE });
  const tally = { ...TALLY };
  try {
    for (let first = 1; first <= lives; first += BATCH) {
      const last = Math.min(lives, first + BATCH - 1);
      const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
      const found = await liveAll(world, seed, numbers, new Set(), tally);
      if (found) {
        const violation = await shortened(world, seed, found);
        return { tally, lives: last, violation };
      }
      report?.(last);
    }
    return { tally, lives, violation: null };
  } finally {
    await world.close();
  }
}

async function liveAll(
  world: World,
  seed: number,
  numbers: readonly number[],
  without: ReadonlySet<number>,
  tally: Tally,
): Promise<FoundViolation | null> {
  const merchantIds = await world.begin();
  const lived: Lived[] = [];
  const waiting = [...numbers];
  const liveOn = async (): Promise<void> => {
    for (let number = waiting.shift(); number !== undefined; number = waiting.shift()) {
      const merchantId = merchantIds[number % MERCHANTS] ?? '';
      const life = new Life({ world, merchantId, seed, number, steps: STEPS, without, tally });
      const problem = await life.toTheEnd().then(
        () => null,
        (error: unknown) =>
          error instanceof Violation ? error.message : String((error as Error).stack),
      );
      lived.push({ number, id: life.subscriptionId, log: life.log, problem });
    }
  };
  await Promise.all(Array.from({ length: LIVES_AT_ONCE }, liveOn));
  const { paid, limited, notices } = await world.counts();
  tally.paid += paid;
  tally.limited += limited;
  tally.notices += notices;
  const problems = await world.problems();
  const wrong = lived.find(
    ({ id, problem }) => problem !== null || problems.some((each) => isAbout(each, id)),
  );
  if (!wrong) {
    if (problems.length > 0) throw new Error(`of no life: ${problems.join('\n')}`);
    return null;
  }
  const mine = problems.filter((each) => isAbout(each, wrong.id));
  const all = wrong.problem === null ? mine : [wrong.problem, ...mine];
  return { life: wrong.number, problems: all, steps: wrong.log };
}

/** A cycle's intent has the subscription's id with another prefix. */
const isAbout = (problem: string, id: string): boolean => problem.includes(id.slice('sub_'.length));

/** Lives the life again alone, without more and more of its steps, as long as a violation remains. */
async function shortened(
  world: World,
  seed: number,
  found: FoundViolation,
): Promise<FoundViolation> {
  let best = found;
  let without = new Set<number>();
  let tries = 0;
  for (let size = STEPS / 2; size >= 1; size = Math.floor(size / 2)) {
    for (let first = 1; first <= STEPS && tries < SHORTENED_MAX; first += size) {
      const more = new Set([
        ...without,
        ...Array.from({ length: size }, (_, index) => first + index),
      ]);
      if (more.size === without.size) continue;
      tries += 1;
      const again = await liveAll(world, seed, [found.life], more, { ...TALLY });
      if (again) [best, without] = [again, more];
    }
  }
  return best;
}

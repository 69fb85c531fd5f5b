import { createArmed } from '../fault-proxy/armed.ts';
import { matches } from '../fault-proxy/path-pattern.ts';

/** A held request has claimed its idempotency key and is not executed yet. Only in memory. */
export interface Holds {
  /** Holds the next `count` requests to this path, in which `*` stands for one segment. */
  add(path: string, count: number): void;
  held(): number;
  /** Continues the `count` requests that were held first. Without `count`, continues all and removes all holds. */
  release(count?: number): void;
  /** Resolves when the request may be executed. */
  pass(path: string): Promise<void>;
}

export function createHolds(): Holds {
  const armed = createArmed<{ path: string; count: number }>();
  const waiting: (() => void)[] = [];
  return {
    add: (path, count) => armed.add({ path, count }),
    held: () => waiting.length,
    release: (count) => {
      if (count === undefined) armed.clear();
      for (const go of waiting.splice(0, count ?? waiting.length)) go();
    },
    pass: async (path) => {
      if (armed.take((each) => matches(each.path, path)) === null) return;
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

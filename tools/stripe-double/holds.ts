import { createArmed } from '../fault-proxy/armed.ts';
import { matches } from '../fault-proxy/path-pattern.ts';

export type Holds = ReturnType<typeof createHolds>;

/** A held request has claimed its idempotency key and is not executed yet. Only in memory. */
export function createHolds() {
  const armed = createArmed<{ path: string; count: number }>();
  const waiting: (() => void)[] = [];
  return {
    /** Holds the next `count` requests to this path, in which `*` stands for one segment. */
    add: (path: string, count: number) => armed.add({ path, count }),
    held: () => waiting.length,
    /** Continues the `count` requests that were held first. Without `count`, continues all and removes all holds. */
    release: (count?: number): void => {
      if (count === undefined) armed.clear();
      for (const go of waiting.splice(0, count ?? waiting.length)) go();
    },
    /** Resolves when the request may be executed. */
    pass: async (path: string): Promise<void> => {
      if (armed.take((each) => matches(each.path, path)) === null) return;
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

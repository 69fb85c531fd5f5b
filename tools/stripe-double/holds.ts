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
  let armed: { path: string; left: number }[] = [];
  const waiting: (() => void)[] = [];
  return {
    add: (path, count) => void armed.push({ path, left: count }),
    held: () => waiting.length,
    release: (count) => {
      if (count === undefined) armed = [];
      for (const go of waiting.splice(0, count ?? waiting.length)) go();
    },
    pass: async (path) => {
      const hit = armed.find((each) => each.left > 0 && matches(each.path, path));
      if (hit === undefined) return;
      hit.left -= 1;
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

import { isDeepStrictEqual } from 'node:util';

/** Throws if `seen` differs from `expected`. */
export function expectSame(what: string, seen: unknown, expected: unknown): void {
  if (isDeepStrictEqual(seen, expected)) return;
  throw new Error(`${what}: expected ${JSON.stringify(expected)}, saw ${JSON.stringify(seen)}`);
}

import { describe, expect, it } from 'vitest';
import { createFairSlots } from '../../activities/fair-slots.ts';

/** Takes slots and notes the order in which the callers get them. */
function takeFrom(slots: ReturnType<typeof createFairSlots>) {
  const given: string[] = [];
  const frees = new Map<string, () => void>();
  const take = async (merchantId: string, name: string): Promise<void> => {
    frees.set(name, await slots.take(merchantId));
    given.push(name);
  };
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    given,
    take: async (merchantId: string, ...names: string[]) => {
      for (const name of names) void take(merchantId, name);
      await settle();
    },
    free: async (name: string) => {
      frees.get(name)?.();
      await settle();
    },
  };
}

describe('a semaphore that merchants share', () => {
  it('gives one merchant slots up to its limit and keeps the others for other merchants [D-54, D-55]', async () => {
    const slots = createFairSlots({ most: 3, mostOfOne: 2 });
    const { given, take, free } = takeFrom(slots);
    await take('a', 'a1', 'a2', 'a3', 'a4');
    expect(given).toEqual(['a1', 'a2']);
    expect(slots.waiting('a')).toEqual({ all: 2, own: 2 });
    await take('b', 'b1', 'b2');
    expect(given).toEqual(['a1', 'a2', 'b1']);
    expect(slots.waiting('b')).toEqual({ all: 3, own: 1 });
    await free('a2');
    expect(given).toEqual(['a1', 'a2', 'b1', 'a3']);
  });

  it('serves waiting merchants in turn, and the callers of one merchant in order [D-54, D-55]', async () => {
    const { given, take, free } = takeFrom(createFairSlots({ most: 1, mostOfOne: 1 }));
    await take('a', 'a1', 'a2', 'a3');
    await take('b', 'b1', 'b2');
    await take('c', 'c1');
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']) await free(name);
    expect(given).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
    await take('b', 'b3');
    expect(given.at(-1)).toBe('b3');
  });
});

import { describe, expect, test } from 'vitest';
import { backoffMs } from '../../domain/delays.ts';

describe('the wait after a failed activity', () => {
  test('grows from 10 to 30 s; its jitter shortens it by at most half', () => {
    const limits = [10_000, 20_000, 30_000, 30_000, 30_000];
    for (const [n, limit] of limits.entries()) {
      const waits = Array.from({ length: 500 }, (_, key) => backoffMs(n + 1, `sub_${key}`));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(limit / 2);
      expect(Math.max(...waits)).toBeLessThanOrEqual(limit);
      // The waits of 500 workflows that failed together lie in every tenth of the range.
      const tenths = waits.map((ms) => Math.min(9, Math.floor(((ms - limit / 2) / limit) * 20)));
      expect(new Set(tenths).size).toBe(10);
    }
  });

  test('is the same in a replay, and differs between workflows', () => {
    expect(backoffMs(3, 'sub_a')).toBe(backoffMs(3, 'sub_a'));
    expect(backoffMs(3, 'sub_a')).not.toBe(backoffMs(3, 'sub_b'));
  });
});

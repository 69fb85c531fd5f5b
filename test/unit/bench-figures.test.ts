import { describe, expect, test } from 'vitest';
import { divided, workBetween } from '../../tools/bench/measure/database-counters.ts';
import { inParallel } from '../../tools/bench/measure/parallel.ts';
import { distributionOf, percentile } from '../../tools/bench/measure/percentiles.ts';

const counters = (at: number, n: number) => ({
  at: { statements: at, commits: at },
  walBytes: n * 100,
  ours: { commits: n, statements: n * 2 },
  temporal: null,
});

describe('in the benchmarks', () => {
  test('percentile n is the smallest value that n % of the values do not exceed', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([1, 50, 99, 100].map((percent) => percentile(values, percent))).toEqual([
      1, 50, 99, 100,
    ]);
    expect(percentile([7], 99)).toBe(7);
  });

  test('an empty distribution has no percentiles', () => {
    expect(distributionOf([])).toEqual({ count: 0, p50: null, p95: null, p99: null, max: null });
  });

  test('the SQL work between two readings does not count the work of an idle stack', () => {
    const idlePerSecond = { walBytes: 10, ours: { commits: 1, statements: 2 }, temporal: null };
    const work = workBetween(counters(1_000, 50), counters(11_000, 160), idlePerSecond);
    expect(work).toEqual({
      walBytes: 11_000,
      ours: { commits: 100, statements: 200 },
      temporal: null,
    });
    expect(divided(work, 10)).toEqual({
      walBytes: 1_100,
      ours: { commits: 10, statements: 20 },
      temporal: null,
    });
  });

  test('parallel work returns results in the order of its items and limits its concurrency', async () => {
    let running = 0;
    let most = 0;
    const results = await inParallel([30, 1, 10, 5], 2, async (ms) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, ms));
      running -= 1;
      return ms * 2;
    });
    expect(results).toEqual([60, 2, 20, 10]);
    expect(most).toBe(2);
  });

  test('parallel work starts no further item after a failure', async () => {
    const started: number[] = [];
    const work = inParallel([1, 2, 3, 4], 1, async (item) => {
      started.push(item);
      if (item === 2) throw new Error('broken');
    });
    await expect(work).rejects.toThrow('broken');
    expect(started).toEqual([1, 2]);
  });
});

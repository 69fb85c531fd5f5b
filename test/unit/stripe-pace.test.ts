import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createPace } from '../../gateways/stripe/pace.ts';

/** Asks the rate limiter for `count` requests at once. Returns a list that gets each outcome when it is known. */
function takeMany(pace: ReturnType<typeof createPace>, count: number, method = 'POST') {
  const outcomes: string[] = [];
  for (let taken = 0; taken < count; taken += 1) {
    pace.take(method).then(
      () => outcomes.push('sent'),
      (error: Error) => outcomes.push(error.name),
    );
  }
  return outcomes;
}

const SENT = (count: number) => Array.from({ length: count }, () => 'sent');

describe('the rate limiter of an account at Stripe', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.for([
    ['test', 12],
    ['live', 45],
  ] as const)('limits the writes in %s mode to %i a second', async ([mode, limit]) => {
    const outcomes = takeMany(createPace(mode), limit + 3);
    await vi.advanceTimersByTimeAsync(999);
    expect(outcomes).toEqual(SENT(limit));
    await vi.advanceTimersByTimeAsync(1);
    expect(outcomes).toEqual(SENT(limit + 3));
  });

  it('allows reads while writes wait', async () => {
    const pace = createPace('test');
    const writes = takeMany(pace, 13);
    const reads = takeMany(pace, 12, 'GET');
    await vi.advanceTimersByTimeAsync(0);
    expect([writes, reads]).toEqual([SENT(12), SENT(12)]);
  });

  it('refuses a request that the rate limit does not allow within 2 s', async () => {
    const outcomes = takeMany(createPace('test'), 40);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(outcomes).toEqual(SENT(24));
    await vi.advanceTimersByTimeAsync(60_000);
    const late = outcomes.filter((outcome) => outcome === 'PacedOut');
    expect(late.length).toBeGreaterThanOrEqual(4);
    expect(outcomes).toHaveLength(40);
  });

  it('refuses a waiting request when its caller gives up, and does not count this request towards the limit', async () => {
    const pace = createPace('test');
    takeMany(pace, 12);
    const caller = new AbortController();
    const outcomes: string[] = [];
    pace.take('POST', caller.signal).catch((error: Error) => outcomes.push(error.name));
    const others = takeMany(pace, 12);
    await vi.advanceTimersByTimeAsync(10);
    caller.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect(outcomes).toEqual(['PacedOut']);
    await vi.advanceTimersByTimeAsync(990);
    expect(others).toEqual(SENT(12));
  });

  it('allows no request for half a second after Stripe refused a request because of its rate limit', async () => {
    const pace = createPace('test');
    pace.backOff();
    const outcomes = takeMany(pace, 1);
    const reads = takeMany(pace, 1, 'GET');
    await vi.advanceTimersByTimeAsync(499);
    expect([outcomes, reads]).toEqual([[], []]);
    await vi.advanceTimersByTimeAsync(501);
    expect([outcomes, reads]).toEqual([['sent'], ['sent']]);
  });
});

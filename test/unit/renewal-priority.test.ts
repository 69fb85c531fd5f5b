import { expect, test } from 'vitest';
import { EARLIER_MOST, renewalPriority } from '../../temporal/subscriptions/start.ts';

test.each([
  [0, 1],
  [49, 1],
  [50, 2],
  [499, 2],
  [500, 3],
  [4_999, 3],
  [EARLIER_MOST, 4],
  [1_000_000, 4],
])(
  'a subscription after %i earlier subscriptions of its merchant has priority key %i',
  (earlier, key) => {
    expect(renewalPriority(earlier)).toBe(key);
  },
);

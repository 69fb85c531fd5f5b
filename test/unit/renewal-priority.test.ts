import { expect, test } from 'vitest';
import { EARLIER_MOST, renewalPriority } from '../../temporal/subscriptions/start.ts';

test.each([
  [0, 2],
  [49, 2],
  [50, 3],
  [499, 3],
  [500, 4],
  [4_999, 4],
  [EARLIER_MOST, 5],
  [1_000_000, 5],
])(
  'a subscription after %i earlier subscriptions of its merchant has priority key %i',
  (earlier, key) => {
    expect(renewalPriority(earlier)).toBe(key);
  },
);

import fc from 'fast-check';

/** One of the arbitraries, each as often as its weight says. */
export const weighted = <T>(...each: [weight: number, arbitrary: fc.Arbitrary<T>][]) =>
  fc.oneof(...each.map(([weight, arbitrary]) => ({ weight, arbitrary })));

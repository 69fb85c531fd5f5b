import fc from 'fast-check';
import { weighted } from './weighted.ts';

/** Each of these values is valid for at least one field of a command. */
const RIGHT = fc.constantFrom<unknown>(
  'DAY',
  'MONTH',
  1,
  12,
  2_500,
  Date.UTC(2030, 0, 1),
  'cancelled',
  'checkout_cancelled',
  'ptk_1',
);

/** Any JSON value. Many of these values differ from a valid value only in their type. */
const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  RIGHT,
  RIGHT.map((value) => [value]),
  RIGHT.map((value) => String(value)),
  fc.constantFrom<unknown>({ toString: 1 }, '\0', '\ud800', -0, 1e300, '__proto__', null),
  fc.jsonValue({ maxDepth: 2 }),
);

const FIELDS =
  'newAmountMinor newCycleCount newNextPaymentAt interval intervalCount reason paymentToken checkoutSessionId targetAt kind __proto__ constructor'.split(
    ' ',
  );

const RIGHT_EDIT: Readonly<Record<string, unknown>> = {
  newAmountMinor: 2_500,
  newCycleCount: 12,
  newNextPaymentAt: Date.UTC(2030, 0, 1),
  interval: 'MONTH',
  intervalCount: 1,
};

/**
 * An argument of a message to a workflow: a valid edit with one field replaced, an object with random fields,
 * or any JSON value.
 */
export const anyArgument: fc.Arbitrary<unknown> = weighted<unknown>(
  [
    3,
    fc
      .constantFrom(...Object.keys(RIGHT_EDIT))
      .chain((field) =>
        fc
          .oneof(fc.constant([RIGHT_EDIT[field]]), anyJson)
          .map((value) => ({ ...RIGHT_EDIT, [field]: value })),
      ),
  ],
  [3, fc.dictionary(fc.constantFrom(...FIELDS), anyJson, { maxKeys: 6 })],
  [1, anyJson],
);

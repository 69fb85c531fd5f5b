import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { saveKey } from '../../activities/charging/redeem-token.ts';
import { newId } from '../../domain/ids.ts';
import { chargeKey } from '../../domain/payment-intent.ts';
import { refundKey } from '../../domain/refund.ts';
import { KEY_LENGTH_MAX } from '../../gateways/port.ts';

const id = (prefix: 'in' | 'rf' | 'att' | 'cs') => newId(prefix, Date.now(), randomBytes);
const redemption = {
  merchantId: 'mer_1',
  customerId: 'cus_1',
  checkoutSessionId: id('cs'),
  paymentToken: 'cs_test_'.padEnd(200, 'x'),
};

test.each([
  ['a charge', chargeKey(id('in'), 1_000_000)],
  ['a refund', refundKey(id('rf'))],
  ['the refund of a late charge', refundKey(id('att'))],
  ['the redemption of a payment token', saveKey(redemption)],
])('the idempotency key of %s has at most 64 characters [D-32]', (_, key) => {
  expect(KEY_LENGTH_MAX).toBe(64);
  expect(key.length).toBeLessThanOrEqual(KEY_LENGTH_MAX);
  expect(key).toMatch(/^[a-zA-Z0-9\-_:.]+$/);
});

test('the idempotency key of a redemption differs for another token, session, customer or merchant [D-61]', () => {
  const others = ['merchantId', 'customerId', 'checkoutSessionId', 'paymentToken'].map((field) =>
    saveKey({ ...redemption, [field]: 'another' }),
  );
  expect(new Set([saveKey(redemption), ...others]).size).toBe(5);
  expect(saveKey({ ...redemption })).toBe(saveKey(redemption));
});

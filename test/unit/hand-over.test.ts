import { expect, test } from 'vitest';
import { handOver } from '../../api/routes/payments/charge.ts';
import { DomainError } from '../../domain/errors.ts';

type Outcome = { kind: 'succeeded' } | { kind: 'pending' };

const away = () => Promise.reject(new DomainError('service_unavailable'));

/** Creates an order, the work that the API hands over to a workflow, and the list of the calls to it. */
function recordedOrder(give: () => Promise<Outcome>, withdraw: () => Promise<boolean>) {
  const done: string[] = [];
  const order = {
    give: () => {
      done.push('given');
      return give();
    },
    withdraw: () => {
      done.push('withdrawn');
      return withdraw();
    },
  };
  return { order, done };
}

test('an order returns its outcome, both with and without an idempotency key [D-17]', async () => {
  for (const giveUp of [null, new AbortController().signal]) {
    const { order, done } = recordedOrder(
      async () => ({ kind: 'succeeded' }),
      async () => true,
    );
    expect(await handOver(order, giveUp)).toEqual({ kind: 'succeeded' });
    expect(done).toEqual(['given']);
  }
});

test('an order with an idempotency key is not voided when its hand-over fails [D-17]', async () => {
  const { order, done } = recordedOrder(away, async () => true);
  await expect(handOver(order, null)).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(done).toEqual(['given']);
});

test('an order without an idempotency key is voided when its hand-over fails [D-17, D-40]', async () => {
  const { order, done } = recordedOrder(away, async () => true);
  const { signal } = new AbortController();
  await expect(handOver(order, signal)).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(done).toEqual(['given', 'withdrawn']);
});

const cases: [string, () => Promise<boolean>, string][] = [
  ['service_unavailable when it was voided', async () => true, 'service_unavailable'],
  ['pending when a workflow already executes it', async () => false, 'pending'],
  ['pending when voiding it fails', () => Promise.reject(new Error('gone')), 'pending'],
  ['pending when voiding it gets no answer', () => new Promise(() => undefined), 'pending'],
];

test.each(cases)(
  'an order without an outcome at the deadline returns %s [D-17, D-40]',
  async (_, withdraw, result) => {
    const { order, done } = recordedOrder(() => new Promise(() => undefined), withdraw);
    const late = new AbortController();
    const answer = handOver(order, late.signal, 20).then(
      ({ kind }) => kind,
      (error: unknown) => (error as DomainError).code,
    );
    late.abort();
    expect(await answer).toBe(result);
    expect(done).toEqual(['given', 'withdrawn']);
  },
);

test('an order is voided and its workflow is not started when the deadline has passed [D-17, D-40]', async () => {
  const { order, done } = recordedOrder(
    async () => ({ kind: 'succeeded' }),
    async () => true,
  );
  await expect(handOver(order, AbortSignal.abort())).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  expect(done).toEqual(['withdrawn']);
});

test('an order that is refused returns the refusal and is not voided [D-§8]', async () => {
  const refuse = () => Promise.reject(new DomainError('operation_not_allowed'));
  const { order, done } = recordedOrder(refuse, async () => true);
  const { signal } = new AbortController();
  await expect(handOver(order, signal)).rejects.toMatchObject({ code: 'operation_not_allowed' });
  expect(done).toEqual(['given']);
});

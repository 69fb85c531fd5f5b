import { expect, test } from 'vitest';
import { handOver } from '../../api/routes/payments/hand-over.ts';
import { DomainError } from '../../domain/errors.ts';

type Outcome = { kind: 'succeeded' } | { kind: 'pending' };

const away = () => Promise.reject(new DomainError('service_unavailable'));

/** One order, and what was done about it. */
function orderThat(give: () => Promise<Outcome>, withdraw: () => Promise<boolean>) {
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

test('an order with an outcome is that, with a key and without [D-17]', async () => {
  for (const giveUp of [null, new AbortController().signal]) {
    const { order, done } = orderThat(
      async () => ({ kind: 'succeeded' }),
      async () => true,
    );
    expect(await handOver(order, giveUp)).toEqual({ kind: 'succeeded' });
    expect(done).toEqual(['given']);
  }
});

test('with a key nothing is taken back: a repeat finds out [D-17]', async () => {
  const { order, done } = orderThat(away, async () => true);
  await expect(handOver(order, null)).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(done).toEqual(['given']);
});

test('without one it is withdrawn before the caller hears that it was not handed over [D-17, D-40]', async () => {
  const { order, done } = orderThat(away, async () => true);
  const { signal } = new AbortController();
  await expect(handOver(order, signal)).rejects.toMatchObject({ code: 'service_unavailable' });
  expect(done).toEqual(['given', 'withdrawn']);
});

const cases: [string, () => Promise<boolean>, string][] = [
  ['that could be withdrawn was not handed over', async () => true, 'service_unavailable'],
  ['that a workflow has in hand is pending', async () => false, 'pending'],
  ['that the database fails over is pending', () => Promise.reject(new Error('gone')), 'pending'],
  [
    'about which the database says nothing is pending',
    () => new Promise(() => undefined),
    'pending',
  ],
];

test.each(cases)(
  'of the orders without an outcome when the caller has to be answered, one %s [D-17, D-40]',
  async (_, withdraw, result) => {
    const { order, done } = orderThat(() => new Promise(() => undefined), withdraw);
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

test('when the caller has been left already it is not given at all [D-17, D-40]', async () => {
  const { order, done } = orderThat(
    async () => ({ kind: 'succeeded' }),
    async () => true,
  );
  await expect(handOver(order, AbortSignal.abort())).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  expect(done).toEqual(['withdrawn']);
});

test('a refusal is a refusal [D-§8]', async () => {
  const refuse = () => Promise.reject(new DomainError('operation_not_allowed'));
  const { order, done } = orderThat(refuse, async () => true);
  const { signal } = new AbortController();
  await expect(handOver(order, signal)).rejects.toMatchObject({ code: 'operation_not_allowed' });
  expect(done).toEqual(['given']);
});

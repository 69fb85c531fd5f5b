import { describe, expect, test } from 'vitest';
import { handOver } from '../../api/routes/payments/charge.ts';
import { DomainError } from '../../domain/errors.ts';
import { checkUnanswered, insideRequest, outsideRequest } from '../../runtime/request-scope.ts';
import { createTemporalClient } from '../../temporal/client.ts';

const answered = AbortSignal.abort();
const unavailable = { name: 'DomainError', code: 'service_unavailable' };

describe('a request that was answered at its deadline', () => {
  test('starts no further step, except to complete or undo committed work [D-§8]', () => {
    expect(() => insideRequest(answered, checkUnanswered)).toThrow(
      expect.objectContaining({ code: 'service_unavailable' }),
    );
    expect(insideRequest(answered, () => outsideRequest(checkUnanswered))).toBeUndefined();
    expect(insideRequest(new AbortController().signal, checkUnanswered)).toBeUndefined();
    expect(checkUnanswered()).toBeUndefined();
  });

  test('makes no Temporal call that has an effect [D-§8]', async () => {
    // No server listens at this address, so a call that is really sent fails with another error.
    const temporal = createTemporalClient({
      temporalAddress: '127.0.0.1:1',
      temporalNamespace: 'default',
    });
    const { workflow } = temporal.client;
    const handle = workflow.getHandle('wf');
    const options = { taskQueue: 'q', workflowId: 'wf', args: [] };
    const calls: (() => Promise<unknown>)[] = [
      () => workflow.start('type', options),
      () => workflow.signalWithStart('type', { ...options, signal: 'wake', signalArgs: [] }),
      () => handle.signal('wake'),
      () => handle.startUpdate('pause', { args: [], waitForStage: 'ACCEPTED' }),
      () => handle.terminate(),
    ];
    for (const call of calls) {
      await expect(insideRequest(answered, call)).rejects.toMatchObject(unavailable);
    }
    await temporal.close();
  });

  test('still voids an order without an idempotency key when the hand-over fails [D-17, D-40]', async () => {
    const withdrawn: string[] = [];
    const refused = () =>
      handOver(
        {
          give: () => Promise.reject(new DomainError('service_unavailable')),
          withdraw: async () => {
            checkUnanswered();
            withdrawn.push('order');
            return true;
          },
        },
        new AbortController().signal,
      );
    await expect(insideRequest(answered, refused)).rejects.toMatchObject(unavailable);
    expect(withdrawn).toEqual(['order']);
  });
});

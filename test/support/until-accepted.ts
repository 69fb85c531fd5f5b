import { DomainError } from '../../domain/errors.ts';

/** Five calls of up to 17 s fit into a test's limit of 120 s. */
const CALLS_MAX = 5;

/**
 * Calls `call`, again while it fails with `service_unavailable`, as the callers of the API do. On a busy machine Temporal
 * or a worker may accept a call too late. A repeat of `call` must be safe.
 */
export async function untilAccepted<T>(call: () => Promise<T>): Promise<T> {
  for (let calls = 1; ; calls += 1) {
    try {
      return await call();
    } catch (error) {
      const isBusy = error instanceof DomainError && error.code === 'service_unavailable';
      if (!isBusy || calls === CALLS_MAX) throw error;
    }
  }
}

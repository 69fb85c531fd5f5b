import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../domain/errors.ts';

/** Aborts when the request has been answered at its deadline. Null outside of requests. */
const answered = new AsyncLocalStorage<AbortSignal | null>();

/** Runs `work` as the work of a request. `isAnswered` aborts when the request is answered without it. */
export function insideRequest<T>(isAnswered: AbortSignal, work: () => T): T {
  return answered.run(isAnswered, work);
}

/**
 * Runs `work` although its request may be answered already. Only for work that completes or undoes what the
 * request has committed.
 */
export function outsideRequest<T>(work: () => T): T {
  return answered.run(null, work);
}

/**
 * Throws `service_unavailable` if the request was answered at its deadline. Called before each step with an
 * effect, so that no new step begins behind the answer. Does nothing outside of requests. Rule: D-§8.
 */
export function checkUnanswered(): void {
  if (answered.getStore()?.aborted) throw new DomainError('service_unavailable');
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { DomainError } from '../domain/errors.ts';

/** A signal that aborts when the request has been answered at its deadline. Null outside of requests. */
const answered = new AsyncLocalStorage<AbortSignal | null>();

/** Runs `work` as part of a request. `isAnswered` aborts if the request is answered before `work` has ended. */
export function insideRequest<T>(isAnswered: AbortSignal, work: () => T): T {
  return answered.run(isAnswered, work);
}

/** Runs `work` even if its request has been answered. Only for work that completes or undoes committed work. */
export function outsideRequest<T>(work: () => T): T {
  return answered.run(null, work);
}

/**
 * Throws `service_unavailable` if the request was answered at its deadline. Every step with an effect calls it first.
 * Does nothing outside of requests.
 */
export function checkUnanswered(): void {
  if (answered.getStore()?.aborted) throw new DomainError('service_unavailable');
}

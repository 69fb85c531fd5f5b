import { ApplicationFailure } from '@temporalio/common';

/** The only place that builds Temporal failures. Unknown errors pass through and are retried. */

/** A call that can never succeed: a bug of the caller. Not retried. */
export function invalidInput(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'invalid_input', message, nonRetryable: true });
}

/** A gateway did not say what happened; asking again is safe. Retried. */
export function outcomeUnknown(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'outcome_unknown', message });
}

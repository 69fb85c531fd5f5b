import { ApplicationFailure } from '@temporalio/common';
import { DrizzleQueryError } from 'drizzle-orm';

/** The only place that builds Temporal failures. Unknown errors pass through and are retried. */

/** A call that can never succeed: a bug of the caller. Not retried. */
export function invalidInput(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'invalid_input', message, nonRetryable: true });
}

/** A gateway did not say what happened; asking again is safe. Retried. */
export function outcomeUnknown(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'outcome_unknown', message });
}

/**
 * The same activities, whose database errors leave without the query and its parameters: those hold
 * personal data, and a failure goes into the workflow's history and the logs. Retried like before.
 */
export function withoutQueryData<T extends object>(activities: T): T {
  const guarded = Object.entries(activities).map(([name, activity]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await (activity as (...args: unknown[]) => Promise<unknown>)(...args);
      } catch (error) {
        throw error instanceof DrizzleQueryError ? databaseFailure(error) : error;
      }
    },
  ]);
  return Object.fromEntries(guarded) as T;
}

function databaseFailure(error: DrizzleQueryError): ApplicationFailure {
  const cause = error.cause as { code?: unknown } | undefined;
  const code = typeof cause?.code === 'string' ? cause.code : 'unknown';
  return ApplicationFailure.create({ type: 'database_error', message: `database error ${code}` });
}

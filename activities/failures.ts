import { ApplicationFailure } from '@temporalio/common';
import { DrizzleQueryError } from 'drizzle-orm';

/** A call that can never succeed, because its caller has a bug. Temporal does not retry it. */
export function invalidInput(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'invalid_input', message, nonRetryable: true });
}

/** The gateway did not report an outcome. Temporal retries the call, which is safe. */
export function outcomeUnknown(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'outcome_unknown', message });
}

/**
 * Wraps activities so that a database error loses its query and parameters. These hold personal data, and
 * a failure is written to the workflow's history and the logs. Temporal still retries the error.
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

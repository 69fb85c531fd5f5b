import { ApplicationFailure } from '@temporalio/common';
import { DrizzleQueryError } from 'drizzle-orm';
import { UNREADABLE_STATE } from '../domain/errors.ts';
import { UnreadableStateError } from '../domain/subscription/recorded-state.ts';

/** Returns the error of a call that can never succeed, because its caller has a bug. Temporal does not retry. */
export function invalidInput(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'invalid_input', message, nonRetryable: true });
}

/** Returns the error of a call for which the gateway reported no outcome. Temporal retries the call safely. */
export function outcomeUnknown(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'outcome_unknown', message });
}

/** Returns the error of a call that read a subscription's state with a wrong field. A retry would read it again. */
function unreadableState({ message }: UnreadableStateError): ApplicationFailure {
  return ApplicationFailure.create({ type: UNREADABLE_STATE, message, nonRetryable: true });
}

/**
 * Removes the query and its parameters, personal data, from database errors, because Temporal stores errors. Makes an
 * unreadable state non-retryable.
 */
export function withoutQueryData<T extends object>(activities: T): T {
  const guarded = Object.entries(activities).map(([name, activity]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await (activity as (...args: unknown[]) => Promise<unknown>)(...args);
      } catch (error) {
        if (error instanceof UnreadableStateError) throw unreadableState(error);
        throw withoutQuery(error);
      }
    },
  ]);
  return Object.fromEntries(guarded) as T;
}

/** Returns a database error without its query. Returns any other error as it is. */
export function withoutQuery(error: unknown): unknown {
  return error instanceof DrizzleQueryError ? databaseFailure(error) : error;
}

function databaseFailure(error: DrizzleQueryError): ApplicationFailure {
  const cause = error.cause as { code?: unknown } | undefined;
  const code = typeof cause?.code === 'string' ? cause.code : 'unknown';
  return ApplicationFailure.create({ type: 'database_error', message: `database error ${code}` });
}

import type { ISql, ParameterOrJSON, UnsafeQueryOptions } from 'postgres';

/**
 * Statements with more parameters are not prepared. Such a statement inserts many rows, and its text depends
 * on the number of rows, so a prepared statement would hardly be used again.
 */
const MAX_PARAMETERS = 100;

type Work = (transaction: ISql) => unknown;

/**
 * Returns a client that prepares each statement with 1 to 100 parameters once per connection, which saves two round
 * trips. Calls `beforeEach` before each statement, transaction and COMMIT.
 */
export function withPreparedStatements<Client extends ISql>(
  client: Client,
  beforeEach: () => void = () => undefined,
): Client {
  return new Proxy(client, {
    get(target, name) {
      if (name === 'unsafe') {
        return (
          text: string,
          parameters: ParameterOrJSON<never>[] = [],
          options: UnsafeQueryOptions = {},
        ) => {
          beforeEach();
          const prepare = parameters.length > 0 && parameters.length <= MAX_PARAMETERS;
          return target.unsafe(text, parameters, { ...options, prepare });
        };
      }
      const value: unknown = Reflect.get(target, name);
      if (name !== 'begin' && name !== 'savepoint') return value;
      const begin = value as (work: Work) => unknown;
      return async (work: Work) => {
        beforeEach();
        return begin(async (transaction) => {
          const result = await work(withPreparedStatements(transaction, beforeEach));
          beforeEach();
          return result;
        });
      };
    },
  });
}

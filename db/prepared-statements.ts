import type { ISql, ParameterOrJSON, UnsafeQueryOptions } from 'postgres';

/** Statements of many rows have another text for each number of rows: too many to keep. */
const MOST_PARAMETERS = 100;

type Work = (transaction: ISql) => unknown;

/**
 * The same client, preparing each statement once per connection. Drizzle asks the driver to have every
 * one parsed and described anew, which takes two round trips and most of Postgres' time.
 */
export function withPreparedStatements<Client extends ISql>(client: Client): Client {
  return new Proxy(client, {
    get(target, name) {
      if (name === 'unsafe') {
        return (
          text: string,
          parameters: ParameterOrJSON<never>[] = [],
          options: UnsafeQueryOptions = {},
        ) => {
          const prepare = parameters.length > 0 && parameters.length <= MOST_PARAMETERS;
          return target.unsafe(text, parameters, { ...options, prepare });
        };
      }
      const value: unknown = Reflect.get(target, name);
      if (name !== 'begin' && name !== 'savepoint') return value;
      const begin = value as (work: Work) => unknown;
      return (work: Work) => begin((transaction) => work(withPreparedStatements(transaction)));
    },
  });
}

import type { ISql, ParameterOrJSON, UnsafeQueryOptions } from 'postgres';

/**
 * A statement of many rows has a different text for each number of rows. Such statements have many
 * parameters and are not prepared.
 */
const MAX_PARAMETERS = 100;

type Work = (transaction: ISql) => unknown;

/**
 * Returns a client that prepares each statement once per connection. By default Drizzle tells the
 * driver to parse and describe every statement again. That costs two round trips and most of Postgres'
 * time.
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
          const prepare = parameters.length > 0 && parameters.length <= MAX_PARAMETERS;
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

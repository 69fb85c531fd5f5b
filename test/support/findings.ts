import { openBooks } from '../../cli/verify/books.ts';
import { checkBooks } from '../../cli/verify/invariants.ts';
import type { TestEnvironment } from './test-environment.ts';

/**
 * What `npm run verify` finds: violations, and findings that wait for a person. If `gateway` is null, the gateway's
 * records are not compared.
 */
export async function findings(
  env: TestEnvironment,
  gateway: TestEnvironment['gatewayPlace'] | null = env.gatewayPlace,
): Promise<{ wrong: string[]; forPerson: string[] }> {
  const { databaseUrl } = env;
  const books = await openBooks({ databaseUrl, gateway, receiverBook: null, clientBook: null });
  try {
    const results = await checkBooks(books);
    return {
      wrong: results.flatMap(({ wrong }) => wrong),
      forPerson: results.flatMap(({ forPerson }) => forPerson),
    };
  } finally {
    await books.close();
  }
}

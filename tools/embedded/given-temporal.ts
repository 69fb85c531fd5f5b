import { Connection } from '@temporalio/client';
import { temporalConnectionOptions } from '../../temporal/client.ts';
import type { Report } from './progress.ts';
import { missingAttributes, SEARCH_ATTRIBUTES } from './temporal-server.ts';

const INDEXED_TYPES = { Keyword: 2, Int: 3, Datetime: 6 } as const;

/** Registers missing search attributes. A refusal's error has the command that does it by hand. */
export async function prepareGivenServer(
  address: string,
  namespace: string,
  report: Report,
): Promise<void> {
  const options = temporalConnectionOptions({
    temporalAddress: address,
    temporalNamespace: namespace,
  });
  const connection = await Connection.connect({ ...options, connectTimeout: 5_000 }).catch(
    (cause: unknown) => {
      throw new Error(`No Temporal server answers at TEMPORAL_ADDRESS ${address}.`, { cause });
    },
  );
  try {
    const missing = await missingAttributes(connection, namespace);
    if (missing.length === 0) return;
    report(`registering search attributes on ${address}: ${missing.join(', ')}`);
    await connection.withDeadline(Date.now() + 10_000, () =>
      connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(
          missing.map((name) => [name, INDEXED_TYPES[SEARCH_ATTRIBUTES[name]]]),
        ),
      }),
    );
  } catch (cause) {
    const flags = Object.entries(SEARCH_ATTRIBUTES)
      .map(([name, type]) => `--name ${name} --type ${type}`)
      .join(' ');
    throw new Error(
      `The search attributes cannot be registered at ${address}. Do it once by hand:\n` +
        `  temporal operator search-attribute create --namespace ${namespace} ${flags}`,
      { cause },
    );
  } finally {
    await connection.close();
  }
}

import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import { createLogger } from '../../runtime/logger.ts';
import { createTemporalClient } from '../../temporal/client.ts';
import type { TemporalSettings } from '../../temporal/client.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';

interface Place {
  readonly url: string;
  /** The name of the command, for Postgres' list of connections. */
  readonly command: string;
  readonly poolSize?: number;
}

/** Connects to the database while `work` runs. */
export async function withDatabase<Result>(
  { url, command, poolSize = 2 }: Place,
  work: (db: Db) => Promise<Result>,
): Promise<Result> {
  const database = createDb({ url, poolSize, applicationName: `perennial-${command}` });
  try {
    return await work(database.db);
  } finally {
    await database.close();
  }
}

type Temporal = TemporalSettings & { readonly taskQueuePrefix: string };

/** The workflows of the subscriptions in `db`. A call that fails logs nothing. The caller closes the connection. */
export function connectWorkflows(db: Db, { taskQueuePrefix, ...settings }: Temporal) {
  const temporal = createTemporalClient(settings);
  const { client } = temporal;
  const logger = createLogger({ name: 'command', level: 'silent' });
  const rows = subscriptionRows(db);
  const workflows = createSubscriptionWorkflows({ client, rows, taskQueuePrefix, logger });
  return { client, workflows, logger, close: () => temporal.close() };
}

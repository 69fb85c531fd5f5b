import { randomBytes } from 'node:crypto';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import postgres from 'postgres';
import { newId } from '../../domain/ids.ts';
import { eventually } from './eventually.ts';
import { paymentsIn } from './payments.ts';
import { tokenAtStripe } from './stripe-merchant.ts';
import type { TestEnvironment } from './test-environment.ts';
import { detailsOf } from './workflow-details.ts';

/** Helpers for tests that look for a secret text in the database and in workflow histories. */

/** Returns the text, and its bytes in hex and in base64, which is how a dump or a workflow history shows bytes. */
export function formsOf(text: string): string[] {
  return (['utf8', 'hex', 'base64'] as const).map((form) => Buffer.from(text).toString(form));
}

/** Every row of every table of the database, as text. */
export async function dumpOf(databaseUrl: string): Promise<string> {
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    const tables = await sql<{ schema: string; name: string }[]>`
      select table_schema as schema, table_name as name from information_schema.tables
      where table_schema not in ('pg_catalog', 'information_schema')`;
    const dumps = await Promise.all(
      tables.map(async ({ schema, name }) => {
        const rows = await sql`select t::text as line from ${sql(`${schema}.${name}`)} t`;
        return rows.map((row) => `${schema}.${name} ${String(row['line'])}`);
      }),
    );
    return dumps.flat().join('\n');
  } finally {
    await sql.end();
  }
}

/** A workflow's history with the text of its payloads. */
export async function historyOf(env: TestEnvironment, workflowId: string): Promise<string> {
  return withTexts(await env.client.workflow.getHandle(workflowId).fetchHistory());
}

/**
 * The history of each run in this environment, with its memo, its search attributes and its current details. `isSeen`
 * tells from the types whether the server lists all runs already.
 */
export async function everyRun(env: TestEnvironment, isSeen: (types: string[]) => boolean) {
  const query = `TaskQueue = '${env.taskQueuePrefix}billing'`;
  const listed = await eventually(async () => {
    const runs: WorkflowExecutionInfo[] = [];
    for await (const run of env.client.workflow.list({ query })) runs.push(run);
    if (!isSeen(runs.map(({ type }) => type))) throw new Error('not listed yet');
    return runs;
  });
  return Promise.all(
    listed.map(async ({ type, workflowId, runId }) => {
      const handle = env.client.workflow.getHandle(workflowId, runId);
      const [history, { raw }, details] = await Promise.all([
        handle.fetchHistory(),
        handle.describe(),
        detailsOf(handle),
      ]);
      return { type, text: withTexts([history, raw, details]) };
    }),
  );
}

/** JSON in which the bytes of payloads are texts. A message's own `toJSON` would make them Base64. */
function withTexts(value: unknown): string {
  const plain = (part: unknown): unknown => {
    if (part instanceof Uint8Array) return Buffer.from(part).toString('utf8');
    if (Array.isArray(part)) return part.map(plain);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, own]) => [name, plain(own)]));
  };
  return JSON.stringify(plain(value));
}

/** Saves a card on the page of the merchant's account at Stripe. Returns its customer and payment method. */
export async function savedMethod(env: TestEnvironment, number?: string) {
  const checkoutSessionId = newId('cs', Date.now(), randomBytes);
  const paymentToken = await tokenAtStripe(env, checkoutSessionId, number);
  return paymentsIn(env).redeemed({ paymentToken, checkoutSessionId });
}

import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { newId } from '../../domain/ids.ts';
import { paymentsIn } from './payments.ts';
import { tokenAtStripe } from './stripe-merchant.ts';
import type { TestEnvironment } from './test-environment.ts';

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
  const history = await env.client.workflow.getHandle(workflowId).fetchHistory();
  const textOfBytes = function (this: Record<string, unknown>, name: string, value: unknown) {
    const raw = this[name];
    return raw instanceof Uint8Array ? Buffer.from(raw).toString('utf8') : value;
  };
  return JSON.stringify(history, textOfBytes);
}

/** Saves a card on the page of the merchant's account at Stripe. Returns its customer and payment method. */
export async function savedMethod(env: TestEnvironment, number?: string) {
  const checkoutSessionId = newId('cs', Date.now(), randomBytes);
  const paymentToken = await tokenAtStripe(env, checkoutSessionId, number);
  return paymentsIn(env).redeemed({ paymentToken, checkoutSessionId });
}

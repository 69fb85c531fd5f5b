import { writeFileSync } from 'node:fs';
import { eq } from 'drizzle-orm';
import { createDb } from '../../../db/client.ts';
import type { Db } from '../../../db/client.ts';
import { listCycleAttempts } from '../../../db/repositories/payments/cycle-attempts.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { listEntries } from '../../../db/repositories/subscriptions/entries.ts';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { readDemoFile } from '../../embedded/demo-file.ts';
import { loadOperatorConfig } from '../../config.ts';
import { commandLineIn, exitCodeOf } from '../client/options.ts';
import type { Surroundings } from '../client/options.ts';
import { explanationLines } from './explanation.ts';
import type { Explained } from './explanation.ts';
import { explanationPage } from './page.ts';

/** No subscription has more: at most 1,200 cycles, each with at most some dozens of attempts. */
const ROWS_MAX = 100_000;

export async function explainCommand(
  args: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  const program = commandLineIn(
    surroundings,
    'run explain',
    'What a subscription does next, why, and why each charge was made.',
  )
    .argument('<subscriptionId>', 'id of the subscription (sub_…)')
    .option('--html <file>', 'write one page with the drawn life of the subscription')
    .action(async (subscriptionId: string, { html }: { html?: string }) => {
      const { databaseUrl, dataDir } = loadOperatorConfig(surroundings.environment);
      const database = createDb({
        url: databaseUrl ?? readDemoFile(dataDir).databaseUrl,
        poolSize: 1,
        applicationName: 'perennial-explain',
      });
      try {
        const explained = await read(database.db, subscriptionId);
        if (html === undefined) {
          explanationLines(explained).forEach((line) => surroundings.print(line));
        } else {
          writeFileSync(html, explanationPage(explained));
          surroundings.print(`Written to ${html}.`);
        }
      } finally {
        await database.close();
      }
    });
  return exitCodeOf(program, args, surroundings);
}

async function read(db: Db, subscriptionId: string): Promise<Explained> {
  const [row] = await db
    .select({ state: subscriptions.state, page: subscriptions.productPage })
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  if (!row) throw new Error(`There is no subscription ${subscriptionId}.`);
  const ref = { merchantId: row.state.merchantId, subscriptionId };
  const realNow = Date.now();
  return {
    state: row.state,
    productName: row.page?.name ?? null,
    now: await businessNow(db, ref, realNow),
    realNow,
    entries: await listEntries(db, ref, { afterVersion: 0, limit: ROWS_MAX }),
    attempts: await listCycleAttempts(db, ref, { after: 0, limit: ROWS_MAX }),
  };
}

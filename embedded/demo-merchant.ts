import { createDb } from '../db/client.ts';
import { migrate } from '../db/migrate.ts';
import { findCredential } from '../db/repositories/merchants/credentials.ts';
import { createMerchantWithCredential } from '../db/repositories/merchants/merchants.ts';
import { findDemoFile } from './demo-file.ts';

export interface DemoMerchant {
  readonly keyId: string;
  readonly secret: string;
}

/**
 * Migrates the database and returns credentials of a merchant in test mode. These are the credentials in the
 * data folder's `demo.json` if the database has them, else those of a new merchant.
 */
export async function migrateAndFindDemoMerchant(options: {
  databaseUrl: string;
  dataDir: string;
  pepper: string;
}): Promise<DemoMerchant> {
  await migrate(options.databaseUrl);
  const database = createDb({
    url: options.databaseUrl,
    poolSize: 1,
    applicationName: 'perennial-start',
  });
  try {
    const known = findDemoFile(options.dataDir);
    if (known !== undefined && (await findCredential(database.db, known.keyId)) !== null) {
      return { keyId: known.keyId, secret: known.secret };
    }
    const { pepper } = options;
    const made = await createMerchantWithCredential(database.db, {
      name: 'Demo',
      mode: 'test',
      pepper,
    });
    return { keyId: made.keyId, secret: made.secret };
  } finally {
    await database.close();
  }
}

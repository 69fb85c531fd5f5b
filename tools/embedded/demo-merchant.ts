import { randomBytes } from 'node:crypto';
import { and, gt } from 'drizzle-orm';
import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { migrate } from '../../db/migrate.ts';
import { findCredential } from '../../db/repositories/merchants/credentials.ts';
import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import { insertLink } from '../../db/repositories/subscriptions/links.ts';
import { hasValues } from '../../db/repositories/records.ts';
import { subscriptionLinks } from '../../db/schema/subscriptions.ts';
import { newId, randomToken } from '../../domain/ids.ts';
import { findDemoFile } from '../../cli/command-line/demo-file.ts';

export interface DemoMerchant {
  readonly merchantId: string;
  readonly keyId: string;
  readonly secret: string;
  readonly linkPath: string;
}

type Credential = Omit<DemoMerchant, 'linkPath' | 'merchantId'>;

const LINK_RECEIPT = 'npm-start';
const DAY_MS = 24 * 3_600_000;

/** Migrates the database. Returns the merchant of `demo.json` if the database has it, else a new one, with a link. */
export async function migrateAndFindDemoMerchant(options: {
  databaseUrl: string;
  dataDir: string;
  pepper: string;
  report: (line: string) => void;
}): Promise<DemoMerchant> {
  const { report } = options;
  await migrate(options.databaseUrl, { applicationName: 'perennial-start', report });
  const database = createDb({
    url: options.databaseUrl,
    poolSize: 1,
    applicationName: 'perennial-start',
  });
  try {
    const known = findDemoFile(options.dataDir);
    const found = known && (await findCredential(database.db, known.keyId));
    if (known && found) {
      const { keyId, secret } = known;
      return await withLink(database.db, found.merchantId, { keyId, secret });
    }
    const { pepper } = options;
    const made = await createMerchantWithCredential(database.db, {
      name: 'Demo',
      mode: 'test',
      pepper,
    });
    return await withLink(database.db, made.merchantId, { keyId: made.keyId, secret: made.secret });
  } finally {
    await database.close();
  }
}

/** Creates a link if the merchant has none, or only one that expires within a day. */
async function withLink(db: Db, merchantId: string, credential: Credential): Promise<DemoMerchant> {
  const nowAt = Date.now();
  const isKnown = hasValues(subscriptionLinks, { merchantId, receiptId: LINK_RECEIPT });
  const [known] = await db
    .select({ code: subscriptionLinks.code })
    .from(subscriptionLinks)
    .where(and(isKnown, gt(subscriptionLinks.expiresAt, nowAt + DAY_MS)))
    .limit(1);
  const code = known?.code ?? randomToken(randomBytes, 12);
  if (known === undefined) {
    await insertLink(db, {
      merchantId,
      id: newId('lnk', nowAt, randomBytes),
      code,
      terms: {
        amountMinor: 1_999,
        currency: 'USD',
        interval: 'MONTH',
        intervalCount: 1,
        cycleCount: 12,
        upfrontAmountMinor: null,
        trial: null,
      },
      customerDetails: {},
      receiptId: LINK_RECEIPT,
      productPage: { name: 'Garden Letters', description: 'One letter a month, for a year' },
      phoneNumberRequired: false,
      multiUseLimit: 1_000_000,
      createdAt: nowAt,
      expiresAt: nowAt + 365 * DAY_MS,
    });
  }
  return { merchantId, ...credential, linkPath: `/l/${code}` };
}

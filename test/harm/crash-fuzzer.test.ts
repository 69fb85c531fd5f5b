import { expect, inject, test } from 'vitest';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { fuzzCrashes } from '../../tools/proof/fuzz/crashes/lives.ts';
import { createTestDatabase } from '../support/database.ts';

/** The 24 lives of this seed find both defects that a repeated opening of an attempt had. */
const SEED = 2;

test.for([
  ['sandbox', 24],
  ['stripe-double', 4],
] as const)(
  'the records of random lives with crashes agree at the gateway %s [D-31, D-32]',
  async ([gateway, lives], { onTestFinished }) => {
    const database = await createTestDatabase(inject('postgresUrl'));
    onTestFinished(() => database.drop());
    const { cacheDir } = loadEmbeddedConfig();
    const places = { databaseUrl: database.url, cacheDir, gateway };
    expect(await fuzzCrashes({ ...places, lives, seed: SEED })).toMatchObject({
      lives,
      violation: null,
      tally: {
        crashes: expect.toSatisfy((count) => count > 0) as unknown,
        // Lives whose every card is declined prove little.
        paid: expect.toSatisfy((count) => count > lives / 2) as unknown,
        notices: expect.toSatisfy((count) => gateway !== 'sandbox' || count > 0) as unknown,
        limited: expect.toSatisfy((count) => gateway !== 'sandbox' || count > 0) as unknown,
      },
    });
  },
);

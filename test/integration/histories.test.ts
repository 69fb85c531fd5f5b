import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished } from 'vitest';
import { historiesCommand } from '../../cli/replay/download.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { runCommand } from '../support/run-command.ts';

test('histories are downloaded without tokens, receipts, product names and host names', async ({
  env,
}) => {
  const ref = await env.create({ createdAt: Date.now(), receiptId: 'receipt of Ada' });
  await payCheckout(env, ref);
  const folder = mkdtempSync(join(tmpdir(), 'perennial-histories-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const environment = {
    DATABASE_URL: env.databaseUrl,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
  };
  const texts = await eventually(async () => {
    const told = await runCommand(historiesCommand, environment, ['--download', '500', folder]);
    expect(told).toMatchObject({ code: 0, stderr: '' });
    const files = readdirSync(folder);
    expect(told.stdout).toBe(`${files.length} histories written to ${folder}.\n`);
    const all = files.map((file) => decoded(readFileSync(join(folder, file), 'utf8')));
    expect(all.filter((text) => text.includes(ref.subscriptionId))).not.toEqual([]);
    return all;
  });
  const own = texts.filter((text) => text.includes(ref.subscriptionId)).join('\n');
  expect(own).toContain('"amountMinor":1999');
  expect(own).not.toMatch(/ptk_|receipt of Ada|"identity"|userMetadata/);
});

/** The history with its payloads as text. */
function decoded(json: string): string {
  return json.replaceAll(/"data":"([^"]*)"/g, (_, data: string) =>
    Buffer.from(data, 'base64').toString(),
  );
}

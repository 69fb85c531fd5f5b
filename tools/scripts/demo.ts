// npm run demo uses only HTTP, as a merchant, a payer and their bank would. It checks every date, amount, status and
// event. If any of these differs, it lists every difference and exits with 1.

import { randomBytes } from 'node:crypto';
import { createClient } from '../../client/index.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import { startWebhookReceiver } from './client/webhook-receiver.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { print, runScript, styled } from '../../cli/command-line/terminal.ts';
import { Differences } from './demo/check.ts';
import { play } from './demo/story.ts';
import type { DemoRun } from './demo/story.ts';
import { YEAR } from './demo/year.ts';
import { commandLine } from '../../cli/command-line/options.ts';

commandLine('run demo', 'A year of a subscription, against a running npm start.').parse();

await runScript(async () => {
  const start = await findRunningStart();
  if (start.demo.stripeDouble !== undefined) {
    throw new Error(
      'This npm start takes payments at the Stripe double. For the demo, run npm start with DATA_DIR set to a new folder.',
    );
  }
  const merchant = createClient(start.demo);
  const eventSigner = `whsec_${randomBytes(24).toString('base64')}`;
  const receiver = await startWebhookReceiver({ secrets: [eventSigner] });
  const { webhookConfigId } = await merchant.createWebhook({
    body: { endpoint: receiver.url, eventSigner, subscribedEventTypes: [...EVENT_TYPES] },
  });
  const removeWebhook = () => merchant.deleteWebhook({ path: { webhookConfigId } });
  process.once('SIGINT', () => {
    void removeWebhook().finally(() => process.exit(130));
  });

  print();
  print(styled('bold', '  A year of one subscription'));
  print('  USD 19.99 a month, 12 payments, the first after 7 free days; on a test clock.');
  print(`  The webhook receiver is ${receiver.url}; each request has two signatures.`);
  print();
  try {
    return await runDemo({ start, merchant, receiver, differences: new Differences() });
  } finally {
    await removeWebhook();
    await receiver.close();
  }
});

async function runDemo(run: DemoRun): Promise<number> {
  const startedAt = performance.now();
  const { differences, start } = run;
  const year = await play(run, YEAR);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);

  print();
  print(`  ${year.events} events in order; the year took ${seconds} s.`);
  print(`  Its workflow in the Temporal Web UI:`);
  print(`    ${styled('cyan', webUiLink(start, year.subscriptionId))}`);
  print(`  Its ledger, and the reason of each charge: npm run explain -- ${year.subscriptionId}`);
  print();
  if (differences.list.length === 0) {
    print(
      styled('green', '  Everything is as expected: ') +
        'every date, amount, status, event and signature; the gateway recorded 12 payments and 1 decline.',
    );
    print();
    return 0;
  }
  print(styled('red', `  ${differences.list.length} differences:`));
  for (const difference of differences.list) print(`    ${difference}`);
  print();
  return 1;
}

function webUiLink({ demo }: RunningStart, subscriptionId: string): string {
  const workflowId = encodeURIComponent(`subscription/${subscriptionId}`);
  return `${demo.temporalUiUrl}/namespaces/${demo.temporalNamespace}/workflows/${workflowId}`;
}

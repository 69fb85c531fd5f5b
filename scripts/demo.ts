// npm run demo: runs one year of a subscription, a merchant's commands, and a subscription link against a
// running npm start. The demo uses only HTTP, as a merchant, a payer and their bank would. The demo checks
// every date, amount, status and event. If any of these differs, the demo lists every difference and exits
// with 1.

import { randomBytes } from 'node:crypto';
import { startWebhookReceiver } from '../test/support/webhook-receiver.ts';
import type { WebhookReceiver } from '../test/support/webhook-receiver.ts';
import type { MerchantClient } from '../test/support/merchant-client.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { print, runScript, styled } from './client/terminal.ts';
import { Differences } from './demo/check.ts';
import { sellByLink } from './demo/link.ts';
import { operate } from './demo/operations.ts';
import { liveThroughYear } from './demo/year.ts';
import { commandLine } from './client/options.ts';

const EVENT_TYPES = [
  'intent.created',
  'intent.success',
  'intent.failed',
  'subscription.created',
  'subscription.checkout_opened',
  'subscription.trialing',
  'subscription.active',
  'subscription.unpaid',
  'subscription.paused',
  'subscription.cycle_charged',
  'subscription.ended',
];

/** Time in ms for which a request is repeated when the API answers 429. */
const RATE_LIMITED_MS = 10_000;

const program = commandLine(
  'run demo',
  'A year of a subscription, a merchant’s commands and a link, against a running npm start.',
);

await runScript(async () => {
  program.parse();
  const start = await findRunningStart();
  // The API allows 10 reads a second of one subscription. Steps that take less than 0.1 s may get 429.
  const merchant = start.merchant({ patienceMs: RATE_LIMITED_MS, isConflictFinal: true });
  const eventSigner = `whsec_${randomBytes(24).toString('base64')}`;
  const receiver = await startWebhookReceiver({ secrets: [eventSigner] });
  const { webhookConfigId } = await merchant.post<{ webhookConfigId: string }>('/webhook', {
    endpoint: receiver.url,
    eventSigner,
    subscribedEventTypes: EVENT_TYPES,
  });
  const removeWebhook = () => merchant.delete(`/webhook/${webhookConfigId}`);
  process.once('SIGINT', () => {
    void removeWebhook().finally(() => process.exit(130));
  });

  print();
  print(styled('bold', '  A year of one subscription'));
  print('  USD 19.99 a month, 12 payments, the first after 7 free days; on a test clock.');
  print(`  The webhook receiver is ${receiver.url}; each request has two signatures.`);
  print();
  try {
    return await runDemo(start, merchant, receiver);
  } finally {
    await removeWebhook();
    await receiver.close();
  }
});

async function runDemo(
  start: RunningStart,
  merchant: MerchantClient,
  receiver: WebhookReceiver,
): Promise<number> {
  const startedAt = performance.now();
  const differences = new Differences();
  const demo = { start, merchant, receiver, differences };
  const year = await liveThroughYear(demo);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);

  print();
  print(`  ${year.events} events in order; the year took ${seconds} s.`);
  print(`  Its workflow in the Temporal Web UI:`);
  print(`    ${styled('cyan', webUiLink(start, year.subscriptionId))}`);
  // After a difference in the year, the other parts would only show the same fault again.
  if (differences.list.length === 0) {
    await operate(demo);
    await sellByLink(demo);
  }
  print();
  if (differences.list.length === 0) {
    print(
      styled('green', '  Everything is as expected: ') +
        'every date, amount, status, answer, event and signature; the gateway recorded 12 payments ' +
        "and 1 decline in the year, 6 payments and 3 declines after the merchant's commands, and " +
        '1 payment by the link.',
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

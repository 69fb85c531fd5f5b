// npm run demo uses only HTTP, as a merchant, a payer and their bank would. It checks every date, amount, status and
// event. If any of these differs, it lists every difference and exits with 1.

import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { EVENT_TYPES } from '../../domain/events.ts';
import { startWebhookReceiver } from './client/webhook-receiver.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { print, runScript, styled } from '../../cli/command-line/terminal.ts';
import { Differences } from './demo/check.ts';
import { sellByLink } from './demo/link.ts';
import { COMMANDS } from './demo/commands.ts';
import { play } from './demo/story.ts';
import type { DemoRun, Story } from './demo/story.ts';
import { STRIPE_YEAR } from './demo/stripe/year.ts';
import { yearSvg } from './demo/year-picture.ts';
import { YEAR } from './demo/year.ts';
import { controlDouble } from './client/double-control.ts';
import { commandLine, gatewayOption } from '../../cli/command-line/options.ts';
import type { GatewayChoice } from '../../cli/command-line/options.ts';

/** Time in ms for which a request is repeated when the API answers 429. */
const RATE_LIMITED_MS = 10_000;

interface Demo {
  readonly title: string;
  readonly terms: string;
  readonly year: Story;
  readonly otherParts: readonly ((run: DemoRun) => Promise<void>)[];
  /** The gateway's records if there are no differences, as text. */
  readonly recorded: string;
}

const DEMOS: Readonly<Record<GatewayChoice, Demo>> = {
  sandbox: {
    title: 'A year of one subscription',
    terms: 'USD 19.99 a month, 12 payments, the first after 7 free days; on a test clock.',
    year: YEAR,
    otherParts: [operate, sellByLink],
    recorded:
      "the gateway recorded 12 payments and 1 decline in the year, 6 payments and 3 declines after the merchant's " +
      'commands, and 1 payment by the link.',
  },
  'stripe-double': {
    title: 'A year of one subscription, paid at Stripe',
    terms:
      'USD 19.99 a month, 12 payments; on a test clock. A double stands in for Stripe and moves no money.',
    year: STRIPE_YEAR,
    otherParts: [],
    recorded:
      'the Stripe double recorded 12 payments and 1 decline; 1 payment was disputed, and none was refunded.',
  },
};

interface Options {
  readonly gateway: GatewayChoice;
  readonly picture?: string;
}

const program = commandLine(
  'run demo',
  'A year of a subscription, against a running npm start; at the sandbox gateway also a merchant’s commands and a link.',
)
  .addOption(gatewayOption('the gateway of the running npm start').default('sandbox'))
  .option('--picture <file>', 'draw the year as an SVG picture');

await runScript(async () => {
  const { gateway, picture } = program.parse().opts<Options>();
  const demo = DEMOS[gateway];
  const start = await findRunningStart();
  requireGateway(start, gateway);
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
  print(styled('bold', `  ${demo.title}`));
  print(`  ${demo.terms}`);
  print(`  The webhook receiver is ${receiver.url}; each request has two signatures.`);
  print();
  try {
    const run = { start, merchant, receiver, differences: new Differences() };
    return await runDemo(demo, run, picture);
  } finally {
    await removeWebhook();
    await receiver.close();
  }
});

/** @throws Error if the merchant of the running `npm start` uses another gateway. The message says what to do. */
function requireGateway({ demo }: RunningStart, gateway: GatewayChoice): void {
  if (gateway === 'stripe-double') controlDouble(demo);
  else if (demo.stripeDouble !== undefined) {
    throw new Error(
      'This npm start takes payments at the Stripe double. Run npm run demo -- --gateway stripe-double. ' +
        'For the demo of the sandbox, run npm start with DATA_DIR set to a new folder.',
    );
  }
}

async function runDemo(demo: Demo, run: DemoRun, picture?: string): Promise<number> {
  const startedAt = performance.now();
  const { differences, start } = run;
  const year = await play(run, demo.year);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);

  print();
  print(`  ${year.events} events in order; the year took ${seconds} s.`);
  print(`  Its workflow in the Temporal Web UI:`);
  print(`    ${styled('cyan', webUiLink(start, year.subscriptionId))}`);
  if (picture !== undefined) {
    const ofYear = run.receiver.received.filter(
      ({ event }) => event['subscriptionId'] === year.subscriptionId,
    );
    writeFileSync(picture, yearSvg(demo.title, ofYear));
    print(`  Its picture: ${picture}`);
  }
  // After a difference in the year, the other parts would only show the same fault again.
  if (differences.list.length === 0) {
    for (const part of demo.otherParts) await part(run);
  }
  print();
  if (differences.list.length === 0) {
    print(
      styled('green', '  Everything is as expected: ') +
        `every date, amount, status, answer, event and signature; ${demo.recorded}`,
    );
    print();
    return 0;
  }
  print(styled('red', `  ${differences.list.length} differences:`));
  for (const difference of differences.list) print(`    ${difference}`);
  print();
  return 1;
}

async function operate(run: DemoRun): Promise<void> {
  print();
  print(styled('bold', '  A merchant’s commands'));
  await play(run, COMMANDS);
}

function webUiLink({ demo }: RunningStart, subscriptionId: string): string {
  const workflowId = encodeURIComponent(`subscription/${subscriptionId}`);
  return `${demo.temporalUiUrl}/namespaces/${demo.temporalNamespace}/workflows/${workflowId}`;
}

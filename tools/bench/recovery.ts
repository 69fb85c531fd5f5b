// npm run bench:recovery: how other merchants' first deliveries fare while an endpoint's missed events are sent again. Exits
// with 1 after a problem, for example an event of the other merchant that was not delivered.

import type postgres from 'postgres';
import { commandLine, wholeNumber } from '../../cli/command-line/options.ts';
import { RECOVERED_MAX } from '../../db/repositories/webhooks/resend.ts';
import { HEALTHY_PATH, measureLoad } from './bad-endpoints/run.ts';
import { printLoad } from './report/endpoints-text.ts';
import { printHeading, printProblems, printRow, printTitle, shown } from './report/text.ts';
import { startMeasuredStack } from './stack/measured-stack.ts';
import { runOnOwnStack, withOwnRunOptions } from './stack/own-run.ts';
import type { OwnRunOptions } from './stack/own-run.ts';
import { startReceiver } from './stack/receiver.ts';

interface RecoveryOptions extends OwnRunOptions {
  readonly events: number;
  readonly seconds: number;
}

const command = commandLine(
  'run bench:recovery',
  'Other merchants’ first deliveries, alone and while missed events are sent again.',
)
  .option('--events <count>', 'missed events of the endpoint', wholeNumber, RECOVERED_MAX)
  .option('--seconds <count>', 'length of each measurement', wholeNumber, 90);
const options = withOwnRunOptions(command).parse().opts<RecoveryOptions>();

const TYPES = ['subscription.created', 'subscription.cycle_charged'];
const RECOVERING_PATH = '/recovering';
/** The first one warms the stack. */
const ALONE = ['warm-up', 'alone'];
const BESIDE = ['beside it, 1', 'beside it, 2', 'beside it, 3'];

/** Events of 2,000 subscriptions, in sequence. No endpoint subscribed to them. */
async function insertEvents(sql: postgres.Sql, merchantId: string): Promise<void> {
  await sql`
    insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
    select ${merchantId}, 'evt_' || n, 'sub_' || n % 2000, n / 2000 + 1, 'subscription.cycle_charged',
      json_build_object('eventId', 'evt_' || n, 'eventType', 'subscription.cycle_charged', 'pad', repeat('x', 700)), now()
    from generate_series(1, ${options.events}::int) n`;
  // Autovacuum would gather the statistics within a minute.
  await sql`analyze outbox_event`;
}

await runOnOwnStack('recovery', options, async ({ dataDir, closers, runConditions, say }) => {
  const stack = await startMeasuredStack(dataDir, options.temporal, closers);
  const receiver = await startReceiver(closers);
  const [recovering] = await stack.sql<{ id: string }[]>`select id from merchant`;
  const healthy = await stack.addMerchant('Healthy merchant');
  const healthyConfigId = await receiver.subscribe(healthy(), HEALTHY_PATH, TYPES);
  const setting = { stack, receiver, healthy, healthyConfigId, seconds: options.seconds };
  const sinceAt = Date.now() - 60_000;
  await insertEvents(stack.sql, recovering?.id ?? '');
  const configId = await receiver.subscribe(stack.merchant(), RECOVERING_PATH, TYPES);
  const measure = async (when: string) => {
    say(`measuring ${when}, ${options.seconds} s`);
    const since = Date.now();
    const measured = await measureLoad(setting);
    const sent = receiver.arrivals({ path: RECOVERING_PATH, since }).length;
    return { when, ...measured, sentPerSecond: (sent * 1_000) / (Date.now() - since) };
  };

  const phases = [];
  for (const when of ALONE) phases.push(await measure(when));
  const askedAt = performance.now();
  await stack.merchant().post(`/webhook/${configId}/recover`, { since: sinceAt });
  const acceptedSeconds = (performance.now() - askedAt) / 1_000;
  for (const when of BESIDE) phases.push(await measure(when));

  printTitle(`A recovery of ${options.events} events`, options.temporal, runConditions);
  printHeading('Sent again', ['a second']);
  for (const { when, sentPerSecond } of phases) printRow(when, [shown(sentPerSecond)]);
  printRow('accepted after, s', [shown(acceptedSeconds)]);
  printHeading('Another merchant, ms', ['calls', 'p50', 'p99', 'max']);
  for (const phase of phases) printLoad(phase.when, phase);
  const problems = phases.flatMap(({ when, load, deliveries }) => [
    ...load.failures.map((failure) => `${when}: ${failure}`),
    ...(deliveries.undelivered === 0 ? [] : [`${when}: ${deliveries.undelivered} not delivered`]),
  ]);
  if (phases.some(({ when, sentPerSecond }) => BESIDE.includes(when) && sentPerSecond === 0)) {
    problems.push('the recovery was over, or did not go on');
  }
  printProblems(problems, 'every event of the other merchant was delivered');
  return { figures: { acceptedSeconds, phases }, problems };
});

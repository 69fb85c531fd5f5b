// npm run kill-run: kills the worker, the API and both of a running npm start again and again while
// subscriptions are made, paid for and charged, and then reads the gateway's own book: exactly one
// success for every cycle that fell due. Exits with 1 and names what is wrong otherwise.

import { randomBytes } from 'node:crypto';
import { Command, InvalidArgumentError } from 'commander';
import { startWebhookReceiver } from '../test/support/webhook-receiver.ts';
import type { WebhookReceiver } from '../test/support/webhook-receiver.ts';
import { findRunningStart } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { grouped, print, runScript, styled } from './client/terminal.ts';
import { Killer, KILLS } from './kill-run/killer.ts';
import { liveByClock, makeAll } from './kill-run/lives.ts';
import type { Life, Progress } from './kill-run/lives.ts';
import { planLives } from './kill-run/plan.ts';
import { Random } from './kill-run/random.ts';
import { judge, judgeWebhooks } from './kill-run/verdict.ts';
import type { Verdict } from './kill-run/verdict.ts';

interface Options {
  readonly subscriptions: number;
  readonly seconds: number;
  readonly seed: number;
}

/** Each goes on by itself, so that something falls due at every moment. */
const CLOCKS = 12;
const REPORT_EVERY_MS = 10_000;
/** A request is repeated for this long: longer than a key's lease and than any restart. */
const PATIENCE_MS = 240_000;

const program = new Command('kill-run')
  .description('SIGKILLs worker and API while subscriptions are charged; then counts the charges.')
  .option('--subscriptions <count>', 'how many', wholeNumber, 200)
  .option('--seconds <count>', 'how long to go on killing', wholeNumber, 150)
  .option('--seed <number>', 'the same subscriptions and the same kills again', wholeNumber, 1)
  .addHelpText(
    'after',
    '\nMost subscriptions live on test clocks. One in ten lives in real time, where the shortest ' +
      'interval is a\nday: only its first cycle falls due in a run.',
  );

await runScript(async () => {
  const options = program.parse().opts<Options>();
  const start = await findRunningStart();
  const eventSigner = `whsec_${randomBytes(24).toString('base64')}`;
  const receiver = await startWebhookReceiver({ secrets: [eventSigner] });
  const repeats = new Map<string, number>();
  const merchant = start.merchant({
    patienceMs: PATIENCE_MS,
    isConflictFinal: true,
    onRepeat: (reason) => void repeats.set(reason, (repeats.get(reason) ?? 0) + 1),
  });
  const { webhookConfigId } = await merchant.post<{ webhookConfigId: string }>('/webhook', {
    endpoint: receiver.url,
    eventSigner,
    subscribedEventTypes: ['intent.success', 'intent.failed', 'subscription.cycle_charged'],
  });
  try {
    return await runAndJudge(start, receiver, options, merchant, repeats);
  } finally {
    await merchant.delete(`/webhook/${webhookConfigId}`);
    await receiver.close();
  }
});

async function runAndJudge(
  start: RunningStart,
  receiver: WebhookReceiver,
  options: Options,
  merchant: ReturnType<RunningStart['merchant']>,
  repeats: ReadonlyMap<string, number>,
): Promise<number> {
  const { subscriptions, seconds, seed } = options;
  print();
  print(styled('bold', `  ${subscriptions} subscriptions, ${seconds} s of kills, seed ${seed}`));
  print();
  const startedAt = performance.now();
  const progress: Progress = { lives: [], paid: 0, pagesRepeated: 0 };
  const killer = new Killer(start.dataDir, new Random(seed));
  const isOver = (): boolean => performance.now() - startedAt > seconds * 1_000;
  const reporting = setInterval(() => printProgress(startedAt, progress, killer), REPORT_EVERY_MS);
  const enough = new AbortController();
  const stopping = setTimeout(() => enough.abort(), seconds * 1_000);

  try {
    const killing = killer.run(enough.signal);
    const random = new Random(seed + 1);
    const plans = planLives(subscriptions, CLOCKS, random);
    const surroundings = { start, merchant, random, progress };
    const inRealTime = plans.filter(({ clock }) => clock === null);
    const groups = Array.from({ length: CLOCKS }, (_, clock) =>
      liveByClock(
        surroundings,
        clock,
        plans.filter((plan) => plan.clock === clock),
        isOver,
      ),
    );
    const [clocks] = await Promise.all([
      Promise.all(groups),
      makeAll(surroundings, inRealTime, null),
    ]);
    await killing;
    // Everybody works again; the last stretch is undisturbed.
    await killer.waitUntilUp(AbortSignal.timeout(PATIENCE_MS));
    const finals = await Promise.all(clocks.map(({ finish }) => finish()));

    const finalAt = ({ plan }: Life): number => finals[plan.clock ?? -1] ?? Number.NaN;
    const verdict = await judge(start, progress.lives, finalAt);
    if (progress.lives.length !== subscriptions) {
      verdict.wrong.push(`${progress.lives.length} of ${subscriptions} subscriptions were made`);
    }
    await judgeWebhooks(verdict, receiver.received, progress.lives, verdict.paidOnce);
    for (const kind of KILLS) {
      if (killer.counts[kind] === 0) verdict.wrong.push(`no kill of ${kind}: give it more seconds`);
    }
    const elapsed = (performance.now() - startedAt) / 1_000;
    printVerdict(verdict, killer, progress, repeats, elapsed);
    return verdict.wrong.length === 0 ? 0 : 1;
  } finally {
    enough.abort();
    clearTimeout(stopping);
    clearInterval(reporting);
  }
}

function printProgress(startedAt: number, progress: Progress, killer: Killer): void {
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const { worker, api, both } = killer.counts;
  const kills = `killed worker ${worker}, api ${api}, both ${both}`;
  print(styled('dim', `  ${String(seconds).padStart(4)} s  ${progress.paid} paid for, ${kills}`));
}

function printVerdict(
  verdict: Verdict,
  killer: Killer,
  progress: Progress,
  repeats: ReadonlyMap<string, number>,
  seconds: number,
): void {
  const { worker, api, both } = killer.counts;
  const repeated = [...repeats].map(([reason, count]) => `${count} ${reason}`).join(', ');
  const lines: [string, string][] = [
    ['killed', `worker ${worker} times, api ${api}, both ${both}`],
    ['requests repeated', repeated || 'none'],
    ['pages reloaded', grouped(progress.pagesRepeated)],
    ['cycles that fell due', grouped(verdict.dueCycles)],
    ['paid exactly once', grouped(verdict.paidOnce)],
    ['charged', `${(verdict.amountMinor / 100).toFixed(2)} USD`],
    ['declines', `${verdict.declined}, each paid by a retry`],
    ['payments told of', `${grouped(verdict.told)}, ${verdict.toldAgain} events twice`],
    ['duration', `${seconds.toFixed(0)} s`],
  ];
  print();
  for (const [label, text] of lines) print(`  ${label.padEnd(22)}${text}`);
  print();
  if (verdict.wrong.length === 0) {
    print(styled('green', "  One success in the gateway's book for every cycle that fell due."));
  } else {
    print(styled('red', `  ${verdict.wrong.length} things are wrong:`));
    for (const line of verdict.wrong.slice(0, 50)) print(`    ${line}`);
  }
  print();
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new InvalidArgumentError('Give a whole number above 0.');
}

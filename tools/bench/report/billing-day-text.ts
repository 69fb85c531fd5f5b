import type { DayFigures, DayOptions } from '../day/billing-day.ts';
import type { LoadFigures } from '../day/background-load.ts';
import type { Throughput } from '../day/set-up.ts';
import type { WaveFigures } from '../day/wave.ts';
import type { RunConditions } from '../measure/machine.ts';
import { PROCESSES } from '../stack/measured-stack.ts';
import { cpuRatioTo } from './billing-day-data.ts';
import {
  p50p99,
  printHeading,
  printNote,
  printProblems,
  printRow,
  printTitle,
  shown,
} from './text.ts';

export function printBillingDay(
  options: DayOptions,
  runConditions: RunConditions,
  figures: DayFigures,
  ratio: number,
): void {
  const { subscriptions, months, temporal } = options;
  const title = `A billing day: subscriptions ${subscriptions}, months ${months}`;
  printTitle(title, temporal, runConditions);
  printSetUp(figures);
  printWaves(figures);
  printCosts(figures);
  if (figures.duringWave !== null) printDuringWave(figures.duringWave);
  printFloor(figures, ratio);
  const repairs = Object.entries(figures.repairs).map(([kind, count]) => `${kind} ${count}`);
  printNote(`repairs by sweeps: ${repairs.join(', ') || 'none'}`);
  printProblems(
    figures.problems,
    'every renewal was charged once, every event was delivered, and every workflow sleeps',
  );
}

function printSetUp({ setUp, waves }: DayFigures): void {
  const row = (label: string, { perSecond, latencyMs, ...troubles }: Throughput): void => {
    const { p50, p99 } = latencyMs;
    const counts = [troubles.repeats, troubles.payersAnswered503].map(String);
    printRow(label, [shown(perSecond), shown(p50), shown(p99), ...counts]);
  };
  printHeading('Set-up, 12 calls in parallel', ['a second', 'p50 ms', 'p99 ms', 'repeats', '503']);
  row('subscriptions created', setUp.create);
  row('hosted payments', setUp.pay);
  waves.forEach((wave, index) => row(`edits, before month ${index + 1}`, wave.edit));
  printNote(
    'repeats: calls repeated after 409, 429, 5xx or no answer, and pages loaded again. 503: pages with this status.',
  );
  const processes = [...PROCESSES, 'bench'] as const;
  const cost = (label: string, { cpuMsPerCall }: Throughput): void =>
    printRow(
      label,
      processes.map((name) => shown(cpuMsPerCall[name])),
    );
  printHeading('CPU ms of one call', processes);
  cost('subscriptions created', setUp.create);
  cost('hosted payments', setUp.pay);
  waves.forEach((wave, index) => cost(`edits, before month ${index + 1}`, wave.edit));
}

function printWaves(figures: DayFigures): void {
  const row = rowOf(figures);
  printHeading('All fall due at one time', namesOf(figures));
  row('charges a second', (wave) => wave.chargesPerSecond);
  row('all delivered and asleep, a second', (wave) => wave.asleepPerSecond);
  row('settled in Postgres, s late: p50', (wave) => wave.lateness.p50);
  row('                             p99', (wave) => wave.lateness.p99);
  row('settled after its jitter, s late: p50', (wave) => wave.latenessAfterPlace.p50);
  row('                                  p99', (wave) => wave.latenessAfterPlace.p99);
  row('first delivery after the commit, ms: p50', (wave) => wave.firstDeliveryMs.p50);
  row('                                     p99', (wave) => wave.firstDeliveryMs.p99);
  if (figures.duringWave === null) return;
  printNote('* meanwhile two merchants make the calls below: reads, creates and hosted payments');
}

function printCosts(figures: DayFigures): void {
  const { idle, reference } = figures;
  const row = rowOf(figures);
  printHeading('Cost of one renewal', namesOf(figures));
  for (const name of [...PROCESSES, 'receiver', 'bench'] as const) {
    row(`CPU ms: ${name}`, ({ cost }) => cost.cpuMs[name]);
  }
  row('workflow history: events', ({ cost }) => cost.historyEvents);
  row('workflow tasks executed again', ({ cost }) => cost.repeatedTasks);
  row('webhook deliveries', (wave) => wave.deliveriesPerRenewal);
  row('SQL commits: ours and the gateway’s', ({ cost }) => cost.database.commits);
  row('SQL commits: Temporal’s', ({ cost }) => cost.database.temporalCommits);
  row('WAL bytes, all databases', ({ cost }) => cost.database.walBytes);
  row('MB of the worker, not a renewal', ({ cost }) => cost.workerMb);
  if (reference !== null) row('CPU of the stack ÷ that of the reference', cpuRatioTo(reference));
  const ofCalls =
    figures.duringWave === null ? '' : ' A month with * includes the cost of the calls.';
  printNote(`CPU and SQL of the idle stack are subtracted.${ofCalls}`);
  const parts = PROCESSES.map((name) => `${name} ${shown(idle.cpu[name])} %`);
  printNote(`idle, of a core: ${parts.join(', ')}`);
  const { commits, temporalCommits, walBytes } = idle.databasePerSecond;
  printNote(
    `idle, a second: commits ${shown(commits)}, Temporal’s ${shown(temporalCommits)}; ` +
      `WAL ${shown(walBytes)} bytes`,
  );
}

function printDuringWave({ same, other }: NonNullable<DayFigures['duringWave']>): void {
  printHeading('Calls during the last wave, ms', ['calls', 'p50', 'p99', 'max']);
  const rows = (name: string, load: LoadFigures): void => {
    printRow(`${name}: reads`, p50p99(load.readMs));
    printRow(`${name}: creates`, p50p99(load.createMs));
    printRow(`${name}: hosted payments`, p50p99(load.checkoutMs));
  };
  rows('same merchant', same);
  printRow('same merchant: edits of what renews', p50p99(same.editMs));
  rows('another merchant', other);
  printRow('another merchant: first delivery', p50p99(other.firstDeliveryMs));
  printRow('payers answered 503', [String(same.payersAnswered503 + other.payersAnswered503)]);
  printRow('requests repeated', [String(same.repeats + other.repeats)]);
}

function printFloor({ floor }: DayFigures, ratio: number): void {
  const headings = ['a second', 'worker', 'Temporal', 'Postgres', 'product ÷'];
  printHeading('Baseline: workflows whose activity does nothing, CPU in ms', headings);
  const { asleepPerSecond, cpuMsPerRenewal: cpu } = floor;
  const values = [asleepPerSecond, cpu.worker, cpu.temporal, cpu.postgres, ratio];
  printRow('1 local activity, same run', values.map(shown));
  printNote(
    'product ÷: all delivered and asleep a second ÷ this baseline, mean of the months without *',
  );
}

/** Prints a row with a value of the reference, if there is one, and of each month. */
function rowOf({ reference, waves }: DayFigures) {
  const all = reference === null ? waves : [reference, ...waves];
  return (label: string, value: (wave: WaveFigures) => number | null): void =>
    printRow(
      label,
      all.map((wave) => shown(value(wave))),
    );
}

function namesOf({ reference, waves, duringWave }: DayFigures): string[] {
  const withCalls = duringWave === null ? -1 : waves.length - 1;
  const months = waves.map((_, index) => `month ${index + 1}${index === withCalls ? '*' : ''}`);
  return reference === null ? months : ['reference', ...months];
}

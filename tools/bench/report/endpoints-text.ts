import type { EndpointFigures, EndpointOptions, Health } from '../bad-endpoints/run.ts';
import type { RunConditions } from '../measure/machine.ts';
import { PROCESSES } from '../stack/measured-stack.ts';
import {
  p50p99,
  printHeading,
  printNote,
  printProblems,
  printRow,
  printTitle,
  shown,
} from './text.ts';

const TITLES = {
  closed: 'A closed port',
  silent: 'An endpoint that never answers',
} as const;

export function printEndpoints(
  { streams, temporal }: EndpointOptions,
  runConditions: RunConditions,
  cases: readonly EndpointFigures[],
): void {
  const title = `Bad endpoints: ${streams} streams wait for each`;
  printTitle(title, temporal, runConditions);
  for (const figures of cases) printCase(figures);
  const problems = cases.flatMap((figures) => figures.problems);
  printProblems(
    problems,
    'every renewal was charged once, every event of the other merchant was delivered',
  );
}

function printCase(figures: EndpointFigures): void {
  const { before, meanwhile, pending, renewals } = figures;
  printHeading(`${TITLES[figures.endpoint]}: CPU, idle`, ['before', 'meanwhile']);
  for (const name of PROCESSES) {
    const percent = [before, meanwhile].map(({ idleCpu }) => shown(idleCpu[name]));
    printRow(`${name}, % of a core`, percent);
  }
  printRow('deliveries waiting: at the start, at the end', [
    String(pending.first),
    String(pending.last),
  ]);
  printRow('attempts recorded meanwhile', [String(figures.attemptsRecorded)]);
  printRow('subscriptions created, a second', [shown(figures.create.perSecond)]);

  printHeading('Another merchant, ms', ['calls', 'p50', 'p99', 'max']);
  printLoad('before', before);
  printLoad('meanwhile', meanwhile);

  printHeading('Due 4 s after an event for the endpoint', ['renewals', 'p50', 'p99', 'max']);
  printRow('settled in Postgres, s late', p50p99(renewals.lateSeconds));
  printRow('the edit that set the date, ms', p50p99(renewals.editMs));
}

export function printLoad(when: string, { load, deliveries }: Omit<Health, 'idleCpu'>): void {
  printRow(`${when}: first delivery after the commit`, p50p99(deliveries.firstDeliveryMs));
  printRow(`${when}: hosted payments`, p50p99(load.checkoutMs));
  printRow(`${when}: creates`, p50p99(load.createMs));
  if (load.payersAnswered503 > 0) printNote(`${load.payersAnswered503} payers answered 503`);
}

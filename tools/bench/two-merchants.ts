// npm run bench:two-merchants: measures how late a small merchant's renewals are, first alone and then due at
// the same time as a big merchant's, on a separate stack. The benchmark exits with 1 if a renewal was not
// charged exactly once.

import { commandLine, wholeNumber } from '../scripts/client/options.ts';
import {
  p50p99,
  printHeading,
  printNote,
  printProblems,
  printRow,
  printTitle,
  shown,
} from './report/text.ts';
import { runOnOwnStack, withOwnRunOptions } from './stack/own-run.ts';
import type { OwnRunOptions } from './stack/own-run.ts';
import { runTwoMerchants } from './two-merchants/run.ts';
import type { TwoMerchantsOptions } from './two-merchants/run.ts';

const command = commandLine(
  'run bench:two-merchants',
  'Lateness of a small merchant’s renewals, alone and beside a big merchant’s.',
)
  .option('--small <count>', 'subscriptions of the small merchant', wholeNumber, 50)
  .option('--big <count>', 'subscriptions of the big merchant', wholeNumber, 2_000);

const options = withOwnRunOptions(command).parse().opts<TwoMerchantsOptions & OwnRunOptions>();

runOnOwnStack('two-merchants', options, async (run) => {
  const figures = await runTwoMerchants(options, run);
  const { smallAlone, smallBesideBig, big, problems } = figures;
  const title = `Small merchant: ${options.small} renewals, big merchant: ${options.big}`;
  printTitle(title, options.temporal, run.runConditions);
  printHeading('Settled in Postgres, s late', ['renewals', 'p50', 'p99', 'max']);
  printRow('small merchant, alone', p50p99(smallAlone));
  printRow('small merchant, beside the big one', p50p99(smallBesideBig));
  printRow('big merchant', p50p99(big));
  printNote(`p99 beside ÷ alone: ${shown((smallBesideBig.p99 ?? NaN) / (smallAlone.p99 ?? NaN))}`);
  printProblems(problems, 'every renewal was charged once');
  return { figures, problems };
});

import { setTimeout as sleep } from 'node:timers/promises';
import { countOpen, readRenewals } from '../day/renewals.ts';
import { createAll, editAll, LEFT_CHECKOUT_MS, moveToOneInstant, payAll } from '../day/set-up.ts';
import { distributionOf } from '../measure/percentiles.ts';
import type { Distribution } from '../measure/percentiles.ts';
import { waitUntilQuiet } from '../measure/quiet.ts';
import { startMeasuredStack } from '../stack/measured-stack.ts';
import type { ClientOf, MeasuredStack, TemporalKind } from '../stack/measured-stack.ts';
import type { OwnRun } from '../stack/own-run.ts';

export interface TwoMerchantsOptions {
  readonly small: number;
  readonly big: number;
  readonly temporal: TemporalKind;
}

/** Lateness of each renewal in seconds after its due time, by Postgres' clock. */
export interface TwoMerchantsFigures {
  readonly smallAlone: Distribution;
  readonly smallBesideBig: Distribution;
  readonly big: Distribution;
  readonly problems: readonly string[];
}

interface Merchant {
  readonly name: string;
  readonly clientOf: ClientOf;
  readonly subscriptionIds: readonly string[];
}

const QUIET_WITHIN_MS = 60_000;
/** Minimum time in ms from the last edit to the due time. */
const REST_BEFORE_MS = 15_000;
/** Fewer edits a second than in every measured run. A slower run repeats the edits with a later due time. */
const EDITS_PER_SECOND = 45;
const WAVE_WITHIN_MS = 120_000;
const WAVE_WITHIN_MS_EACH = 500;
const LOOK_MS = 500;

/** The big merchant's dates are set first: older timers are the worse case for the small merchant. */
export async function runTwoMerchants(
  options: TwoMerchantsOptions,
  { dataDir, closers, say }: OwnRun,
): Promise<TwoMerchantsFigures> {
  say(`starting a separate stack (Temporal: ${options.temporal})`);
  const stack = await startMeasuredStack(dataDir, options.temporal, closers);
  const prepare = async (name: string, clientOf: ClientOf, count: number): Promise<Merchant> => {
    say(`${name} merchant: creating ${count} subscriptions and paying them`);
    const { created } = await createAll(stack, count, clientOf);
    await payAll(stack, created);
    return { name, clientOf, subscriptionIds: created.map((one) => one.subscriptionId) };
  };
  const big = await prepare('big', stack.merchant, options.big);
  const small = await prepare('small', await stack.addMerchant('Small merchant'), options.small);
  await sleep(LEFT_CHECKOUT_MS);

  say('the small merchant’s renewals fall due alone');
  const alone = await measureTogether(stack, [small]);
  say('both merchants’ renewals fall due together');
  const together = await measureTogether(stack, [big, small]);
  const [besideSmall, besideBig] = [together.late[1], together.late[0]];
  const [smallAlone] = alone.late;
  if (!smallAlone || !besideSmall || !besideBig) throw new Error('no wave was measured');
  return {
    smallAlone,
    smallBesideBig: besideSmall,
    big: besideBig,
    problems: [...alone.problems, ...together.problems],
  };
}

async function measureTogether(
  stack: MeasuredStack,
  merchants: readonly Merchant[],
): Promise<{ late: Distribution[]; problems: string[] }> {
  await waitUntilQuiet(stack, null, QUIET_WITHIN_MS);
  const all = merchants.flatMap(({ subscriptionIds }) => subscriptionIds);
  const pace = { count: all.length, perSecond: EDITS_PER_SECOND, restMs: REST_BEFORE_MS };
  const { dueAt } = await moveToOneInstant(pace, async (at) => {
    for (const { clientOf, subscriptionIds } of merchants) {
      await editAll(stack, subscriptionIds, at, clientOf);
    }
  });
  await sleep(dueAt - Date.now());
  const giveUpAt = dueAt + WAVE_WITHIN_MS + all.length * WAVE_WITHIN_MS_EACH;
  while (Date.now() < giveUpAt && (await countOpen(stack, all, dueAt)).unsettled > 0) {
    await sleep(LOOK_MS);
  }
  const late: Distribution[] = [];
  const problems: string[] = [];
  for (const { name, subscriptionIds } of merchants) {
    const renewals = await readRenewals(stack, subscriptionIds, dueAt, []);
    late.push(
      distributionOf(
        renewals.flatMap(({ settledAt }) =>
          settledAt === null ? [] : [(settledAt - dueAt) / 1e3],
        ),
      ),
    );
    const wrong = renewals.filter((one) => one.settledAt === null || one.charges !== 1).length;
    if (wrong > 0) problems.push(`${name} merchant: ${wrong} renewals were not charged once`);
  }
  return { late, problems };
}

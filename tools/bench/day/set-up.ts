import { setTimeout as sleep } from 'node:timers/promises';
import { payUntilAnswered } from '../../scripts/client/retrying-payer.ts';
import { waitFor } from '../../scripts/client/wait-for.ts';
import { ApiRefusal } from '../../scripts/client/merchant-client.ts';
import type { MerchantClient } from '../../scripts/client/merchant-client.ts';
import { MONTHLY } from '../../scripts/client/monthly.ts';
import { countCpu } from '../measure/cpu.ts';
import { distributionOf } from '../measure/percentiles.ts';
import { inParallel } from '../measure/parallel.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';

export type Throughput = Awaited<ReturnType<typeof timed>>['throughput'];

export interface CreatedSubscription {
  readonly subscriptionId: string;
  readonly fwdUrl: string;
}

const EDIT_TRIES = 3;
/** The due time allows for this multiple of the time of the edits that the rate of earlier calls foretells. */
const EDIT_ALLOWANCE = 1.5;
const IN_PARALLEL = 12;
const STARTED_WITHIN_MS = 60_000;
const PAY_WITHIN_MS = 180_000;
const BETWEEN_LOOKS_MS = 300;

export class Troubles {
  repeats = 0;
  payersAnswered503 = 0;
}

export async function createOne(merchant: MerchantClient): Promise<CreatedSubscription> {
  return merchant.post<CreatedSubscription>('/subscription/create', {
    ...MONTHLY,
    cycleCount: 1_000,
  });
}

let payers = 0;

export async function payOne(fwdUrl: string, troubles: Troubles): Promise<void> {
  payers += 1;
  const address = `10.${(payers >> 16) & 255}.${(payers >> 8) & 255}.${payers & 255}`;
  const { end, answered503 } = await payUntilAnswered(fwdUrl, {
    address,
    withinMs: PAY_WITHIN_MS,
    betweenLooksMs: BETWEEN_LOOKS_MS,
    onRepeat: () => (troubles.repeats += 1),
  });
  troubles.payersAnswered503 += answered503;
  if (end !== 'paid') throw new Error(`${fwdUrl} had expired`);
}

export async function createAll(
  stack: MeasuredStack,
  count: number,
): Promise<{ created: CreatedSubscription[]; throughput: Throughput }> {
  const troubles = new Troubles();
  const client = stack.merchant(() => (troubles.repeats += 1));
  const numbers = Array.from({ length: count }, (_, index) => index);
  const { results, throughput } = await timed(stack, numbers, troubles, () => createOne(client));
  await waitUntilStarted(stack);
  return { created: results, throughput };
}

/** Waits until all workflows are started, because the API starts them after it has answered the create. */
async function waitUntilStarted({ sql }: MeasuredStack): Promise<void> {
  await waitFor('the workflows to be started', STARTED_WITHIN_MS, async () => {
    const [row] = await sql<{ missing: number }[]>`
      select count(*)::int as missing from subscription where workflow_started_at is null`;
    if (row?.missing === 0) return true;
    await sleep(200);
  });
}

export async function payAll(
  stack: MeasuredStack,
  created: readonly CreatedSubscription[],
): Promise<Throughput> {
  const troubles = new Troubles();
  const { throughput } = await timed(stack, created, troubles, ({ fwdUrl }) =>
    payOne(fwdUrl, troubles),
  );
  return throughput;
}

export async function editAll(
  stack: MeasuredStack,
  subscriptionIds: readonly string[],
  dueAt: number,
): Promise<Throughput> {
  const troubles = new Troubles();
  const client = stack.merchant(() => (troubles.repeats += 1));
  const { throughput } = await timed(stack, subscriptionIds, troubles, (subscriptionId) =>
    client.post('/subscription/edit', { subscriptionId, newNextPaymentDate: dueAt }),
  );
  return throughput;
}

/** Repeats all edits with a later due time if they end less than `restMs` before it. Throws after three tries. */
export async function moveToOneInstant<Result extends object>(
  { count, perSecond, restMs }: { count: number; perSecond: number; restMs: number },
  edit: (dueAt: number) => Promise<Result>,
): Promise<{ dueAt: number; result: Result }> {
  for (let attempt = 1; attempt <= EDIT_TRIES; attempt += 1) {
    const editMs = (count / perSecond) * 1_000 * EDIT_ALLOWANCE * attempt;
    const dueAt = Math.round(Date.now() + restMs + 2_000 + editMs);
    const result = await edit(dueAt).catch((error: unknown) => {
      // The API refuses a due time that has passed.
      if (!(error instanceof ApiRefusal) || Date.now() < dueAt) throw error;
    });
    if (result !== undefined && Date.now() + restMs < dueAt) return { dueAt, result };
  }
  throw new Error('the edits were too slow for one due time');
}

async function timed<Item, Result>(
  stack: MeasuredStack,
  items: readonly Item[],
  troubles: Troubles,
  work: (item: Item) => Promise<Result>,
) {
  const latenciesMs: number[] = [];
  const cpuMsFor = countCpu(stack.pids());
  const startedAt = performance.now();
  const results = await inParallel(items, IN_PARALLEL, async (item) => {
    const itemStartedAt = performance.now();
    const result = await work(item);
    latenciesMs.push(performance.now() - itemStartedAt);
    return result;
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    results,
    throughput: {
      perSecond: items.length / seconds,
      latencyMs: distributionOf(latenciesMs),
      /** Calls repeated under the same key after 409, 429, 5xx or no answer, and pages loaded again. */
      repeats: troubles.repeats,
      payersAnswered503: troubles.payersAnswered503,
      /** CPU ms of each process during the calls, divided by the number of calls. */
      cpuMsPerCall: cpuMsFor(items.length),
    },
  };
}

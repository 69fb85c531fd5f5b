import type { ReceivedWebhook } from '../../test/support/webhook-receiver.ts';
import { waitFor } from '../client/patience.ts';
import type { BookedCharge, RunningStart } from '../client/running-start.ts';
import type { Life } from './lives.ts';
import { dueCycles } from './plan.ts';

/** A killed worker's lease has to run out before others deliver in its place. */
const EVENTS_WITHIN_MS = 180_000;

export interface Verdict {
  dueCycles: number;
  paidOnce: number;
  declined: number;
  amountMinor: number;
  /** `cycle_charged` events that came, each cycle counted once. */
  told: number;
  /** Deliveries of an event that had been delivered before. */
  toldAgain: number;
  /** What is wrong, a line each. */
  readonly wrong: string[];
}

/** Reads the gateway's own book and compares it with what fell due, cycle by cycle. */
export async function judge(
  start: RunningStart,
  lives: readonly Life[],
  finalAt: (life: Life) => number,
): Promise<Verdict> {
  const verdict: Verdict = {
    dueCycles: 0,
    paidOnce: 0,
    declined: 0,
    amountMinor: 0,
    told: 0,
    toldAgain: 0,
    wrong: [],
  };
  for (const life of lives) {
    judgeBook(
      verdict,
      life,
      dueCycles(life.plan, finalAt(life)),
      await start.book(life.subscriptionId),
    );
  }
  return verdict;
}

function judgeBook(
  verdict: Verdict,
  { plan, subscriptionId }: Life,
  due: number,
  book: readonly BookedCharge[],
): void {
  const successes = new Map<string, number>();
  for (const charge of book) {
    if (charge.outcome === 'declined') verdict.declined += 1;
    else {
      const { intentId } = charge.reference;
      successes.set(intentId, (successes.get(intentId) ?? 0) + 1);
      verdict.amountMinor += charge.amountMinor;
    }
    if (charge.amountMinor !== plan.amount || charge.currency !== 'USD') {
      verdict.wrong.push(
        `${subscriptionId}: ${charge.key} is of ${charge.amountMinor} ${charge.currency}, not ${plan.amount} USD`,
      );
    }
  }
  verdict.dueCycles += due;
  for (const [intentId, count] of successes) {
    if (count === 1) verdict.paidOnce += 1;
    else verdict.wrong.push(`${subscriptionId}: ${intentId} was paid ${count} times`);
  }
  if (successes.size !== due) {
    const terms = `every ${plan.intervalCount} ${plan.interval}, ${plan.cycleCount} cycles, ${plan.trialDays} days free`;
    verdict.wrong.push(
      `${subscriptionId} (${terms}): ${due} cycles fell due and ${successes.size} were paid`,
    );
  }
}

/** Every paid cycle was told of, in sequence order at the first telling, and signed. */
export async function judgeWebhooks(
  verdict: Verdict,
  received: readonly ReceivedWebhook[],
  lives: readonly Life[],
  expected: number,
): Promise<void> {
  const ids = new Set(lives.map(({ subscriptionId }) => subscriptionId));
  const told = (): Set<string> => {
    const paid = received.filter(({ event }) => event.eventType === 'subscription.cycle_charged');
    return new Set(
      paid
        .map(({ event }) => cycleOf(event))
        .filter(([id]) => ids.has(id))
        .map(String),
    );
  };
  await waitFor('every payment to be told of', EVENTS_WITHIN_MS, () =>
    told().size >= expected ? true : undefined,
  ).catch(() => undefined);
  verdict.told = told().size;
  if (verdict.told !== expected) {
    verdict.wrong.push(`${expected} payments, and ${verdict.told} were told of`);
  }

  const last = new Map<string, number>();
  const seen = new Set<string>();
  for (const { event, isStandardSignatureValid, isXpaySignatureValid } of received) {
    const [id] = cycleOf(event);
    if (!ids.has(id)) continue;
    if (!isStandardSignatureValid || !isXpaySignatureValid) {
      verdict.wrong.push(`${event.eventId}: a signature does not hold`);
    }
    if (seen.has(event.eventId)) {
      verdict.toldAgain += 1;
      continue;
    }
    seen.add(event.eventId);
    if (event.sequence < (last.get(id) ?? 0)) {
      verdict.wrong.push(`${id}: event ${event.sequence} came after event ${last.get(id)}`);
    }
    last.set(id, event.sequence);
  }
}

function cycleOf(event: ReceivedWebhook['event']): [subscriptionId: string, cycleNumber: number] {
  return [String(event['subscriptionId']), Number(event['cycleNumber'])];
}

import { setTimeout as sleep } from 'node:timers/promises';
import { openPage, PageOutOfReach } from '../../test/support/browser.ts';
import type { Page } from '../../test/support/browser.ts';
import { ApiRefusal } from '../../test/support/merchant-client.ts';
import type { MerchantClient } from '../../test/support/merchant-client.ts';
import { payOn, PAYING_CARD } from '../../test/support/payer.ts';
import type { RunningStart } from '../client/running-start.ts';
import { createTestClock } from '../client/test-clock.ts';
import { clockStart } from './plan.ts';
import type { LifePlan } from './plan.ts';
import type { Random } from './random.ts';

const DAY_MS = 86_400_000;
/** So that a retry four hours after a due date, which is at noon, lies before every stop. */
const EVENING_MS = 6 * 3_600_000;

/** How long payers and clocks go on trying: longer than any key's lease and any restart. */
const PATIENCE_MS = 240_000;
const BETWEEN_LOOKS_MS = 300;
/** Subscriptions of one clock that are being made at the same time. */
const MADE_TOGETHER = 2;

export interface Life {
  readonly plan: LifePlan;
  readonly subscriptionId: string;
}

export interface Progress {
  readonly lives: Life[];
  paid: number;
  pagesRepeated: number;
}

export interface Surroundings {
  readonly start: RunningStart;
  readonly merchant: MerchantClient;
  readonly random: Random;
  readonly progress: Progress;
}

/**
 * The lives of one clock: made, paid for, and sent on and on until it is over. Resolves with the last
 * stretch, which answers where the clock ended.
 */
export async function liveByClock(
  surroundings: Surroundings,
  clock: number,
  plans: readonly LifePlan[],
  isOver: () => boolean,
): Promise<{ finish: () => Promise<number> }> {
  const { merchant, random } = surroundings;
  const testClockId = await createTestClock(merchant, clockStart(clock));
  await makeAll(surroundings, plans, testClockId);
  let days = 0;
  const advance = async (byDays: number): Promise<void> => {
    days += byDays;
    await sendClock(merchant, testClockId, clockStart(clock) + days * DAY_MS + EVENING_MS);
  };
  while (!isOver()) await advance(random.between(5, 40));
  return {
    finish: async () => {
      await advance(7);
      return clockStart(clock) + days * DAY_MS + EVENING_MS;
    },
  };
}

export async function makeAll(
  surroundings: Surroundings,
  plans: readonly LifePlan[],
  testClockId: string | null,
): Promise<void> {
  const waiting = [...plans];
  const makeNext = async (): Promise<void> => {
    for (;;) {
      const plan = waiting.shift();
      if (plan === undefined) return;
      await make(surroundings, plan, testClockId);
    }
  };
  await Promise.all(Array.from({ length: MADE_TOGETHER }, makeNext));
}

async function make(
  { merchant, start, random, progress }: Surroundings,
  plan: LifePlan,
  testClockId: string | null,
): Promise<void> {
  const { amount, interval, intervalCount, cycleCount, trialDays } = plan;
  const { subscriptionId, fwdUrl } = await merchant.post<{
    subscriptionId: string;
    fwdUrl: string;
  }>('/subscription/create', {
    amount,
    currency: 'USD',
    interval,
    intervalCount,
    cycleCount,
    ...(trialDays > 0 ? { trialPeriodCount: trialDays, trialPeriodInterval: 'DAY' } : {}),
    ...(testClockId === null ? {} : { testClockId }),
    customerDetails: { name: PAYING_CARD.name, email: 'ada@example.com' },
    callbackUrl: 'https://shop.example/thanks',
  });
  progress.lives.push({ plan, subscriptionId });
  await payWithPatience(fwdUrl, random, progress);
  if (plan.isDeclinedOnce) await start.declineNext(subscriptionId, 'insufficient_funds', 1);
  progress.paid += 1;
}

/** A payer who does not give up: reloads what broke, or opens the link again and types anew. */
async function payWithPatience(fwdUrl: string, random: Random, progress: Progress): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  let url = fwdUrl;
  let what = '';
  while (performance.now() < giveUpAt) {
    try {
      let page = await openPage(url);
      if (page.forms.length > 0) page = await payOn(page);
      if (isPaid(page)) return;
      what = `"${page.title}"`;
      url = page.refreshUrl ?? fwdUrl;
    } catch (error) {
      if (!(error instanceof PageOutOfReach)) throw error;
      what = error.message;
      url = random.isLucky(0.5) ? error.url : fwdUrl;
    }
    progress.pagesRepeated += 1;
    await sleep(BETWEEN_LOOKS_MS);
  }
  throw new Error(`${fwdUrl} was not paid within ${PATIENCE_MS / 1_000} s; last seen: ${what}`);
}

function isPaid({ title }: Page): boolean {
  return title.startsWith('Thank you') || title === 'Your free trial has started';
}

/**
 * Sends a clock on, with the same key until it is there. A key whose call died with the API is held
 * by a lease for a while; where the clock is can be read meanwhile.
 */
async function sendClock(merchant: MerchantClient, testClockId: string, to: number): Promise<void> {
  const key = `advance:${testClockId}:${to}`;
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (performance.now() < giveUpAt) {
    const order = { testClockId, to };
    const clock = await merchant
      .post<ClockAnswer>('/test-clock/advance', order, key)
      .catch((error: unknown) => {
        if (!(error instanceof ApiRefusal) || error.status !== 409) throw error;
        return merchant.get<ClockAnswer>(`/test-clock/${testClockId}`);
      });
    if (clock.status === 'READY' && clock.now === to) return;
    await sleep(BETWEEN_LOOKS_MS);
  }
  throw new Error(`${testClockId} did not reach ${new Date(to).toISOString()}`);
}

interface ClockAnswer {
  readonly now: number;
  readonly status: string;
}

import { and, eq } from 'drizzle-orm';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import { openAttempt, owe } from '../../domain/subscription/apply-attempt.ts';
import { paidOnClock } from './pay-checkout.ts';
import { dumpRows } from './restored-rows.ts';
import type { TestEnvironment } from './test-environment.ts';

export const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');
export const DUE_AT = Date.parse('2027-02-10T00:00:00Z');

/**
 * Creates a subscription on a test clock and pays January's cycle. Each test charges February's cycle itself.
 */
export async function paidForJanuary(env: TestEnvironment) {
  const { ref, clock } = await paidOnClock(env, CREATED_AT, { cycleCount: 3 });
  const match = { subscriptionId: ref.subscriptionId };
  /** Type and id of the events after the first five, which belong to January's payment. */
  const newEvents = async () =>
    (await env.events(ref)).slice(5).map((event) => [event['eventType'], event['eventId']]);
  return {
    ref,
    clock,
    fault: (fault: object) =>
      env.control('POST', '/control/faults', { operation: 'charge', count: 1, match, ...fault }),
    /** February's charges at the gateway, each with the number of times its key was sent. */
    february: async () => {
      const book = await env.book(ref);
      return book
        .slice(1)
        .map(({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`);
    },
    /** February's attempts in our database. */
    attempts: async () => {
      const rows = await env.db
        .select({ state: paymentAttempts.state, number: paymentAttempts.attemptNumber })
        .from(paymentAttempts)
        .innerJoin(
          paymentIntents,
          and(
            eq(paymentIntents.merchantId, paymentAttempts.merchantId),
            eq(paymentIntents.id, paymentAttempts.intentId),
          ),
        )
        .where(
          and(
            eq(paymentIntents.subscriptionId, ref.subscriptionId),
            eq(paymentIntents.cycleNumber, 2),
          ),
        );
      return rows.map(({ number, state }) => `${number} ${state}`);
    },
    newEvents,
    newEventTypes: async () => (await newEvents()).map(([type]) => type),
  };
}

export type PaidSubscription = Awaited<ReturnType<typeof paidForJanuary>>;

/** The input that the workflow passes to the activity `chargeAttempt` when February's cycle falls due. */
export async function februaryInput(env: TestEnvironment, { ref }: PaidSubscription) {
  const state = await env.state(ref);
  const opening = openAttempt(owe(state, DUE_AT), {
    trigger: 'scheduled',
    commandId: null,
    now: DUE_AT,
    realNow: Date.now(),
  });
  return {
    state: opening.state,
    opening: {
      effects: {},
      transitionId: `${ref.subscriptionId}:${opening.state.version}`,
      command: null,
      nowAt: DUE_AT,
    },
    nowAt: DUE_AT,
    realNowAt: Date.now(),
  };
}

/** As {@link paidForJanuary}. February's cycle is then charged, and the rows are restored to those before it. */
export async function februaryLost(env: TestEnvironment) {
  const paid = await paidForJanuary(env);
  const restore = await dumpRows(env.db);
  await env.advance(paid.clock, DUE_AT);
  const lostEvents = await paid.newEvents();
  await restore();
  return { ...paid, lostEvents };
}

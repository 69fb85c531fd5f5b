import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../../db/client.ts';
import { orderRows } from '../../db/repositories/payments/charges.ts';
import { decideReview, findReview, listReviews } from '../../db/repositories/payments/reviews.ts';
import type { ListedReview } from '../../db/repositories/payments/reviews.ts';
import type { ReviewOutcome } from '../../domain/review.ts';
import { followUp } from '../../activities/repair/decided-reviews.ts';
import { createOrders } from '../../temporal/orders.ts';
import { decisionOf } from './decision.ts';
import type { SettleOptions } from './decision.ts';
import { reviewData, reviewLines } from './listing.ts';
import { operatorCommand } from '../command-line/options.ts';
import { commandPlace } from '../command-line/place.ts';
import { recorder } from '../command-line/operator-action.ts';
import type { Surroundings } from '../command-line/options.ts';
import { connectWorkflows, withDatabase } from '../command-line/servers.ts';

const LIMIT = 1_000;
const BOOKED_WITHIN_MS = 10_000;

export const reviewCommand = operatorCommand(
  'review',
  'Payments and refunds that need manual review.',
  (program, surroundings) => {
    program
      .command('list')
      .description('list open reviews, oldest first')
      .option(
        '--settled',
        'then also list settled reviews, newest first, with name, time and reason',
      )
      .option('--json', 'print JSON instead of text')
      .action((options: { settled?: boolean; json?: boolean }) =>
        run(async ({ db }) => {
          const found = await listReviews(db, { settled: options.settled === true, limit: LIMIT });
          if (options.json) surroundings.print(JSON.stringify(found.map(reviewData), null, 2));
          else if (found.length === 0) surroundings.print('There are no open reviews.');
          else found.flatMap(reviewLines).forEach((line) => surroundings.print(line));
          if (!options.json && found.length === LIMIT) {
            surroundings.print(`At most ${LIMIT} reviews are listed.`);
          }
        }),
      );
    program
      .command('settle <id>')
      .description('settle an attempt (att_…) or a refund (rf_…); this is final')
      .option('--paid <gatewayChargeId>', 'the gateway made this charge')
      .option('--declined <code>', 'the gateway declined the attempt')
      .option('--not-charged', 'the gateway made no charge')
      .option('--refunded <gatewayRefundId>', 'for a refund: the gateway made this refund')
      .option('--not-refunded', 'for a refund: the gateway made no refund')
      .requiredOption('--by <name>', 'name of the person who decides')
      .requiredOption('--note <text>', 'reason of the decision')
      .option('--json', 'print JSON instead of text')
      .action((id: string, options: SettleOptions & { json?: boolean }) =>
        run((place) => settle(place, id, options, surroundings)),
      );

    async function run(command: (place: Place) => Promise<void>): Promise<void> {
      const { databaseUrl: url, ...temporal } = commandPlace(surroundings.environment);
      await withDatabase({ url, command: 'review' }, (db) => command({ db, ...temporal }));
    }
  },
);

async function settle(
  place: Place,
  id: string,
  options: SettleOptions & { json?: boolean },
  { print }: Surroundings,
): Promise<void> {
  const decision = decisionOf(id, options);
  const record = recorder(decision.by);
  const decided = await place.db.transaction(async (tx) => {
    const result = await decideReview(tx, id, decision);
    if (result.ok) {
      const { merchantId } = result.review;
      const { by: _, note: _note, ...facts } = decision;
      await record(tx, { command: 'review settle', subject: id, merchantId, facts });
    }
    return result;
  });
  if (!decided.ok) throw new Error(decided.message);
  const booked = await haveBooked(place, decided.review);
  if (options.json) print(JSON.stringify({ id, ...decision, booked }, null, 2));
  else {
    print(`${id} is settled: ${decision.outcome}, by ${decision.by}.`);
    const why = booked === STATES[decision.outcome] ? 'as decided' : 'as the gateway now answers';
    print(
      booked
        ? `It is booked as ${booked}, ${why}.`
        : 'It is not booked yet. The sweep books it within a minute once Temporal and a worker run.',
    );
  }
}

/** The state that each decision gives, unless the gateway has an answer that takes precedence. */
const STATES: Readonly<Record<ReviewOutcome, ListedReview['state']>> = {
  paid: 'SUCCEEDED',
  declined: 'DECLINED',
  not_charged: 'DECLINED',
  refunded: 'SUCCEEDED',
  not_refunded: 'REFUSED',
};

/** Waits at most 10 s for the state that is booked; null if the sweep must book it later. */
async function haveBooked(
  place: Place,
  review: ListedReview,
): Promise<ListedReview['state'] | null> {
  const { db, taskQueuePrefix } = place;
  const { client, workflows, logger, close } = connectWorkflows(db, place);
  const orders = createOrders({ client, rows: orderRows(db), taskQueuePrefix, logger });
  try {
    await followUp(review, workflows, orders);
    const booked = await untilBooked(db, review.subjectId);
    if (booked && booked.closedAt === null) await followUp(booked, workflows, orders);
    return booked?.state ?? null;
  } catch {
    return null;
  } finally {
    await close();
  }
}

async function untilBooked(db: Db, id: string): Promise<ListedReview | null> {
  const giveUpAt = performance.now() + BOOKED_WITHIN_MS;
  do {
    const review = await findReview(db, id);
    if (review && review.state !== 'REVIEW') return review;
    await pause(200);
  } while (performance.now() < giveUpAt);
  return null;
}

interface Place {
  readonly db: Db;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly taskQueuePrefix: string;
}

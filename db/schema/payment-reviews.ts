import { sql } from 'drizzle-orm';
import { check, index, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { REVIEW_OUTCOMES } from '../../domain/review.ts';
import type { ReviewOutcome } from '../../domain/review.ts';
import { instant, merchantId, oneOf } from './_columns.ts';

/**
 * What a person has to settle, and what the person said: one row for each attempt or refund that was
 * ever in REVIEW, and for each attempt that was withdrawn when its charge may still arrive. Writers: activities open and close it, the operator's command writes the decision.
 */
export const paymentReviews = pgTable(
  'payment_review',
  {
    merchantId: merchantId(),
    /** The attempt or the refund. */
    subjectId: text('subject_id').notNull(),
    reason: text('reason').notNull(),
    /** Real time, like every instant below. */
    sinceAt: instant('since_at')
      .notNull()
      .default(sql`now()`),
    /** The decision; null while nobody made one. */
    outcome: text('outcome').$type<ReviewOutcome>(),
    /** The gateway's name for the charge or the refund that the person found. */
    gatewayId: text('gateway_id'),
    /** Decline code, of `declined`. */
    code: text('code'),
    decidedBy: text('decided_by'),
    note: text('note'),
    decidedAt: instant('decided_at'),
    /** Nothing is left to do: it is booked, and no late charge is looked for any more. */
    closedAt: instant('closed_at'),
    /** When a sweep looked at it last. */
    updatedAt: instant('updated_at')
      .notNull()
      .default(sql`now()`),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.subjectId] }),
    check('payment_review__outcome__ck', sql`${table.outcome} in (${oneOf(REVIEW_OUTCOMES)})`),
    check(
      'payment_review__decided__ck',
      sql`(${table.outcome} is null) = (${table.decidedAt} is null)`,
    ),
    // One charge pays once, and one refund gives back once, also before either is booked.
    uniqueIndex('payment_review__found__uq')
      .on(table.outcome, table.gatewayId)
      .where(sql`${table.gatewayId} is not null`),
    index('payment_review__open__idx')
      .on(table.updatedAt)
      .where(sql`${table.closedAt} is null`),
  ],
);

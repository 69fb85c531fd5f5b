import { sql } from 'drizzle-orm';
import { check, index, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { REVIEW_OUTCOMES } from '../../domain/review.ts';
import type { ReviewOutcome } from '../../domain/review.ts';
import { instant, merchantId, oneOf } from './_columns.ts';

/**
 * A manual review and its decision: one row for each attempt or refund that was ever in REVIEW, and for each
 * voided attempt whose charge may still arrive at the gateway.
 */
export const paymentReviews = pgTable(
  'payment_review',
  {
    merchantId: merchantId(),
    subjectId: text('subject_id').notNull(),
    reason: text('reason').notNull(),
    /** Real time, like every instant below. */
    sinceAt: instant('since_at')
      .notNull()
      .default(sql`now()`),
    /** The decision; null until an operator decides. A voided attempt has the decision `not_charged` at once. */
    outcome: text('outcome').$type<ReviewOutcome>(),
    /** The gateway's id of the charge or refund that the operator found. */
    gatewayId: text('gateway_id'),
    code: text('code'),
    decidedBy: text('decided_by'),
    note: text('note'),
    decidedAt: instant('decided_at'),
    /** Set when the outcome is recorded and the late-charge watch, if any, has ended; null before. */
    closedAt: instant('closed_at'),
    /** When the review was opened or decided, or when a sweep last took it. */
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
    // Two decisions must not name the same gateway charge or the same gateway refund.
    uniqueIndex('payment_review__found__uq')
      .on(table.outcome, table.gatewayId)
      .where(sql`${table.gatewayId} is not null`),
    index('payment_review__open__idx')
      .on(table.updatedAt)
      .where(sql`${table.closedAt} is null`),
  ],
);

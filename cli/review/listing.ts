import type { ListedReview } from '../../db/repositories/payments/reviews.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { formatAmount } from '../../domain/money.ts';
import { minuteText, printable } from '../command-line/terminal.ts';

export function reviewLines(review: ListedReview): string[] {
  const { subjectId, merchantId, intentId, subscriptionId, cycleNumber } = review;
  const owner =
    subscriptionId === null
      ? `payment ${intentId}`
      : `${subscriptionId}, ${cycleNumber === null ? 'one-time charge' : `cycle ${cycleNumber}`}, ${intentId}`;
  const amount = formatAmount(review.amountMinor, review.currency);
  return [
    `${subjectId}  ${amount}  since ${minuteText(review.sinceAt)} UTC`,
    `    ${merchantId}  ${owner}`,
    `    key at the gateway: ${review.gatewayKey}`,
    `    why: ${printable(review.reason)}`,
    ...(review.decidedAt === null
      ? []
      : [
          `    settled: ${review.outcome} by ${printable(String(review.decidedBy))}, ${minuteText(review.decidedAt)} UTC: ${printable(String(review.note))}`,
        ]),
  ];
}

export function reviewData(review: ListedReview): object {
  const { subjectId, merchantId, subscriptionId, intentId, cycleNumber, gatewayKey } = review;
  return {
    id: subjectId,
    merchantId,
    subscriptionId,
    intentId,
    cycleNumber,
    gatewayKey,
    amountMinor: review.amountMinor,
    currency: review.currency,
    state: review.state,
    reason: review.reason,
    since: formatInstant(review.sinceAt),
    settled:
      review.decidedAt === null
        ? null
        : {
            outcome: review.outcome,
            gatewayId: review.gatewayId,
            code: review.code,
            by: review.decidedBy,
            note: review.note,
            at: formatInstant(review.decidedAt),
          },
  };
}

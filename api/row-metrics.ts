import type { Db } from '../db/client.ts';
import { readFigures } from '../db/repositories/sweeps/figures.ts';
import type { Sample } from '../runtime/metrics.ts';

/** Reads the metrics of the rows. The API reads them, so that they also show that no worker does its work. */
export async function readSamples(db: Db): Promise<Sample[]> {
  const { overdue, unknown, reviews, held, endpoints, repairs } = await readFigures(db);
  const labels = {};
  const steps = (['charge', 'other'] as const).flatMap((step): Sample[] => {
    const { count, oldestSeconds } = overdue[step];
    return [
      { name: 'perennial_renewals_overdue', labels: { step }, value: count },
      { name: 'perennial_renewals_overdue_oldest_seconds', labels: { step }, value: oldestSeconds },
    ];
  });
  const outcomes = (['charge', 'refund'] as const).flatMap((subject): Sample[] => {
    const { count, oldestSeconds: oldest } = unknown[subject];
    return [
      { name: 'perennial_outcomes_unknown', labels: { subject }, value: count },
      { name: 'perennial_outcomes_unknown_oldest_seconds', labels: { subject }, value: oldest },
    ];
  });
  return [
    ...steps,
    ...outcomes,
    { name: 'perennial_subscriptions_held', labels, value: held },
    { name: 'perennial_reviews_open', labels, value: reviews.count },
    { name: 'perennial_reviews_open_oldest_seconds', labels, value: reviews.oldestSeconds },
    { name: 'perennial_webhook_oldest_due_seconds', labels, value: endpoints.oldestDueSeconds },
    { name: 'perennial_webhook_breakers_open', labels, value: endpoints.open },
    { name: 'perennial_webhook_endpoints_disabled', labels, value: endpoints.disabled },
    ...Object.entries(repairs).map(([kind, value]): Sample => {
      return { name: 'perennial_repairs_total', labels: { kind }, value };
    }),
  ];
}
